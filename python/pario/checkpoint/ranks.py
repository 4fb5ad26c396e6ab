"""The ranks that save or load together: what goes wrong on one of them is a CheckpointError on the others."""

from __future__ import annotations

from typing import Any

from pario.checkpoint.attached import Attached
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks, is_group
from pario.ranks import PATIENCE, MpiRanks, OneRank, Ranks

#: Of communicators, for what ends where it begins: an MPI has not many copies of them, and who was interrupted may have come to the next
#: meeting of theirs when others are still at the one before.
_kept: Attached[MpiRanks] = Attached(lambda comm: MpiRanks(comm.Dup(), error=CheckpointError), lambda ranks: ranks.comm.Free())


def ranks_of(comm: Any, patience: float = PATIENCE, *, kept: bool = False) -> Ranks:
    """``comm``: of mpi4py, a process group of PyTorch, None for a process alone, or Ranks. Collective.

    ``kept``: they need not be freed, and are the same next time, with the patience that was said last.
    """
    if comm is None:
        return OneRank()
    if isinstance(comm, Ranks):
        return comm
    if is_group(comm):
        return TorchRanks(comm, patience)
    if not hasattr(comm, "Dup") or not hasattr(comm, "improbe"):
        raise CheckpointError(f"{type(comm).__name__} is no communicator; expected one of mpi4py, a process group of PyTorch, or None")
    if not kept:
        return MpiRanks(comm.Dup(), patience, CheckpointError)
    ranks = _kept.of(comm)
    ranks.patience = patience
    return ranks
