"""The ranks that save or load together: what goes wrong on one of them is a CheckpointError on the others."""

from __future__ import annotations

from typing import Any

from pario.checkpoint.attached import Attached
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks, is_group
from pario.ranks import PATIENCE, MpiRanks, OneRank, Ranks

#: Copies of communicators, for what ends where it begins: an MPI has not many.
_copies: Attached[Any] = Attached(lambda comm: comm.Dup(), lambda copy: copy.Free())


def ranks_of(comm: Any, patience: float = PATIENCE, *, kept: bool = False) -> Ranks:
    """``comm``: of mpi4py, a process group of PyTorch, None for a process alone, or Ranks. Collective.

    ``kept``: what is made of it need not be freed.
    """
    if comm is None:
        return OneRank()
    if isinstance(comm, Ranks):
        return comm
    if is_group(comm):
        return TorchRanks(comm, patience)
    if not hasattr(comm, "Dup") or not hasattr(comm, "improbe"):
        raise CheckpointError(f"{type(comm).__name__} is no communicator; expected one of mpi4py, a process group of PyTorch, or None")
    return MpiRanks(_copies.of(comm) if kept else comm.Dup(), patience, CheckpointError)
