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


NARROW = (
    "stat fstat seek open fopen before write dup map rename system popen spawn vfork fork flock"
)


@pytest.mark.parametrize("how", NARROW.split())
@pytest.mark.parametrize("mode", ["none", "line"])
def test_a_stream_that_the_program_leaves_little_buffer_shows_its_bytes_as_without_buffers(
    start: Start, build: Build, mode: str, how: str
) -> None:
    program = build("narrow.c")
    plain = start(program, mode, how)
    expect_same(start(program, mode, how, streams="*.dat:size=64K"), plain)
    assert how != "flock" or plain.files == {"out.dat": b"001000\n"}


@pytest.mark.parametrize("mode", ["none", "line"])
def test_such_a_stream_keeps_its_buffer_while_the_program_looks_at_the_size(
    start: Start, build: Build, mode: str
) -> None:
    program = build("narrow.c")
    plain = start(program, mode, "count")
    buffered = start(program, mode, "count", streams="*.dat:size=64K")
    assert int(plain.stdout) >= 10000 and int(buffered.stdout) < 100
    assert buffered.files == plain.files
