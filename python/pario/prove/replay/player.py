"""One process of a replay: ``python -m pario.prove.replay.player DIRECTORY [pauses] [settle]
[mpi]``, with MPI on as many ranks as the run had.

Leaves ``DIRECTORY/SEAT.done`` with the seconds that it played, or ``SEAT.failed`` with what went
wrong.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pario._native import ReplayPlayer
from pario.errors import ParioError
from pario.prove.replay.errors import ApartError
from pario.prove.replay.script import BARRIER, END, NOT_NATIVE, OPERATION, WAIT, load
from pario.prove.replay.verbs import MOVING, numbers

_NAP = 0.0005
_PR_SET_PDEATHSIG = 1


class Endings:
    """Which processes of the run have been played to their ends, for all players of a host."""

    def __init__(self, directory: Path, processes: int) -> None:
        self.count = max(processes, 1)
        path = directory / "ended"
        with path.open("a+b") as file:
            os.truncate(file.fileno(), self.count)
            self._ended = mmap.mmap(file.fileno(), self.count)

    def mark(self, process: int) -> None:
        """It has ended."""
        self._ended[process] = 1

    def wait(self, processes: list[int]) -> None:
        """Returns when all of them have ended."""
        while not all(self._ended[process] for process in processes):
            time.sleep(_NAP)


def player_for(about: Any, operations: Any) -> ReplayPlayer:
    """The native player of a process."""
    return ReplayPlayer(
        [os.fsencode(path) for path in about["paths"]], about["slots"], largest_of(operations)
    )


def play(
    player: ReplayPlayer,
    operations: Any,
    pauses: bool,
    other: Callable[[Any], None],
    at_end: Callable[[], None] = lambda: None,
) -> float:
    """Plays all operations, natively as far as possible; the seconds that took."""
    rows = (
        np.ascontiguousarray(operations).view(np.uint8).reshape(len(operations), OPERATION.itemsize)
    )
    special = np.flatnonzero(operations["verb"] >= NOT_NATIVE)
    calls = operations[special].tolist()
    begin, at = time.perf_counter(), 0
    for place, call in zip(special.tolist(), calls, strict=True):
        if place > at:
            player.play(rows[at:place], pauses)
        if pauses and call[2]:
            time.sleep(call[2] / 1e9)
        other(call)
        at = place + 1
    player.play(rows[at:], pauses)
    at_end()
    return time.perf_counter() - begin


def settle(root: str) -> None:
    """Closes what is still open below a directory: what buffers hold of it would be written when
    nobody measures any more."""
    ctypes.CDLL(None).fflush(None)
    below = f"{os.path.realpath(root)}/"  # as the kernel names it
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(link.readlink()).startswith(below):
                os.close(int(link.name))


def largest_of(operations: Any) -> int:
    """The most bytes that one of the native calls moves."""
    moving = np.isin(operations["verb"], [numbers()[name] for name in MOVING])
    return int(operations["length"][moving].max(initial=0))


def alone(directory: Path, wanted: Collection[str]) -> None:
    """Without MPI: a process for each seat."""
    about, operations = load(directory, 0)
    endings = Endings(
        directory, 1 + max((process for wait in about["waits"] for process in wait), default=0)
    )
    seat = 0
    if about["seats"] > 1:
        seat = forked(about["seats"])
        about, operations = load(directory, seat)

    def special(call: Any) -> None:
        path, process, verb = call[3], call[5], call[6]
        if verb == WAIT:
            endings.wait(about["waits"][path])
        elif verb == END and process < endings.count:
            endings.mark(process)

    def at_end() -> None:
        if "settle" in wanted:
            settle(about["shared"][0])

    report(
        directory,
        seat,
        lambda: play(
            player_for(about, operations), operations, "pauses" in wanted, special, at_end
        ),
    )


def forked(seats: int) -> int:
    """Makes so many processes; returns in each of them, with its seat. Who called ends with them,
    or with the first that fails: others may wait for it, and end, too.
    """
    parent, library = os.getpid(), ctypes.CDLL(None)
    for seat in range(seats):
        if os.fork() == 0:
            library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
            if os.getppid() != parent:
                raise SystemExit(1)
            return seat
    for _ in range(seats):
        if os.wait()[1]:
            raise SystemExit(1)
    raise SystemExit(0)


def together(directory: Path, wanted: Collection[str]) -> None:
    """With MPI: each rank its seat."""
    from pario.prove.replay.ranks import Ranks

    ranks = Ranks()

    def work() -> float:
        ranks.expect_shared(directory)
        about, operations = load(directory, ranks.rank)
        scratch, log = map(Path, about["shared"])
        ranks.expect_shared(scratch)
        ranks.expect_shared(log, made_by_each=True)
        calls = ranks.prepare(about)
        operations = calls.native(operations)
        player = player_for(about, operations)
        calls.use(player)

        def special(call: Any) -> None:
            if call[6] == BARRIER:
                calls.meet(call[3])
            else:
                calls.play(call)

        def at_end() -> None:
            if "settle" in wanted and not calls.still_open:
                settle(about["shared"][0])

        ranks.meet()
        return play(player, operations, "pauses" in wanted, special, at_end)

    def fail(error: Exception) -> None:
        if isinstance(error, ApartError):
            ranks.meet()  # whoever sees the directory shall have said so
        ranks.abort()

    report(directory, ranks.rank, work, fail)


def report(
    directory: Path,
    seat: int,
    work: Callable[[], float],
    fail: Callable[[Exception], None] | None = None,
) -> None:
    """Does the work and leaves what came of it."""
    try:
        (directory / f"{seat}.done").write_text(repr(work()))
    except (
        Exception
    ) as error:  # what the program did that was played is not known here: anything may go wrong
        with suppress(OSError):  # there is no such directory on this host: the status has to do
            (directory / f"{seat}.failed").write_text(told(error))
        if fail:
            fail(error)
        raise SystemExit(1) from error


def told(error: Exception) -> str:
    """In words; the native player's errors name what failed themselves."""
    if isinstance(error, OSError) and error.strerror and not error.filename:
        return error.strerror
    return str(error) if isinstance(error, ParioError) else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # Python would not look at it before the native part has ended
    (together if "mpi" in sys.argv[2:] else alone)(Path(sys.argv[1]), sys.argv[2:])
