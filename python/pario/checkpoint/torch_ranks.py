"""Ranks of a process group of PyTorch, without MPI. Their messages lie in the group's store, so
that any backend will do."""

from __future__ import annotations

import pickle
import sys
import time
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from pario._native import Comm
from pario.checkpoint.errors import CheckpointError
from pario.interrupts import check
from pario.ranks import PATIENCE, Ranks, node_name

#: Seconds between two looks for a message, in the store, which is a process.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 2e-2
#: The number of Comms of a group so far, by its name: equal on all ranks.
_made: Counter[str] = Counter()


def is_group(value: Any) -> bool:
    """True for a process group of PyTorch, which is not imported for this."""
    distributed = sys.modules.get("torch.distributed")
    return (
        distributed is not None
        and distributed.is_available()
        and isinstance(value, distributed.ProcessGroup)
    )


class StoreTransport:
    """The messages of a :class:`pario._native.Comm` by a store of PyTorch. The messages to a rank
    are numbered; an entry is deleted when it is received.

    ``store`` sends, in any thread; ``waiting``, a copy of it, receives.
    """

    def __init__(self, store: Any, waiting: Any, name: str, rank: int) -> None:
        self._store, self._waiting, self._name, self._rank = store, waiting, name, rank
        self._next = 1
        self._pause = _SHORTEST_PAUSE

    def send(self, to: int, message: bytes) -> None:
        """Stores a message."""
        number = self._store.add(f"{self._name}/{to}", 1)
        self._store.set(f"{self._name}/{to}/{number}", pickle.dumps((self._rank, message)))

    def receive(self) -> tuple[int, bytes] | None:
        """The next message of any rank, or None if none has arrived."""
        if not self._waiting.check([self._key]):
            return None
        found: tuple[int, bytes] = pickle.loads(self._waiting.get(self._key))
        self._waiting.delete_key(self._key)
        self._next += 1
        self._pause = _SHORTEST_PAUSE
        return found

    def wait(self, seconds: float) -> None:
        """Sleeps for a while, at most ``seconds``; longer from call to call without a message.

        ``wait`` of the store would print a warning at each time-out.
        """
        time.sleep(min(seconds, self._pause))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    @property
    def _key(self) -> str:
        return f"{self._name}/{self._rank}/{self._next}"


class _Group:
    """The Comm of a process group. Its ranks meet before they are introduced to each other, so that
    an error names an absent one."""

    def __init__(self, group: Any, purpose: str) -> None:
        from torch import distributed

        name, rank = group.group_name + purpose, distributed.get_rank(group)
        store = distributed.distributed_c10d._get_default_store()
        _made[name] += 1
        transport = StoreTransport(
            store.clone(), store.clone(), f"pario/{name}/{_made[name]}", rank
        )
        size = distributed.get_world_size(group)
        self.native = Comm(rank, size, transport.send, transport.receive, transport.wait)
        self._first = Ranks(self.native, error=CheckpointError)
        self._introduced = False

    def introduce(self, patience: float) -> None:
        """Introduces the ranks to each other once. Collective until it has succeeded."""
        if self._introduced:
            return
        self._first.patience = patience
        self._first.agree("the first meeting of the ranks", lambda: None)
        self.native.introduce(node_name(), patience, check)
        self._introduced = True


#: The Comms of a group, by their purpose.
_groups: WeakKeyDictionary[Any, dict[str, _Group]] = WeakKeyDictionary()


class TorchRanks(Ranks):
    """The ranks of a process group. Collective the first time, in which they begin to watch each
    other.

    ``purpose``: threads that make collective calls at the same time give different ones.
    """

    def __init__(self, group: Any, patience: float = PATIENCE, purpose: str = "") -> None:
        of_group = _groups.setdefault(group, {})
        if purpose not in of_group:
            of_group[purpose] = _Group(group, purpose)
        known = of_group[purpose]
        known.introduce(patience)
        super().__init__(known.native, patience, CheckpointError)
