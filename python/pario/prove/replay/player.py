"""One process of a replay: ``python -m pario.prove.replay.player DIRECTORY [pauses] [close_files]
[mpi]``, with MPI on as many ranks as in the run.

Writes its seconds to ``DIRECTORY/SEAT.done``, or its error to ``SEAT.failed``.
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
    """The processes of the run that the players of this host have finished; in shared memory."""

    def __init__(self, directory: Path, processes: int) -> None:
        self.count = max(processes, 1)
        path = directory / "ended"
        with path.open("a+b") as file:
            os.truncate(file.fileno(), self.count)
            self._ended = mmap.mmap(file.fileno(), self.count)

    def mark(self, process: int) -> None:
        """Mark a process as ended."""
        self._ended[process] = 1

    def wait(self, processes: list[int]) -> None:
        """Wait until all of the processes have ended."""
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
    """Play all operations, natively as far as possible, the others by ``other``; returns the
    seconds."""
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


def close_files(root: str) -> None:
    """Close the open files below a directory, so that their buffers are written while the replay is
    measured."""
    ctypes.CDLL(None).fflush(None)
    below = f"{os.path.realpath(root)}/"  # the kernel's name of it
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(link.readlink()).startswith(below):
                os.close(int(link.name))


def largest_of(operations: Any) -> int:
    """The largest number of bytes that a native call moves."""
    moving = np.isin(operations["verb"], [numbers()[name] for name in MOVING])
    return int(operations["length"][moving].max(initial=0))


def play_processes(directory: Path, wanted: Collection[str]) -> None:
    """Play without MPI, with a process for each seat."""
    about, operations = load(directory, 0)
    endings = Endings(
        directory, 1 + max((process for wait in about["waits"] for process in wait), default=0)
    )
    seat = 0
    if about["seats"] > 1:
        seat = fork_seats(about["seats"])
        about, operations = load(directory, seat)

    def special(call: Any) -> None:
        path, process, verb = call[3], call[5], call[6]
        if verb == WAIT:
            endings.wait(about["waits"][path])
        elif verb == END and process < endings.count:
            endings.mark(process)

    def at_end() -> None:
        if "close_files" in wanted:
            close_files(about["shared"][0])

    report(
        directory,
        seat,
        lambda: play(
            player_for(about, operations), operations, "pauses" in wanted, special, at_end
        ),
    )


def fork_seats(seats: int) -> int:
    """Fork a process for each seat; returns its seat in each of them. The calling process ends with
    them, or with the first that fails, and then the others end, too: they may wait for it.
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


def play_rank(directory: Path, wanted: Collection[str]) -> None:
    """Play the seat of this rank, with MPI."""
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
                calls.barrier(call[3])
            else:
                calls.play(call)

        def at_end() -> None:
            if "close_files" in wanted:
                calls.close()
                close_files(about["shared"][0])

        ranks.barrier()
        return play(player, operations, "pauses" in wanted, special, at_end)

    def fail(error: Exception) -> None:
        if isinstance(error, ApartError):
            ranks.barrier()  # ranks that see the directory write their errors before the abort
        ranks.abort()

    report(directory, ranks.rank, work, fail)


def report(
    directory: Path,
    seat: int,
    work: Callable[[], float],
    fail: Callable[[Exception], None] | None = None,
) -> None:
    """Do the work, and write its seconds or its error into ``directory``."""
    try:
        (directory / f"{seat}.done").write_text(repr(work()))
    except Exception as error:  # the played calls of an unknown program may raise any error
        with suppress(OSError):  # if this host lacks the directory, only the exit status remains
            (directory / f"{seat}.failed").write_text(describe_error(error))
        if fail:
            fail(error)
        raise SystemExit(1) from error


def describe_error(error: Exception) -> str:
    """Describe an error for the user; those of the native player name the failed call."""
    if isinstance(error, OSError) and error.strerror and not error.filename:
        return error.strerror
    return str(error) if isinstance(error, ParioError) else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        # Python would handle the signal only after the native part.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    (play_rank if "mpi" in sys.argv[2:] else play_processes)(Path(sys.argv[1]), sys.argv[2:])
