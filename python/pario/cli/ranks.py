"""The processes of a launcher that run one command together. mpi4py and PyTorch are imported for
several processes only."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from pario import wording
from pario.cli.one_process import refuse, run_once
from pario.errors import ParioError
from pario.interrupts import check, postpone_interrupt
from pario.launchers import TORCHRUN, Launch, launch_of
from pario.paths import is_url
from pario.progress import Show, show_progress
from pario.publishing import new_file
from pario.ranks import OneRank, Ranks

#: Seconds in which ranks that have ended their work wait for each other.
_LAST = 10


@contextmanager
def ranks_here(environment: Mapping[str, str], command: str) -> Iterator[Ranks]:
    """The ranks that a launcher started with this one. Their patience is infinite, because the
    first rank makes indexes while the others wait.

    An error of the body is raised on the first rank; others end with status 2, so that the user
    reads one line. The same holds if the processes cannot exchange messages. Any exception of one
    rank ends the others. An interrupt is raised at the next :func:`check`, never between the
    messages of a collective call, for which the others would wait.
    """
    launch = launch_of(environment)
    if launch.seat.size == 1:
        yield OneRank()
        return
    with (
        postpone_interrupt(),
        _torch_ranks(launch, command)
        if launch.launcher == TORCHRUN
        else _mpi_ranks(launch, command) as ranks,
    ):
        ranks.patience, ranks.error = math.inf, ParioError
        try:
            yield ranks
        except BaseException as error:  # the others wait for this rank
            ranks.leave(error)
            if not isinstance(error, ParioError | OSError) or ranks.is_first or ranks.first_is_lost:
                raise
            raise SystemExit(2) from None


@contextmanager
def _mpi_ranks(launch: Launch, command: str) -> Iterator[Ranks]:
    """The ranks of an MPI program."""
    if not launch.mpi:
        refuse(
            launch,
            f"{launch.seat.size} processes that are no MPI ranks cannot share this job:"
            f" {_remedy(launch, command)}",
        )
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        refuse(
            launch,
            "several ranks need mpi4py (pip install mpi4py) and the MPI that started them:"
            f" {error}; or {run_once(launch, command)}",
        )
    world = MPI.COMM_WORLD
    if world.size != launch.seat.size:
        refuse(
            launch,
            "mpi4py belongs to another MPI than the launcher: install the one of"
            f" {launch.launcher}, or {run_once(launch, command)}",
        )
    from pario.mpi_ranks import MpiRanks

    yield MpiRanks(world)


@contextmanager
def _torch_ranks(launch: Launch, command: str) -> Iterator[Ranks]:
    """The ranks of torchrun."""
    try:
        from torch import distributed

        distributed.init_process_group("gloo")
    except (ImportError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        refuse(
            launch,
            f"several processes of {TORCHRUN} need PyTorch and the variables of {TORCHRUN}:"
            f" {reason}; or {run_once(launch, command)}",
        )
    from pario.checkpoint.torch_ranks import TorchRanks

    try:
        yield TorchRanks(distributed.group.WORLD)
    finally:
        with suppress(RuntimeError):  # the first rank may keep the store: it ends last
            distributed.monitored_barrier(timeout=timedelta(seconds=_LAST))
        distributed.destroy_process_group()


def _remedy(launch: Launch, command: str) -> str:
    if launch.launcher != "srun":
        return f"mpiexec -n {launch.seat.size} pario {command} ..., or {run_once(launch, command)}"
    return f"srun --mpi=pmix (or pmi2) makes ranks of them, or {run_once(launch, command)}"


def find_first_text(ranks: Ranks, text: str) -> str:
    """The first text of any rank that is not empty. Collective."""
    return ranks.together(
        "the first text", lambda: text, lambda found: next(filter(None, found), "")
    )


@contextmanager
def show_together(output: str, ranks: Ranks) -> Iterator[Show]:
    """Shows the progress of the first rank as that of all. Raises a postponed interrupt."""
    with show_progress(output) as line:

        def show(done: int, whole: int) -> None:
            check()
            if ranks.is_first:
                line(done * ranks.size, whole * ranks.size)

        yield show


def require_local(output: str, ranks: Ranks) -> None:
    """Raises ParioError if several ranks are to write an object of a store."""
    if ranks.size > 1 and is_url(output):
        raise ParioError(f"{output}: several ranks write to a shared file system only")


def require_shared(ranks: Ranks, inputs: Sequence[str], output: str) -> None:
    """Raises ParioError if the ranks see different inputs, or different directories of the output.
    Collective."""
    if ranks.size == 1:
        return
    with ExitStack() as probes:

        def look() -> tuple[str, list[tuple[int, int] | None]]:
            part = ""
            if ranks.is_first:
                with suppress(OSError):  # the work reports it, or writes elsewhere
                    part = str(probes.enter_context(new_file(Path(output).absolute())).part)
            return part, [_state_of(path) for path in inputs]

        def compare(found: list[tuple[str, list[tuple[int, int] | None]]]) -> str:
            for number, path in enumerate(inputs):
                others = [
                    rank
                    for rank, (_, states) in enumerate(found)
                    if states[number] != found[0][1][number]
                ]
                if others:
                    raise ParioError(
                        f"{wording.printable(path)}: rank {wording.ranks(others)} does not see the"
                        f" file of rank 0; {_SHARED}"
                    )
            return found[0][0]

        part = ranks.together("the first look at the files", look, compare)

        def judge(found: list[bool]) -> None:
            if others := [rank for rank, sees in enumerate(found) if not sees]:
                raise ParioError(
                    f"{wording.printable(str(Path(output).absolute().parent))}: rank"
                    f" {wording.ranks(others)} does not see the directory of rank 0; {_SHARED}"
                )

        ranks.together(
            "the first look at the output", lambda: not part or os.path.lexists(part), judge
        )


_SHARED = "several ranks need a file system that all of them share"


def _state_of(path: str) -> tuple[int, int] | None:
    """Size and time of modification of a file; None if it cannot be seen, or is an object."""
    if is_url(path):
        return None
    try:
        facts = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns
