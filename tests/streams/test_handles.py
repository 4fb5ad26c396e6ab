"""Kept handles: repeated opens and closes of a file make one system call, without other changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import Start
from tests.support.commands import start_command
from tests.support.waiting import wait_until

Build = Callable[[str], Path]
HANDLES = "*.dat:size=64K:handles"
LAZY = [f"{HANDLES}:lazyclose", "*.dat:size=64K:lazyclose"]
COME_AND_GO = "open|openat|creat|close|dup|dup2|fcntl|lseek|newfstatat|statx|access"


@pytest.mark.system
@pytest.mark.parametrize(
    "how",
    [
        "truths",
        "processes",
        "numbers",
        "sweep",
        "modes",
        "looks",
        "names",
        "in_processes",
        "closed_and_gone",
    ],
)
@pytest.mark.parametrize("streams", [HANDLES, *LAZY])
def test_a_program_has_the_same_results_as_without_buffers(
    start: Start, build: Build, streams: str, how: str
) -> None:
    plain = start(build("reopen.c"), how, 30)
    kept = start(build("reopen.c"), how, 30, streams=streams)
    assert (kept.status, kept.stdout, kept.stderr) == (plain.status, plain.stdout, plain.stderr)
    assert kept.files == plain.files


@pytest.mark.parametrize("how", ["exit", "_exit", "quick_exit", "abort", "signal", "exec"])
@pytest.mark.parametrize("streams", LAZY)
def test_bytes_of_closed_files_survive_each_end_of_the_program(
    start: Start, build: Build, streams: str, how: str
) -> None:
    plain = start(build("reopen.c"), "ends", how)
    lazy = start(build("reopen.c"), "ends", how, streams=streams)
    assert (lazy.status, lazy.stdout, lazy.stderr) == (plain.status, plain.stdout, plain.stderr)
    assert lazy.files == plain.files


@pytest.mark.parametrize("streams", LAZY)
def test_an_error_after_close_is_reported_by_the_next_call(
    start: Start, build: Build, streams: str
) -> None:
    stream = start(build("reopen.c"), "fails_in_a_stream", streams=streams)
    descriptor = start(build("reopen.c"), "fails_in_a_descriptor", streams=streams)
    for done in (stream, descriptor):
        assert done.stdout.splitlines()[0] == "close 0 "
        assert "out.dat: " in done.stderr and "EFBIG" in done.stderr
    if "handles" in streams:
        assert stream.stdout.splitlines()[1:] == ["next close -1 EFBIG", "another one 0 "]
        assert descriptor.stdout.splitlines()[1:] == [
            "next write -1 EFBIG",
            "another one 1 ",
            "next close 0 ",
        ]


def calls(start: Start, streams: str, *command: object) -> dict[str, int]:
    """Counts system calls by name, in all threads."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    traced = start(
        "strace", "-f", "-o", "calls", "sh", "-c", 'exec "$@"', "sh", *command, streams=streams
    )
    assert traced.status == 0, traced.stderr
    counts: dict[str, int] = {}
    for name in re.findall(
        r"^\d+ +(\w+)\(", traced.files["calls"].decode(errors="replace"), re.MULTILINE
    ):
        counts[name] = counts.get(name, 0) + 1
    return counts


def count_untimed(counts: dict[str, int]) -> int:
    """Counts all system calls but statx: pario looks up each name ten times a second, however
    slow the machine is."""
    return sum(counts.values()) - counts.get("statx", 0)


@pytest.mark.parametrize(("how", "lines"), [("nothing", 0), ("append", 5), ("stdio", 5)])
def test_reopening_a_kept_file_makes_no_system_call(
    start: Start, build: Build, how: str, lines: int
) -> None:
    few, many = (calls(start, HANDLES, build("reopen.c"), how, times) for times in (10, 1010))
    more = {name: many[name] - few.get(name, 0) for name in many if re.fullmatch(COME_AND_GO, name)}
    # Each opening and closing would be two calls.
    every = count_untimed(many) - count_untimed(few)
    # A line is one call; another one asks the kernel for changes of the name.
    assert every < 1000 * (2 if lines else 1) + 300, {n: many[n] - few.get(n, 0) for n in many}
    assert sum(more.values()) < 1000, more
    assert many.get("write", 0) + many.get("pwritev", 0) - few.get("write", 0) - few.get(
        "pwritev", 0
    ) == (1000 if lines else 0)


