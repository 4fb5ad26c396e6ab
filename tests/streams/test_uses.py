"""Uses of files that buffers must not change: second descriptors, mappings, locks, signal handlers,
threads that are cancelled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import Start, expect_same

Build = Callable[[str], Path]
USES = [
    "other",
    "other_first",
    "direct",
    "synchronous",
    "mapped",
    "failing",
    "daemon",
    "cancelled",
    "handler",
    "flock",
    "lockf",
    "fcntl",
    "walked",
]


def check(start: Start, program: Path, how: str, streams: str) -> None:
    plain = start(program, how)
    buffered = start(program, how, streams=streams)
    expect_same(buffered, plain)


@pytest.mark.parametrize(
    "streams", ["*.dat:size=64K", "*.dat:size=64K:handles"], ids=["buffered", "kept"]
)
@pytest.mark.parametrize("how", USES)
def test_a_program_has_the_same_results_as_without_buffers(
    start: Start, build: Build, how: str, streams: str
) -> None:
    check(start, build("uses.c"), how, streams)


@pytest.mark.system
def test_the_thread_that_flushes_streams_spares_those_that_are_written_without_locks(
    start: Start, build: Build
) -> None:
    check(start, build("uses.c"), "unlocked", "*.dat:size=1M:delay=1")
