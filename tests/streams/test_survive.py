"""Buffers that survive a killed process: no byte of a completed write is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pario.see.launch.keeper import KEEPER, Keeper, keeping
from pario.see.tables import read
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until

Build = Callable[[str], Path]
RECORD, WINDOW = 16, 256
SEEDS = range(1, 1 + int(os.environ.get("PARIO_KILLS", "6")))


def environment(library: Path, streams: str) -> dict[str, str]:
    return dict(os.environ) | {"LD_PRELOAD": str(library), "PARIO_STREAMS": streams}


def place_of(record: int, how: str) -> int:
    return (
        record if how == "sequential" else record // WINDOW * WINDOW + record % WINDOW * 37 % WINDOW
    )


def run_and_kill(program: Path, how: str, folder: Path, env: dict[str, str], seconds: float) -> int:
    """Runs and kills the program; returns the number of its completed writes."""
    count = folder / "returned"
    with start_command([program, how], cwd=folder, env=env) as process:
        wait_until(
            lambda: (count.exists() and any(count.read_bytes())) or process.poll() is not None,
            "the first write that returns",
        )
        time.sleep(seconds)  # at any moment of a write
        process.kill()
    assert process.returncode == -signal.SIGKILL
    return int.from_bytes(count.read_bytes(), "little")


@pytest.mark.system
@pytest.mark.parametrize("how", ["sequential", "scattered"])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_write_that_returned_is_in_the_file(
    library: Path, build: Build, tmp_path: Path, how: str, seed: int
) -> None:
    streams = [
        "out.dat:size=4K:count=2",
        "out.dat:size=1M:count=4",
        "out.dat:size=4K:count=8:sync",
    ][seed % 3]
    with keeping(environment(library, f"{streams}:survive:delay=0")) as env:
        returned = run_and_kill(build("killed.c"), how, tmp_path, env, seed * 0.003)
    data = (tmp_path / "out.dat").read_bytes()
    assert returned > 0
    wrong = [
        i for i in range(returned) if data[place_of(i, how) * RECORD :][:RECORD] != b"%15d\n" % i
    ]
    assert wrong == []
    assert len(data) % RECORD == 0


def run(
    library: Path,
    folder: Path,
    script: str,
    streams: str = "*.dat:size=64K:survive:delay=0",
    **more: str,
) -> tuple[int, str]:
    with keeping(environment(library, streams)) as env:
        done = run_command([sys.executable, "-c", script], cwd=folder, env=env | more)
    return done.returncode, done.stderr


KILL = "os.kill(os.getpid(), 9)"


@pytest.mark.parametrize(
    ("script", "content"),
    [
        ("out.write(b'kept')", b"kept"),
        ("out.write(b'kept'); os.rename('out.dat', 'other.dat')", b"kept"),
        (
            "out.write(b'a' * 10); os.ftruncate(out.fileno(), 4); out.seek(4); out.write(b'kept')",
            b"aaaakept",
        ),
        (
            "out.write(b'lost'); out.close(); out = open('out.dat', 'wb', 0); out.write(b'kept')",
            b"kept",
        ),
        ("os.pwrite(out.fileno(), b'kept', 4)", b"\0\0\0\0kept"),
    ],
)
def test_contents_after_a_kill(library: Path, tmp_path: Path, script: str, content: bytes) -> None:
    status, _ = run(
        library, tmp_path, f"import os\nout = open('out.dat', 'wb', 0)\n{script}\n{KILL}"
    )
    assert status == -signal.SIGKILL
    (path,) = tmp_path.glob("*.dat")
    assert path.read_bytes() == content


def test_bytes_are_lost_without_survive(library: Path, tmp_path: Path) -> None:
    """Shows that the tests above can fail."""
    status, _ = run(
        library,
        tmp_path,
        f"import os\nout = open('out.dat', 'wb', 0)\nout.write(b'lost')\n{KILL}",
        "*.dat:size=64K:delay=0",
    )
    assert status == -signal.SIGKILL
    assert (tmp_path / "out.dat").read_bytes() == b""


def test_appended_bytes_are_written_once(library: Path, tmp_path: Path) -> None:
    status, _ = run(
        library,
        tmp_path,
        "import os\nout = open('out.dat', 'ab', 0)\nfor i in range(100): out.write(b'%d\\n' %"
        f" i)\n{KILL}",
    )
    assert status == -signal.SIGKILL
    assert (tmp_path / "out.dat").read_bytes() == b"".join(b"%d\n" % i for i in range(100))


def test_the_keeper_serves_children(library: Path, tmp_path: Path) -> None:
    child = f"import os\nout = open('child.dat', 'wb', 0)\nout.write(b'kept')\n{KILL}"
    started = f"subprocess.run([sys.executable, '-c', {child!r}])"
    script = (
        f"import os, subprocess, sys\nout = open('out.dat', 'wb', 0)\n{started}\nout.write(b'kept,"
        f" too')\n{KILL}"
    )
    run(library, tmp_path, script)
    assert (tmp_path / "child.dat").read_bytes() == b"kept"
    assert (tmp_path / "out.dat").read_bytes() == b"kept, too"


def test_a_closed_file_can_be_executed(library: Path, tmp_path: Path) -> None:
    copied = "out = open('x.dat', 'wb', 0); out.write(open('/bin/true', 'rb').read()); out.close()"
    script = (
        f"import os, subprocess\n{copied}\nos.chmod('x.dat', 0o755)\nsubprocess.run(['./x.dat'],"
        " check=True)"
    )
    assert run(library, tmp_path, script) == (0, "")


def test_the_log_names_a_missing_keeper(library: Path, tmp_path: Path) -> None:
    script = "open('out.dat', 'wb', 0).write(b'x')"
    env = environment(library, "*.dat:size=64K:survive") | {"PARIO_TRACE_DIR": "log"}
    run_command([sys.executable, "-c", script], cwd=tmp_path, env=env, status=0)
    run_command(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=env | {KEEPER: "nobody", "PARIO_TRACE_DIR": "log2"},
        status=0,
    )
    for log, reason in (
        ("log", "has not started this program on this host"),
        ("log2", "does not answer"),
    ):
        (outcome,) = [it for it in read([tmp_path / log]).audit if it.key == "survive"]
        assert (outcome.applied, outcome.effective) == ("yes", "no")
        assert reason in outcome.reason


@pytest.mark.system
def test_a_program_writes_its_bytes_after_the_keeper_ends(library: Path, tmp_path: Path) -> None:
    script = (
        "import sys\nout = open('out.dat', 'wb',"
        " 0)\nout.write(b'one')\nprint(flush=True)\nsys.stdin.read()\nout.write(b'two')"
    )
    keeper = Keeper()
    env = environment(library, "*.dat:size=64K:survive:delay=0") | {KEEPER: keeper.name}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with start_command([sys.executable, "-c", script], cwd=tmp_path, env=env, **pipes) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        keeper.finish()
        process.stdin.close()
        assert process.wait_for_end() == 0
    assert (tmp_path / "out.dat").read_bytes() == b"onetwo"


def test_stdio_keeps_its_own_buffer(library: Path, tmp_path: Path) -> None:
    script = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fopen(b"out.dat", b"w"))
libc.fputs(b"x" * 10000, out)
os.kill(os.getpid(), 9)
"""
    run(library, tmp_path, script)
    assert (tmp_path / "out.dat").stat().st_size >= 4096


def test_other_commands_have_no_keeper() -> None:
    with keeping({"PARIO_STREAMS": "*.dat:size=1M"}) as env:
        assert KEEPER not in env
