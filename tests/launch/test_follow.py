"""``pario report --follow`` shows a run while it is recorded, and ends with its report."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.launch.conftest import PARIO, PROGRAMS
from tests.mpi.conftest import MPIS, need
from tests.support.commands import Command, run_command, start_command
from tests.support.waiting import wait_until

pytestmark = pytest.mark.system
_FOLLOW = [*PARIO, "report", "logs", "--follow", "--interval", "0.2"]
_COUNTS = "--fail-above", "100%"


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of ``programs/blocks.c``."""
    program = tmp_path_factory.mktemp("blocks") / "blocks"
    run_command(["cc", "-w", "-o", str(program), str(PROGRAMS / "blocks.c")], status=0)
    return str(program)


@contextmanager
def record_run(blocks: str, place: Path) -> Iterator[Command]:
    """A run that has written a megabyte and waits until the FIFO ``pipe`` is opened."""
    os.mkfifo(place / "pipe")
    script = f"dd if=/dev/zero of=out bs=100k count=10 2>/dev/null; {blocks} fifo pipe"
    words = [*PARIO, "run", "--no-report", "-o", "logs", "--", "sh", "-c", script]
    with start_command(words, cwd=place) as command:
        wait_until(lambda: list(place.glob("logs/*.plog")), "the first log")
        yield command


def release(place: Path) -> None:
    """Lets the run end."""
    (place / "pipe").open("w").close()


def read_until(follower: Command, *texts: str) -> str:
    """Returns the lines of standard error up to the first one with ``texts``."""
    assert follower.stderr is not None
    lines = []
    for line in follower.stderr:
        lines.append(line)
        if all(text in line for text in texts):
            return "".join(lines)
    raise AssertionError(f"no {texts} in {lines}")


@contextmanager
def follow_run(place: Path, *options: str, **streams: Any) -> Iterator[Command]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    with start_command([*_FOLLOW, *options], cwd=place, **pipes) as follower:
        yield follower


def test_run_is_shown_in_lines_until_it_ends_and_then_reported(blocks: str, tmp_path: Path) -> None:
    with record_run(blocks, tmp_path) as command, follow_run(tmp_path, *_COUNTS) as follower:
        shown = read_until(follower, "inside open() of ", "wrote 1.02 MB (now 0 B/s)")
        assert all(line.startswith("pario: ") for line in shown.splitlines()), shown
        last = shown.splitlines()[-1]
        assert "Running for " in last, last
        assert "waiting for another process to open the other end of this FIFO" in last
        release(tmp_path)
        done = follower.finish()
        command.finish()
    assert done.returncode == 0, done.stderr
    assert "Running for " not in done.stdout
    assert "wrote 1.02 MB" in done.stdout and "exit status" not in done.stdout, done.stdout
    report = run_command([*PARIO, "report", "logs"], cwd=tmp_path, status=0)
    assert done.stdout == report.stdout


def test_interrupt_ends_the_view_with_the_report_so_far(blocks: str, tmp_path: Path) -> None:
    with record_run(blocks, tmp_path) as command, follow_run(tmp_path) as follower:
        read_until(follower, "inside open() of ")
        follower.send_signal(signal.SIGINT)
        done = follower.finish()
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Running for "), done.stdout
        assert "Traceback" not in done.stderr
        release(tmp_path)
        command.finish()


class Screen:
    """Collects the output on a pseudo-terminal, whose side for programs is ``program``."""

    def __init__(self) -> None:
        self._own, self.program = pty.openpty()
        self.text = ""
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        with suppress(OSError):  # all programs have closed it
            while True:
                self.text += os.read(self._own, 1 << 16).decode(errors="replace")


def test_terminal_shows_a_page_that_is_redrawn(blocks: str, tmp_path: Path) -> None:
    screen = Screen()
    with (
        record_run(blocks, tmp_path) as command,
        follow_run(tmp_path, stderr=screen.program) as follower,
    ):
        wait_until(lambda: screen.text.count("In progress") >= 3, "three pages with the open call")
        wait_until(lambda: screen.text.count("So far read ") >= 3, "three pages with rates")
        assert "pario: " not in screen.text, screen.text
        release(tmp_path)
        report = follower.finish().stdout
        assert "wrote 1.02 MB" in report and "So far read " not in report, report
        command.finish()


def test_view_ends_when_launcher_and_program_are_killed(blocks: str, tmp_path: Path) -> None:
    with record_run(blocks, tmp_path) as command, follow_run(tmp_path) as follower:
        read_until(follower, "inside open() of ")
        command.end()
        done = follower.finish()
    assert done.returncode == 0, done.stderr
    assert "Killed after " in done.stdout, done.stdout


def test_run_that_has_ended_is_reported_at_once(tmp_path: Path) -> None:
    words = [*PARIO, "run", "--no-report", "-o", "logs", "--", "cat", "/etc/hostname"]
    run_command(words, cwd=tmp_path, status=0)
    done = run_command(_FOLLOW, cwd=tmp_path, status=0)
    assert done.stderr == ""
    assert done.stdout == run_command([*PARIO, "report", "logs"], cwd=tmp_path).stdout


def test_directory_without_a_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    done = run_command(_FOLLOW, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("mpi", [pytest.param(MPIS["mpich-5"], id="mpich-5")])
def test_ranks_that_have_not_arrived_are_named_while_they_are_missing(
    mpi: Any, tmp_path: Path
) -> None:
    need(mpi)
    program = tmp_path / "skips"
    run_command([mpi.cc, "-w", "-o", str(program), str(PROGRAMS / "skips.c")], status=0)
    words = [*PARIO, "run", "--no-report", "-o", "logs", "--", *mpi.start(str(program), ranks=4)]
    with start_command(words, cwd=tmp_path) as command:
        wait_until(lambda: list(tmp_path.glob("logs/*.plog")), "the first log")
        with follow_run(tmp_path) as follower:
            read_until(follower, "ranks 1-2 have not arrived: rank 1 is inside read() of ")
            follower.send_signal(signal.SIGINT)
            assert "ranks 1-2 have not arrived" in follower.finish().stdout
        command.end()
