"""The ranks of an MPI program that shuffle together. mpi4py is imported for several ranks only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pario.cli.one_process import refuse, run_once
from pario.launchers import Launch, launch_of
from pario.ranks import OneRank, Ranks


def ranks_here(environment: Mapping[str, str], command: str) -> Ranks:
    """The ranks that an MPI launcher started with this one. Their patience is infinite, because the
    first rank makes indexes while the others wait.

    Refuses if the processes are no ranks of one MPI program: ParioError on the first of them,
    SystemExit on the others, so that the user reads one line.
    """
    launch = launch_of(environment)
    if launch.seat.size == 1:
        return OneRank()
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

    return MpiRanks(world, math.inf)


def _remedy(launch: Launch, command: str) -> str:
    if launch.launcher != "srun":
        return f"mpiexec -n {launch.seat.size} pario {command} ..., or {run_once(launch, command)}"
    return f"srun --mpi=pmix (or pmi2) makes ranks of them, or {run_once(launch, command)}"


def on_node(ranks: Ranks) -> int:
    """The number of ranks on this rank's node. Collective."""
    if ranks.comm is None:
        return 1
    from mpi4py import MPI

    node = ranks.comm.Split_type(MPI.COMM_TYPE_SHARED)
    count: int = node.size
    node.Free()
    return count


def gather(ranks: Ranks) -> Callable[[bytes], list[bytes]]:
    """Returns a collective call that sends the bytes of each rank to all ranks."""
    return (lambda mine: [mine]) if ranks.comm is None else ranks.comm.allgather
