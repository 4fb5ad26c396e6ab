"""The ranks of an MPI program that shuffle together: from mpi4py, which only several ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pario.errors import ParioError
from pario.ranks import MpiRanks, OneRank, Ranks


def ranks_here(environment: Mapping[str, str]) -> Ranks:
    """Those that an MPI launcher started with this one. Indexes are made while the others wait, however long that takes."""
    if not any("RANK" in name or name == "SLURM_PROCID" for name in environment):
        return OneRank()  # without the time that the import takes
    from pario.launch.ranks import seat_of

    seat = seat_of(environment)
    if seat.size == 1:
        return OneRank()
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ParioError(f"several ranks need mpi4py (pip install mpi4py) and the MPI that started them: {error}") from error
    world = MPI.COMM_WORLD
    if world.size != seat.size:
        raise ParioError(f"mpi4py sees {world.size} of {seat.size} ranks: it belongs to another MPI than the launcher")
    return MpiRanks(world, math.inf)


def on_node(ranks: Ranks) -> int:
    """How many of them share this one's memory. Collective."""
    if ranks.comm is None:
        return 1
    from mpi4py import MPI

    node = ranks.comm.Split_type(MPI.COMM_TYPE_SHARED)
    count: int = node.size
    node.Free()
    return count


def gather(ranks: Ranks) -> Callable[[bytes], list[bytes]]:
    """A collective call that brings the bytes of each to all."""
    return (lambda mine: [mine]) if ranks.comm is None else ranks.comm.allgather
