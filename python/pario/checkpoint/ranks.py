"""The ranks that save or load together: what goes wrong on one of them is a CheckpointError on the others."""

from __future__ import annotations

from typing import Any

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks, is_group
from pario.ranks import PATIENCE, MpiRanks, OneRank, Ranks

#: Attribute of communicators that holds the copy for what ends where it begins.
_copy_key: int | None = None


def _kept_copy(comm: Any) -> Any:
    """A copy of a communicator that is made once, and freed with it: an MPI has not many."""
    global _copy_key
    from mpi4py import MPI

    if _copy_key is None:
        _copy_key = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, copy: copy.Free())
    copy = comm.Get_attr(_copy_key)
    if copy is None:
        copy = comm.Dup()
        comm.Set_attr(_copy_key, copy)
    return copy


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
    return MpiRanks(_kept_copy(comm) if kept else comm.Dup(), patience, CheckpointError)
