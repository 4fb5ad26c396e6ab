"""Programs with buffered files: the same outputs, fewer system calls, reported errors."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.streams.conftest import Start
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until

Build = Callable[[str], Path]
LINES = b"".join(b"line %d\n" % i for i in range(1000))


def system_writes(start: Start, *command: object, streams: str, work: str) -> int:
    """Counts the system calls that write a file, in all threads and processes. Bytes are not
    written for their age, because strace makes programs slow."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    kinds = "trace=write,writev,pwrite64,pwritev"
    traced = start(
        "strace",
        "-f",
        "-y",
        "-o",
        "calls",
        "-e",
        kinds,
        "sh",
        "-c",
        'exec "$@"',
        "sh",
        *command,
        streams=f"{streams}:delay=0",
    )
    assert traced.status == 0, traced.stderr
    return sum(
        f"/{work}>" in line for line in traced.files["calls"].decode(errors="replace").splitlines()
    )


@pytest.mark.parametrize("how", ["return", "_exit", "abort", "term", "segv", "exec", "system"])
def test_each_end_of_a_program_writes_the_dirty_bytes(start: Start, build: Build, how: str) -> None:
    plain = start(build("lines.c"), how)
    done = start(build("lines.c"), how, streams="*.txt:size=1M")
    assert done.status == plain.status
    assert done.files["out.txt"] == LINES


