"""Child processes of the long-running tools: watched, and ended with all they have started.

A child leads a process group of its own. It gets SIGINT when the tool dies, even by SIGKILL, and
its whole group is ended when the tool is interrupted.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
#: Signals that end a process group, and the seconds it has after each.
_ENDING = ((signal.SIGINT, 60), (signal.SIGTERM, 10), (signal.SIGKILL, 10))


def handle_signals() -> None:
    """Makes SIGINT, SIGTERM and SIGHUP exceptions, so that children are ended.

    SIGINT is also handled if the parent ignores it, as shells do for jobs in the background; an
    ignored SIGHUP (nohup) stays ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit_on_signal)


def _exit_on_signal(number: int, frame: object) -> None:
    sys.exit(128 + number)


def child_environment() -> dict[str, str]:
    """Returns the environment of children: programs of this Python's environment come first.

    PYTEST_ADDOPTS, which would run other tests than the tool asks for, is left out.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def find_program(name: str) -> str | None:
    """The path of a program in the environment of children."""
    return shutil.which(name, path=child_environment()["PATH"])


def spawn(command: list[str], log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Starts a child whose output is appended to a file. The caller ends it with end_group()."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_environment(),
            process_group=0,
            preexec_fn=_interrupt_with_parent(os.getpid()),
            **options,
        )


@contextmanager
def child_running(
    command: list[str], log: Path, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    child = spawn(command, log, **options)
    try:
        yield child
    finally:
        end_group(child)


def run_child(
    command: list[str], log: Path, tick: Callable[[], None], interval: float = 1.0, **options: Any
) -> int:
    """Runs a child to its end and returns its status. Calls `tick` every `interval` seconds."""
    with child_running(command, log, **options) as child:
        while True:
            try:
                return child.wait(interval)
            except subprocess.TimeoutExpired:
                tick()


@dataclass(frozen=True)
class Done:
    """One of the commands of run_children that has ended."""

    key: str
    status: int
    seconds: float
    output: str


def run_children(
    commands: Iterable[tuple[str, list[str]]],
    jobs: int,
    folder: Path,
    tick: Callable[[], None],
    **options: Any,
) -> Generator[Done, None, None]:
    """Runs commands, `jobs` at a time, and yields them as they end. `folder`: for their output."""
    waiting = iter(commands)
    running: dict[str, tuple[subprocess.Popen[bytes], Path, float]] = {}
    try:
        while True:
            for key, command in islice(waiting, jobs - len(running)):
                log = folder / f"{key.replace('/', '_')}.log"
                log.unlink(missing_ok=True)
                child = spawn(command, log, **options)
                running[key] = (child, log, time.monotonic())
            if not running:
                return
            for key in [key for key, (child, *_) in running.items() if child.poll() is not None]:
                child, log, start = running.pop(key)
                seconds = time.monotonic() - start
                output = log.read_text(encoding="utf-8", errors="replace")
                yield Done(key, child.returncode, seconds, output)
            tick()
            time.sleep(0.1)
    finally:
        for child, *_ in running.values():
            end_group(child)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a child and the rest of its process group. A second interrupt kills them at once."""
    try:
        for number, seconds in _ENDING if child.poll() is None else ():
            _signal_group(child, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
                break
    finally:
        _signal_group(child, signal.SIGKILL)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):  # the whole group has ended
        os.killpg(child.pid, number)


def _interrupt_with_parent(parent: int) -> Callable[[], None]:
    """A function for the child, before its program starts."""

    def request_signal() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # the parent died before the call
            os.kill(os.getpid(), signal.SIGINT)

    return request_signal
