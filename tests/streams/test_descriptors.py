"""Calls on descriptors beside reading and writing, of files that are buffered and kept open: each class of src/preload/beneath.def."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import Start

HOW = ["closed", "permissions", "handed", "asked", "printed", "harmless"]


@pytest.mark.parametrize("streams", ["*.dat:size=64K", "*.dat:size=64K:handles"], ids=["buffered", "kept"])
@pytest.mark.parametrize("how", HOW)
def test_a_program_sees_what_it_sees_without(start: Start, build: Callable[[str], Path], how: str, streams: str) -> None:
    plain = start(build("descriptors.c"), how)
    buffered = start(build("descriptors.c"), how, streams=streams)
    assert (buffered.status, buffered.stdout.splitlines(), buffered.stderr) == (plain.status, plain.stdout.splitlines(), plain.stderr)
    assert plain.status == 0, plain.stdout
    assert buffered.files == plain.files
