"""Runs a command with a time limit. At the limit, or on a signal that ends this process, the
command and all its descendants are ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pario.see.launch.process import Ending, spawn

_NAP = 0.02
#: The time between SIGTERM and SIGKILL.
GRACE_SECONDS = 3.0
_GONE = ("Z", "X")


@dataclass(frozen=True)
class _Process:
    """A process of /proc. ``start`` distinguishes it from a later process with the same PID."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: str


@dataclass(frozen=True)
class Limit:
    """The time limit of a command, and the file for its output, because launchers print long
    messages about ranks that are ended."""

    seconds: float
    output: Path


def run_limited(
    executable: Path, command: Sequence[str], environment: Mapping[str, str], limit: Limit
) -> Ending:
    """Run the command, without standard input and in its own process group, and wait for it. An
    exception meanwhile, such as one of a signal handler, ends it, too. Raises ParioError if a
    resolved program cannot be started.
    """
    streams = [
        # The system stops a background process that reads from a terminal.
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(limit.output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = spawn(executable, command, environment, setpgroup=0, file_actions=streams)
    try:
        late = not _wait_for_end(child, limit.seconds)
        if late:
            end(child)
    except BaseException:
        with _ignore_signals():
            end(child)
        os.waitpid(child, 0)
        raise
    return Ending.of(os.waitpid(child, 0)[1], late=late, pid=child)


def _wait_for_end(child: int, seconds: float) -> bool:
    """Wait until the child has ended; return False after ``seconds``. Does not reap the child."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_NAP)
    return True


@contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore a second Ctrl-C while the command is ended. Blocking the signals in this thread is not
    enough: a thread of a library would receive them."""
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    known = {
        number: handler for number in asking if (handler := signal.getsignal(number)) is not None
    }
    before = known if threading.current_thread() is threading.main_thread() else {}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end(child: int) -> None:
    """End a child and all its descendants, because launchers start ranks in their own sessions. The
    child leads a process group and is not reaped yet.
    """
    known: dict[int, str] = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_SECONDS
        asked: set[tuple[int, str]] = set()
        while (living := _family(child, known)) and time.monotonic() < deadline:
            for one in living:
                if (one.pid, one.start) not in asked:
                    asked.add((one.pid, one.start))
                    with suppress(OSError):
                        os.kill(one.pid, number)
            time.sleep(_NAP)
    with suppress(OSError):  # the only way without /proc
        os.killpg(child, signal.SIGKILL)


def _family(child: int, known: dict[int, str]) -> list[_Process]:
    """Return the living processes among a child and its descendants. ``known`` maps the PIDs found
    before to start times, and is updated; a recycled PID leaves it."""
    processes = list(_processes())
    for one in processes:
        if known.get(one.pid, one.start) != one.start:
            del known[one.pid]
    numbers = {child, *known}
    found: dict[int, _Process] = {}
    size = -1
    while len(found) != size:
        size = len(found)
        for one in processes:
            if not numbers.isdisjoint((one.pid, one.parent, one.group, one.session)):
                found[one.pid] = one
                numbers.add(one.pid)
    known.update((one.pid, one.start) for one in found.values())
    return [one for one in found.values() if one.state not in _GONE]


def _processes() -> Iterator[_Process]:
    for path in Path("/proc").glob("[0-9]*"):  # none without /proc
        with suppress(OSError):  # the process has just ended
            fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield _Process(
                int(path.name),
                fields[0],
                int(fields[1]),
                int(fields[2]),
                int(fields[3]),
                fields[19],
            )
