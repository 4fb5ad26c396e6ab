"""Uses of files that buffers must not change: second descriptors, mappings, locks, signal handlers,
threads that are cancelled."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import VICTIMS, Start, expect_same
from tests.support.commands import run_command

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


@pytest.mark.parametrize("how", NARROW.replace(" before", "").replace(" flock", "").split())
@pytest.mark.parametrize("mode", ["none", "line"])
def test_redirected_output_with_little_buffer_shows_its_bytes_as_without_buffers(
    start: Start, build: Build, mode: str, how: str
) -> None:
    command = ["sh", "-c", f"exec {build('narrow.c')} {mode} {how} redirected 1<> out.dat"]
    expect_same(start(*command, streams="*.dat:size=64K"), start(*command))


@pytest.mark.parametrize("mode", ["none", "line"])
def test_such_a_stream_keeps_its_buffer_while_the_program_looks_at_the_size(
    start: Start, build: Build, mode: str
) -> None:
    program = build("narrow.c")
    plain = start(program, mode, "count")
    buffered = start(program, mode, "count", streams="*.dat:size=64K")
    assert int(plain.stdout) >= 10000 and int(buffered.stdout) < 100
    assert buffered.files == plain.files


@pytest.mark.parametrize("flags", [(), ("-O2", "-D_FORTIFY_SOURCE=2")], ids=["plain", "checked"])
def test_formatted_output_to_a_descriptor_is_written_behind(
    start: Start, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    program = tmp_path / "lines"
    run_command(["gcc", *flags, "-w", "-o", program, VICTIMS / "lines.c"], status=0)
    plain = start(program, "dprintf")
    expect_same(start(program, "dprintf", streams="*.txt:size=64K"), plain)
    traced = ["strace", "-f", "-c", "-e", "trace=write", program, "dprintf"]
    buffered = start(*traced, streams="*.txt:size=64K")
    writes = re.findall(r"(\d+) +write$", buffered.stderr, re.MULTILINE)
    assert buffered.files == plain.files and sum(map(int, writes)) < 100
