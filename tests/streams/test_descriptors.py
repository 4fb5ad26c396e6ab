"""Calls on descriptors of buffered and kept files other than reads and writes: each class of
src/observe/preload/beneath.def."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import Start, expect_same

HOW = ["closed", "permissions", "handed", "asked", "printed", "harmless"]


@pytest.mark.parametrize(
    "streams", ["*.dat:size=64K", "*.dat:size=64K:handles"], ids=["buffered", "kept"]
)
@pytest.mark.parametrize("how", HOW)
def test_a_program_has_the_same_results_as_without_buffers(
    start: Start, build: Callable[[str], Path], how: str, streams: str
) -> None:
    plain = start(build("descriptors.c"), how)
    buffered = start(build("descriptors.c"), how, streams=streams)
    expect_same(buffered, plain)
