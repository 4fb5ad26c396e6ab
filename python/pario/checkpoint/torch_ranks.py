"""Ranks of PyTorch: of a process group, where there is no MPI. They leave each other messages in the store that the group was made with."""

from __future__ import annotations

import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pario.checkpoint.errors import CheckpointError
from pario.interrupts import check
from pario.ranks import MOVED, PATIENCE, Ranks

#: Seconds after which a wait looks for an interrupt.
_BREATH = 0.5
#: How often ranks were made of a group, by its name: the same on all of them.
_made: Counter[str] = Counter()


def is_group(value: Any) -> bool:
    """Whether it is a process group of PyTorch, which is not imported for it."""
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and isinstance(value, distributed.ProcessGroup)


class TorchRanks(Ranks):
    """Those of a process group, whatever its backend. A message is an entry of the store, and is gone when it was read."""

    error = CheckpointError

    def __init__(self, group: Any, patience: float = PATIENCE) -> None:
        from torch import distributed

        self.rank, self.size, self.patience = distributed.get_rank(group), distributed.get_world_size(group), patience
        self._group = group
        name = group.group_name
        self._name = f"pario/{name}/{_made[name]}"
        _made[name] += 1
        self._store = distributed.distributed_c10d._get_default_store().clone()  # one for each thread that waits
        self._sent: Counter[int] = Counter()
        self._taken: Counter[int] = Counter()
        self._beats = 0  # how often others had said that they get on, when this one looked

    def again(self) -> Ranks:
        """The same ranks, with other names of messages."""
        return TorchRanks(self._group, self.patience)

    def _send(self, rank: int, message: Any) -> None:
        self._store.set(f"{self._name}/{self.rank}/{rank}/{self._sent[rank]}", pickle.dumps(message))
        self._sent[rank] += 1

    def _tell_that_it_moves(self, others: Iterable[int]) -> None:
        self._store.add(self._count(from_first=self.is_first), 1)  # messages would wait behind each other

    def _count(self, *, from_first: bool) -> str:
        return f"{self._name}/moves of {'rank 0' if from_first else 'others'}"

    def _next(self, rank: int) -> str:
        return f"{self._name}/{rank}/{self.rank}/{self._taken[rank]}"

    def _receive(self, rank: int | None, deadline: float) -> tuple[int, Any] | None:
        others = [other for other in range(self.size) if other != self.rank] if rank is None else [rank]
        awaited = min(others, key=lambda other: self._taken[other])  # whoever has said least so far
        if not self._comes(self._next(awaited), deadline):
            awaited = next((other for other in others if self._store.check([self._next(other)])), -1)
        if awaited >= 0:
            return awaited, self._take(awaited)
        before, self._beats = self._beats, self._store.add(self._count(from_first=not self.is_first), 0)
        return None if self._beats == before else (others[0], (MOVED, None) if self.is_first else (MOVED, "", None))

    def _comes(self, key: str, deadline: float) -> bool:
        from torch.distributed import DistStoreError

        while (left := deadline - time.monotonic()) > 0:
            check()  # PyTorch waits whatever signals come
            try:
                self._store.wait([key], timedelta(seconds=min(max(left, 0.001), _BREATH)))
            except DistStoreError:
                continue
            return True
        return bool(self._store.check([key]))

    def _take(self, rank: int) -> Any:
        key = self._next(rank)
        self._taken[rank] += 1
        message = pickle.loads(self._store.get(key))
        self._store.delete_key(key)
        return message
