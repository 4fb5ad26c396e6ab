"""The ranks that save or load together: an error of one of them is a CheckpointError on the
others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pario.attached import Attached
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks, is_group
from pario.mpi_ranks import MpiRanks
from pario.ranks import PATIENCE, OneRank, Ranks

#: The Ranks of each communicator, for calls that complete before they return: after an interrupt
#: one rank may be at the next call while others are still in the one before.
_kept: Attached[MpiRanks] = Attached(lambda comm: MpiRanks(comm, error=CheckpointError))


def unite(everyones: Sequence[Sequence[str]]) -> list[str]:
    """The names of all ranks, each once, in an order that all ranks use."""
    return list(dict.fromkeys(name for names in everyones for name in names))


def ranks_of(comm: Any, patience: float = PATIENCE, *, kept: bool = False) -> Ranks:
    """``comm``: a communicator of mpi4py, a process group of PyTorch, None for a process alone, or
    Ranks. Collective.

    ``kept``: the same Ranks in each call, with the patience of the latest one.
    """
    if comm is None:
        return OneRank()
    if isinstance(comm, Ranks):
        return comm
    if is_group(comm):
        return TorchRanks(comm, patience)
    if not hasattr(comm, "Dup") or not hasattr(comm, "Improbe"):
        raise CheckpointError(
            f"{type(comm).__name__} is no communicator; expected one of mpi4py, a process group of"
            " PyTorch, or None"
        )
    if not kept:
        return MpiRanks(comm, patience, CheckpointError)
    ranks = _kept.of(comm)
    ranks.patience = patience
    return ranks
