"""Runs a command that has so many seconds. Where they are over, or this process is to end, it ends
with all that it has started."""

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
#: What processes have between being asked to end and being ended.
GRACE_SECONDS = 3.0
_GONE = ("Z", "X")


@dataclass(frozen=True)
class _Process:
    """One of /proc. ``start`` tells it from a later one with its number."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start: str


@dataclass(frozen=True)
class Limit:
    """The time limit of a command, and the file for its output: launchers comment at length on
    ranks that we end."""

    seconds: float
    said: Path


def run_limited(
    executable: Path, command: Sequence[str], environment: Mapping[str, str], limit: Limit
) -> Ending:
    """Runs the command, without standard input and in a process group of its own, and waits for it;
    an exception meanwhile, as the handlers of signals raise them, ends it, too. Raises ParioError
    where even a resolved program cannot be started.
    """
    streams = [
        (
            os.POSIX_SPAWN_OPEN,
            0,
            os.devnull,
            os.O_RDONLY,
            0,
        ),  # a background process that reads a terminal is stopped
        (os.POSIX_SPAWN_OPEN, 1, str(limit.said), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = spawn(executable, command, environment, setpgroup=0, file_actions=streams)
    try:
        late = not _over(child, limit.seconds)
        if late:
            end(child)
    except BaseException:
        with _undisturbed():
            end(child)
        os.waitpid(child, 0)
        raise
    return Ending.of(os.waitpid(child, 0)[1], late=late, pid=child)


def _over(child: int, seconds: float) -> bool:
    """Whether it has ended by then; it is still to be waited for."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_NAP)
    return True


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C comes too early. To block it here is not enough: it would come to another
    thread, as libraries have them."""
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
    """Ends a child that leads a process group and was not waited for, and all that it has started:
    launchers give ranks sessions of their own.
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
    with suppress(OSError):  # where there is no /proc
        os.killpg(child, signal.SIGKILL)


def _family(child: int, known: dict[int, str]) -> list[_Process]:
    """The living of a child and of what it has started. ``known``: those found before, by their
    numbers, which others may have later."""
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
    for path in Path("/proc").glob("[0-9]*"):  # which may be missing
        with suppress(OSError):  # it has just ended
            fields = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield _Process(
                int(path.name),
                fields[0],
                int(fields[1]),
                int(fields[2]),
                int(fields[3]),
                fields[19],
            )
