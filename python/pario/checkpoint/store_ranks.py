"""Ranks without MPI: their messages lie in a store of keys, as PyTorch and JAX have one."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from typing import Protocol

from pario._native import Comm
from pario.checkpoint.errors import CheckpointError
from pario.interrupts import keep_waiting
from pario.ranks import Ranks, node_name

#: Seconds between two looks for a message, in the store, which is a process.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 2e-2
#: The number of Meetings of a name so far: equal on all ranks.
_made: Counter[str] = Counter()


class Store(Protocol):
    """Entries that all ranks see. Any thread may send; one at a time receives."""

    def count(self, key: str) -> int:
        """Adds 1 to a number, which begins at 0, and returns it."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Stores an entry."""
        ...

    def take(self, key: str) -> bytes | None:
        """Removes and returns an entry; None if there is none. For the thread that receives."""
        ...


class StoreTransport:
    """The messages of a :class:`pario._native.Comm` by a store. The messages to a rank are
    numbered; an entry is deleted when it is received."""

    def __init__(self, store: Store, name: str, rank: int) -> None:
        self._store, self._name, self._rank = store, name, rank
        self._next = 1
        self._pause = _SHORTEST_PAUSE

    def send(self, to: int, message: bytes) -> None:
        """Stores a message."""
        number = self._store.count(f"{self._name}/{to}")
        self._store.put(f"{self._name}/{to}/{number}", pickle.dumps((self._rank, message)))

    def receive(self) -> tuple[int, bytes] | None:
        """The next message of any rank, or None if none has arrived."""
        content = self._store.take(f"{self._name}/{self._rank}/{self._next}")
        if content is None:
            return None
        found: tuple[int, bytes] = pickle.loads(content)
        self._next += 1
        self._pause = _SHORTEST_PAUSE
        return found

    def wait(self, seconds: float) -> None:
        """Sleeps for a while, at most ``seconds``; longer from call to call without a message.

        A store's own wait prints a warning at each time-out, or cannot be interrupted.
        """
        time.sleep(min(seconds, self._pause))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


class Meeting:
    """The Comm of ranks with a store. They meet before they are introduced to each other, so that
    an error names an absent one.

    ``name``: equal on all ranks. Meetings of one name are made in the same order on all ranks.
    """

    def __init__(self, name: str, rank: int, size: int, store: Store) -> None:
        _made[name] += 1
        transport = StoreTransport(store, f"pario/{name}/{_made[name]}", rank)
        self.native = Comm(rank, size, transport.send, transport.receive, transport.wait)
        self._first = Ranks(self.native, error=CheckpointError)
        self._introduced = False

    def introduce(self, patience: float) -> None:
        """Introduces the ranks to each other once. Collective until it has succeeded."""
        if self._introduced:
            return
        self._first.patience = patience
        self._first.agree("the first meeting of the ranks", lambda: None)
        self.native.introduce(node_name(), patience, keep_waiting)
        self._introduced = True


class StoreRanks(Ranks):
    """The ranks of a Meeting. Collective the first time: they begin to watch each other."""

    def __init__(self, meeting: Meeting, patience: float) -> None:
        meeting.introduce(patience)
        super().__init__(meeting.native, patience, CheckpointError)
