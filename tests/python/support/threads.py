"""Runs ranks as threads, without an MPI."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pario._native import Comm
from pario.checkpoint import CheckpointError
from pario.interrupts import check
from pario.ranks import Ranks
from tests.support.waiting import PATIENCE


class Mailbox:
    """Sends and receives messages of one rank; ``boxes`` holds the queues of all ranks."""

    def __init__(self, rank: int, boxes: list[queue.SimpleQueue[tuple[int, bytes]]]) -> None:
        self._rank, self._boxes = rank, boxes

    def send(self, to: int, message: bytes) -> None:
        self._boxes[to].put((self._rank, message))

    def receive(self) -> tuple[int, bytes] | None:
        try:
            return self._boxes[self._rank].get_nowait()
        except queue.Empty:
            return None


def comms(size: int) -> list[Comm]:
    """Makes the Comm of each of ``size`` ranks that are threads."""
    boxes: list[queue.SimpleQueue[tuple[int, bytes]]] = [queue.SimpleQueue() for _ in range(size)]
    mine = [Mailbox(rank, boxes) for rank in range(size)]
    return [Comm(rank, size, box.send, box.receive) for rank, box in enumerate(mine)]


def run(
    size: int,
    program: Callable[[Ranks], Any],
    patience: float = PATIENCE,
    *,
    threads: bool = True,
) -> list[Any]:
    """Runs a program on each rank; returns its results or its exceptions. ``threads``: ranks may
    meet in background threads."""
    made = comms(size)

    def one(rank: int) -> Any:
        try:
            return program(Ranks(made[rank], patience, CheckpointError, threads=threads))
        except Exception as error:
            return error

    others = [one for one in threading.enumerate() if not one.name.startswith("pario-objects")]
    assert len(others) < 200  # none is left by the ranks of earlier tests
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def run_on_nodes(
    nodes: Sequence[int], program: Callable[[Ranks], Any], patience: float = PATIENCE
) -> list[Any]:
    """Runs a program on a rank for each number in ``nodes``, which is its node; returns the
    results or the exceptions. These ranks can open files together."""
    made = comms(len(nodes))

    def one(rank: int) -> Any:
        made[rank].introduce(f"node {nodes[rank]}", PATIENCE, check)
        try:
            return program(Ranks(made[rank], patience, CheckpointError))
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(one, range(len(nodes))))