@pytest.mark.system
def test_a_loop_over_a_hundred_files_makes_fewer_calls_than_without_pario(
    start: Start, build: Build
) -> None:
    plain, kept = (
        calls(start, streams, build("reopen.c"), "many", 100) for streams in ("", HANDLES)
    )
    assert count_untimed(kept) < 0.8 * count_untimed(plain), (plain, kept)


@pytest.mark.parametrize("how", ["append", "stdio"])
def test_bytes_of_lazily_closed_files_are_written_together(
    start: Start, build: Build, how: str
) -> None:
    many = calls(start, LAZY[0], build("reopen.c"), how, 3000)
    assert many.get("write", 0) + many.get("pwritev", 0) < 20


@pytest.mark.system
def test_a_file_replaced_by_another_process_ends_the_kept_handle(
    library: Path, build: Build, tmp_path: Path
) -> None:
    env = os.environ | {"LD_PRELOAD": str(library), "PARIO_STREAMS": HANDLES}
    command = [build("reopen.c"), "others"]
    with start_command(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE) as program:
        wait_until((tmp_path / "go").exists, "the program's first file")
        (tmp_path / "new").write_text("theirs")
        (tmp_path / "new").rename(tmp_path / "out.dat")
        (tmp_path / "gone").touch()
        said = program.finish().stdout
    assert said.splitlines() == ["out.dat: mine", "out.dat: theirs", "held 0"]


#: Changes of the name sub/out.dat by another process.
CHANGES = [
    "echo theirs > new && mv new sub/out.dat",
    "rm sub/out.dat",
    "mv sub/out.dat sub/rotated",
    "mv sub/rotated sub/out.dat",
    "mv sub old && mkdir sub && echo theirs > sub/out.dat",
    "ln -s ../new sub/link && mv -f sub/link sub/out.dat",
    "rm sub/out.dat && mv old/out.dat sub/out.dat",
    "ln sub/out.dat second",
    "mv second sub/out.dat; rm sub/out.dat",
]


def append_beside_changes(
    program: Path, mode: str, folder: Path, env: dict[str, str], *, linked: bool
) -> dict[str, bytes]:
    """Runs a program that appends to sub/out.dat between the changes; returns the files.

    ``linked``: sub is a symbolic link, so that the kernel cannot report all changes of the name.
    """
    (folder / ("real" if linked else "sub")).mkdir(parents=True)
    if linked:
        (folder / "sub").symlink_to("real")
    command = [program, "steps", str(len(CHANGES)), mode]
    with start_command(command, cwd=folder, env=env, stdout=subprocess.PIPE) as running:
        for number, change in enumerate(CHANGES):
            wait_until((folder / f"go.{number}").exists, "the lines before a change")
            subprocess.run(change, cwd=folder, shell=True, check=True)
            (folder / f"done.{number}").touch()
        assert running.finish().returncode == 0
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("mode", ["write", "stdio"])
def test_a_change_of_a_name_is_noticed_by_the_next_open(
    library: Path, build: Build, tmp_path: Path, mode: str, linked: bool
) -> None:
    def run(folder: str, **variables: str) -> dict[str, bytes]:
        return append_beside_changes(
            build("reopen.c"), mode, tmp_path / folder, os.environ | variables, linked=linked
        )

    plain = run("plain")
    assert run("kept", LD_PRELOAD=str(library), PARIO_STREAMS=HANDLES) == plain


def test_close_writes_the_bytes(start: Start, build: Build) -> None:
    script = (
        'import os, sys\nfor i in range(20):\n  with open("out.dat", "a") as out: out.write("x" *'
        " 10)\n"
    )
    script += '  assert os.stat("out.dat").st_size == 10 * (i + 1)'
    assert start("python3", "-c", script, streams=HANDLES).status == 0
