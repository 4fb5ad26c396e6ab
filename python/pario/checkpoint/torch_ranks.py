"""Ranks of a process group of PyTorch, without MPI. Their messages lie in the group's store, so
that any backend will do."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from pario.checkpoint.store_ranks import Meeting, StoreRanks
from pario.ranks import PATIENCE


def is_group(value: Any) -> bool:
    """True for a process group of PyTorch, which is not imported for this."""
    distributed = sys.modules.get("torch.distributed")
    return (
        distributed is not None
        and distributed.is_available()
        and isinstance(value, distributed.ProcessGroup)
    )


@contextmanager
def _name_lost_store() -> Iterator[None]:
    """Raises ProcessLookupError, as for a dead rank, if the process that keeps the store has ended:
    rank 0, or torchrun, which ends its processes then."""
    try:
        yield
    except RuntimeError as error:
        reason = f"rank 0 has ended, with the store of the group: {str(error).splitlines()[0]}"
        raise ProcessLookupError(errno.ESRCH, reason) from None


class TorchStore:
    """A store of PyTorch, and a copy of it that receives."""

    def __init__(self, store: Any) -> None:
        self._store, self._waiting = store.clone(), store.clone()

    def count(self, key: str) -> int:
        """Adds 1 to a number."""
        with _name_lost_store():
            return int(self._store.add(key, 1))

    def put(self, key: str, value: bytes) -> None:
        """Stores an entry."""
        with _name_lost_store():
            self._store.set(key, value)

    def take(self, key: str) -> bytes | None:
        """Removes and returns an entry; None if there is none."""
        with _name_lost_store():
            if not self._waiting.check([key]):
                return None
            found: bytes = self._waiting.get(key)
            self._waiting.delete_key(key)
        return found


def _meet(group: Any, purpose: str) -> Meeting:
    from torch import distributed

    store = TorchStore(distributed.distributed_c10d._get_default_store())
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    return Meeting(group.group_name + purpose, rank, size, store)


#: The Meetings of a group, by their purpose.
_groups: WeakKeyDictionary[Any, dict[str, Meeting]] = WeakKeyDictionary()


class TorchRanks(StoreRanks):
    """The ranks of a process group. Collective the first time.

    ``purpose``: threads that make collective calls at the same time give different ones.
    """

    def __init__(self, group: Any, patience: float = PATIENCE, purpose: str = "") -> None:
        of_group = _groups.setdefault(group, {})
        if purpose not in of_group:
            of_group[purpose] = _meet(group, purpose)
        super().__init__(of_group[purpose], patience)