@pytest.mark.system
def test_a_kill_loses_no_bytes_older_than_the_delay(
    library: Path, build: Build, tmp_path: Path
) -> None:
    env = os.environ | {"LD_PRELOAD": str(library), "PARIO_STREAMS": "*.txt:size=1M:delay=1"}
    command = [build("lines.c"), "wait"]
    with start_command(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stdout.readline() == "waiting\n"
        wait_until(lambda: (tmp_path / "out.txt").read_bytes() == LINES, "all lines in the file")
        program.kill()
    assert program.returncode == -signal.SIGKILL
    assert (tmp_path / "out.txt").read_bytes() == LINES


def test_writes_of_a_signal_handler_are_complete(start: Start, build: Build) -> None:
    done = start(build("lines.c"), "handler", streams="*.txt:size=4K:count=2")
    assert done.status == 0
    lines = done.files["out.txt"].decode().splitlines()
    assert [line for line in lines if line != "from the handler"] == [
        f"line {i}" for i in range(100000)
    ]
    assert "from the handler" in lines


@pytest.mark.system
def test_small_writes_in_each_language_become_large_ones(start: Start, build: Build) -> None:
    script = (
        "import sys\nwith open('out.txt', 'w') as out:\n  for i in range(3000): print('line', i,"
        " file=out, flush=True)"
    )
    programs: list[tuple[list[object], str]] = [
        ([build("lines.c")], "out.txt"),
        ([build("flushing.cpp")], "lines.txt"),
        ([build("records.f90")], "records.txt"),
        ([sys.executable, "-c", script], "out.txt"),
    ]
    for command, name in programs:
        plain = start(*command)
        assert start(*command, streams="*.txt:size=1M").files[name] == plain.files[name]
        assert system_writes(start, *command, streams="*.txt:size=1M", work=name) <= 2, command


def test_only_ignoreflush_absorbs_a_flush_per_line(start: Start, build: Build) -> None:
    assert (
        system_writes(start, build("lines.c"), "stdio", streams="*.txt:size=1M", work="out.txt")
        >= 1000
    )
    assert (
        system_writes(
            start, build("lines.c"), "stdio", streams="*.txt:size=1M:ignoreflush", work="out.txt"
        )
        == 1
    )
    assert (
        start(build("lines.c"), "stdio", streams="*.txt:size=1M:ignoreflush").files["out.txt"]
        == LINES
    )


def test_a_tiny_buffer_of_the_program_is_replaced(start: Start, build: Build) -> None:
    assert system_writes(start, build("lines.c"), "tiny", streams="*.log", work="out.txt") >= 100
    assert (
        system_writes(
            start, build("lines.c"), "tiny", streams="*.txt:stdio_size=1M", work="out.txt"
        )
        == 1
    )
    assert start(build("lines.c"), "tiny", streams="*.txt").files["out.txt"] == LINES


def redirect(program: Path, words: str) -> list[str]:
    return ["sh", "-c", f"exec {program} print {words}"]


@pytest.mark.parametrize(
    ("streams", "least", "most"),
    [("*.txt:size=1M", 1, 1), ("%stdout:size=1M", 1, 1), ("*.log:size=1M", 1000, 1000)],
    ids=["path", "name", "other path"],
)
def test_redirected_output_has_the_setting_of_its_file(
    start: Start, build: Build, streams: str, least: int, most: int
) -> None:
    command = redirect(build("lines.c"), "> out.txt")
    assert least <= system_writes(start, *command, streams=streams, work="out.txt") <= most
    assert start(*command, streams=streams).files["out.txt"] == LINES


def test_output_and_errors_that_are_redirected_to_one_file_keep_their_order(
    start: Start, build: Build
) -> None:
    command = redirect(build("lines.c"), "both > out.txt 2>&1")
    plain = start(*command)
    assert b"line 500\nhalf\nline 501\n" in plain.files["out.txt"]
    assert start(*command, streams="*.txt:size=1M").files == plain.files


def test_typos_are_named_and_other_settings_apply(start: Start, build: Build) -> None:
    done = start(
        build("lines.c"),
        env={"IOBUF_PARAMS": "%%stdout,12M:verbose,*.txt:size= 1M:count=2"},
        streams="*.log:szie=1M",
    )
    assert done.files["out.txt"] == LINES
    for part in (
        'IOBUF_PARAMS: "%%stdout"',
        "did you mean %stdout",
        "did you mean *:size=12M",
        "a blank too many",
        "did you mean size",
    ):
        assert part in done.stderr


def test_standard_output_is_buffered_by_its_name(start: Start) -> None:
    script = (
        "for i in range(100): print(i, flush=True)\nimport ctypes\nlibc ="
        ' ctypes.CDLL(None)\nlibc.puts(b"by stdio")'
    )
    done = start(sys.executable, "-c", script, streams="%stdout:stdio=full")
    assert sorted(done.stdout.split("\n")) == sorted([*map(str, range(100)), "by stdio", ""])


def test_verbose_prints_requests_and_system_calls(start: Start, build: Build) -> None:
    done = start(build("lines.c"), "full", streams="*.txt:size=64K:delay=0:verbose")
    assert re.search(r"Write +1000 .*", done.stderr), done.stderr
    assert re.search(r"Sys Write +1 .*", done.stderr), done.stderr
    assert re.search(r"Open +1 +[0-9.]+\n", done.stderr), done.stderr
    assert re.search(r"Close +1 +[0-9.]+\n", done.stderr), done.stderr
    assert re.search(r"Total +1002 .*", done.stderr), done.stderr
    assert "out.txt" in done.stderr


def test_verbose_prints_figures_of_files_never_closed(start: Start, build: Build) -> None:
    assert (
        start(build("lines.c"), streams="*.txt:size=64K:delay=0:verbose").stderr.count("Sys Write")
        == 1
    )


@pytest.mark.system
@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.parametrize("size", ["4K", "1M"])
def test_interleaved_pieces_of_processes_are_written_once_and_nothing_is_read(
    start: Start, build: Build, size: str
) -> None:
    kinds = "trace=read,readv,pread64,preadv,write,writev,pwrite64,pwritev"
    strace = ["strace", "-ff", "-y", "-o", "calls", "-e", kinds]
    script = "for rank in 0 1 2 3; do $0 $rank 4 & done; wait"
    done = start(
        *strace, "sh", "-c", script, build("strided.c"), streams=f"*.dat:size={size}:count=3"
    )
    text = b"".join(calls for name, calls in done.files.items() if name.startswith("calls."))
    made = re.findall(rb"^(\w+)\(\d+<[^>]*/out.dat>.* = (\d+)$", text, re.MULTILINE)
    assert {name for name, _ in made} == {b"pwritev"}
    assert len(made) <= 4 * 1000
    assert sum(int(moved) for _, moved in made) == 4 * 1000 * 256
    assert done.files["out.dat"] == b"".join(bytes([97 + rank]) * 256 for rank in range(4)) * 1000


@pytest.mark.parametrize(("threads", "size"), [(1, "64M"), (4, "64M"), (4, "64K")])
@pytest.mark.system
def test_verbose_prints_no_more_seconds_than_have_passed(
    start: Start, build: Build, threads: int, size: str
) -> None:
    done = start(build("figures.c"), threads, streams=f"*.dat:size={size}:verbose")
    seconds = {
        match[1]: float(match[2])
        for match in re.finditer(
            r"^  ([A-Z]\w+(?: \w+)?) +\d+ +([0-9.]+)", done.stderr, re.MULTILINE
        )
    }
    assert {"Write", "Total", "Sys Write"} <= seconds.keys(), done.stderr
    # Both clocks differ by less than a hundredth.
    assert max(seconds.values()) <= 1.01 * float(done.stdout), done.stderr


SHARING = """
import os, subprocess
out = open('out.dat', 'w')
print('start', file=out, flush=True)
{}
print('end', file=out)
"""


@pytest.mark.parametrize(
    "child",
    [
        "subprocess.run(['echo', 'from the child'], stdout=out)",
        (
            "subprocess.run(['sh', '-c', f'echo from the child >&{out.fileno()}'],"
            " pass_fds=[out.fileno()])"
        ),
        "subprocess.run(['echo', 'from the child'], stdout=out, preexec_fn=lambda: None)",
        (
            "subprocess.Popen(['cat'], stdin=open('in.dat', 'w+'), stdout=out).wait(); print('from"
            " the child', file=out, flush=True)"
        ),
        (
            "os.posix_spawn('/bin/echo', ['echo', 'from the child'], {},"
            " file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]); os.wait()"
        ),
        "os.fork() or (out.write('from the child\\n'), out.flush(), os._exit(0)); os.wait()",
    ],
)
def test_writes_of_a_child_are_in_order(start: Start, child: str) -> None:
    done = start(sys.executable, "-c", SHARING.format(child), streams="*.dat")
    assert (done.status, done.files["out.dat"]) == (0, b"start\nfrom the child\nend\n")


def test_a_child_without_descriptors_does_not_end_buffering(start: Start) -> None:
    script = (
        SHARING.format(
            "for i in range(100): print(i, file=out, flush=True)\nsubprocess.run(['true'])"
        )
        + "for i in range(100): print(i, file=out, flush=True)"
    )
    assert system_writes(start, sys.executable, "-c", script, streams="*.dat", work="out.dat") <= 3


@pytest.mark.parametrize(
    ("programs", "buffered"),
    [
        ("lin*", True),
        ("!gcc", True),
        ("!gcc:!lines", False),
        ("app*:!gcc", False),
        ("!line?:lines*", False),
        ("", False),
        ("*", True),
    ],
)
def test_programs_are_selected_by_name(
    start: Start, build: Build, programs: str, buffered: bool
) -> None:
    done = start(
        build("lines.c"), "full", streams="*.txt:verbose", env={"PARIO_STREAMS_PROGRAMS": programs}
    )
    assert done.files["out.txt"] == LINES
    assert ("Sys Write" in done.stderr) == buffered


def test_a_script_is_selected_by_its_own_name(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "convert"
    script.write_text(f"#!{sys.executable}\nopen('out.txt', 'w').write('x')\n")
    script.chmod(0o755)
    done = start(script, streams="*.txt:verbose", env={"PARIO_STREAMS_PROGRAMS": "convert"})
    assert "Sys Write" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_is_reported_by_close_and_on_stderr(
    library: Path, build: Build, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    run_command(["mount", "-t", "tmpfs", "-o", "size=4K", "none", small], status=0)
    try:
        env = os.environ | {"LD_PRELOAD": str(library), "PARIO_STREAMS": "*.txt:size=1M"}
        done = run_command([build("lines.c"), "full"], cwd=small, env=env)
    finally:
        run_command(["umount", small], status=0)
    assert (done.returncode, done.stdout) == (5, "close: ENOSPC\n")
    assert "did not reach the file: ENOSPC" in done.stderr
