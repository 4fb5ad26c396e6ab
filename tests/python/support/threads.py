"""Threads as ranks: what ranks do together, without an MPI."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pario.checkpoint import CheckpointError
from pario.ranks import Ranks
from tests.support.waiting import PATIENCE


class ThreadRanks(Ranks):
    """One of several threads; ``worlds`` are what each has been sent, in this world and in those of its copies."""

    error = CheckpointError

    def __init__(self, rank: int, worlds: list[list[queue.Queue[tuple[int, Any]]]], patience: float, *, threads: bool) -> None:
        self.rank, self.size, self.patience = rank, len(worlds[0]), patience
        self._boxes, self._others, self._threads = worlds[0], worlds[1:], threads

    @property
    def threads(self) -> bool:
        return self._threads

    def again(self) -> Ranks:
        return ThreadRanks(self.rank, self._others, self.patience, threads=self._threads)

    def _send(self, rank: int, message: Any) -> None:
        self._boxes[rank].put((self.rank, message))

    def _receive(self, rank: int | None, deadline: float) -> tuple[int, Any] | None:
        try:
            return self._boxes[self.rank].get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None


def run(
    size: int,
    program: Callable[[Ranks], Any],
    patience: float = PATIENCE,
    *,
    threads: bool = True,
) -> list[Any]:
    """What the program returns, or raises, on each rank. ``threads``: ranks may meet in threads of theirs."""
    worlds: list[list[queue.Queue[tuple[int, Any]]]] = [[queue.Queue() for _ in range(size)] for _ in range(2)]

    def one(rank: int) -> Any:
        try:
            return program(ThreadRanks(rank, worlds, patience, threads=threads))
        except Exception as error:
            return error

    assert threading.active_count() < 200
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))
