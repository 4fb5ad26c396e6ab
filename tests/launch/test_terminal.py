"""``pario run`` at a terminal: signals reach the program once, and messages of pario are shown and
erased."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.launch.conftest import PARIO
from tests.support.commands import LAST_OUTPUT, run_command
from tests.support.waiting import LateError, wait_until

RUN = [*PARIO, "run", "--no-report", "--"]
COUNTS_INTERRUPTS = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("ready", flush=True)
while input() != "end": pass
"""


class Terminal:
    """An interactive shell on a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait_for(self, text: str) -> str:
        """Returns the output up to and including ``text``; the next call returns the rest."""

        def has_arrived() -> bool:
            if text not in self.seen and select.select([self.descriptor], [], [], 0.1)[0]:
                self.seen += os.read(self.descriptor, 4096).decode(errors="replace")
            return text in self.seen

        try:
            wait_until(has_arrived, f"{text!r} at the terminal")
        except LateError as late:
            raise LateError(f"{late}\n--- output\n{self.seen[-LAST_OUTPUT:]}") from None
        before, _, self.seen = self.seen.partition(text)
        return before + text


@contextmanager
def shell(place: Path) -> Iterator[Terminal]:
    child, descriptor = pty.fork()
    if child == 0:
        os.chdir(place)
        os.execvpe(
            "bash",
            ["bash", "--norc", "--noediting", "-i"],
            {**os.environ, "PS1": "$ ", "HISTFILE": "", "TERM": "xterm"},
        )
    terminal = Terminal(descriptor)
    try:
        terminal.type("stty -echo\n")
        terminal.wait_for("$ ")
        terminal.wait_for("$ ")
        yield terminal
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(descriptor)


def script(place: Path, text: str) -> str:
    (place / "program.py").write_text(text)
    return " ".join([*RUN, sys.executable, "program.py"])


def test_interrupt_key_reaches_the_program_once(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.type(script(tmp_path, COUNTS_INTERRUPTS) + "; echo status=$?\n")
        terminal.wait_for("ready")
        terminal.type("\x03")
        terminal.type("\n")  # a signal just before input() waits is handled when it returns
        terminal.wait_for("interrupted")
        terminal.type("end\n")
        assert "interrupted" not in terminal.wait_for("status=0")


def test_interrupt_key_ends_a_program_without_a_handler(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.type(" ".join([*RUN, "sh", "-c", "'echo ready; exec sleep 1000'"]) + "\n")
        terminal.wait_for("ready")
        terminal.type("\x03")
        terminal.wait_for("$ ")
        terminal.type("echo status=$?\n")
        terminal.wait_for("status=130")


def test_program_stops_and_continues_with_its_launcher(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.type(script(tmp_path, COUNTS_INTERRUPTS) + "; echo status=$?\n")
        terminal.wait_for("ready")
        terminal.type("\x1a")
        terminal.wait_for("Stopped")
        terminal.type("fg\n")
        terminal.wait_for("program.py")
        terminal.type("still there\nend\n")
        terminal.wait_for("$ ")


def test_standard_input_goes_to_the_program(tmp_path: Path) -> None:
    done = run_command([*RUN, "sort", "-n"], cwd=tmp_path, input="3\n1\n2\n")
    assert (done.stdout, done.stderr, done.returncode) == ("1\n2\n3\n", "", 0)


@pytest.mark.system
def test_log_directory_is_printed_to_a_terminal_and_not_to_a_pipe(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.type(" ".join([*RUN, "true"]) + "\n")
        terminal.wait_for(f"pario: recording into {tmp_path}/run.pario")
    assert run_command([*RUN, "true"], cwd=tmp_path, text=False).stderr == b""


#: Works until it reads a line. A value of the patience is inserted: seconds until progress is
#: shown.
PROGRESS = """
import sys
import pario.progress as module
module._PATIENCE
with module.progress("reading"): sys.stdin.readline()
print("read")
"""


@pytest.mark.system
def test_progress_of_a_wait_is_shown_on_a_terminal_only_and_erased(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(PROGRESS)
    patient = PROGRESS.replace("module._PATIENCE", "module._PATIENCE = 1000")
    (tmp_path / "quick.py").write_text(patient)
    with shell(tmp_path) as terminal:
        terminal.type(f"{sys.executable} quick.py\n\n")
        assert "reading" not in terminal.wait_for("$ ")
        terminal.type(f"{sys.executable} slow.py\n")
        shown = terminal.wait_for("reading")
        terminal.type("\n")
        shown += terminal.wait_for("$ ")
    assert "reading" in shown and "\x1b[2K" in shown.partition("reading")[2]  # erases the line
    piped = run_command([sys.executable, "slow.py"], cwd=tmp_path)
    assert (piped.stdout, piped.stderr) == ("read\n", "")


@pytest.mark.system
def test_start_takes_little_time(tmp_path: Path) -> None:
    """Prints the time (pytest -rP) without judging it, because machines differ; it has to stay
    under 0.3 s."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run_command([*RUN, "true"], cwd=tmp_path, status=0)
        times.append(time.perf_counter() - start)
    print(f"pario run -- true: median {sorted(times)[2]:.3f} s")
