"""Background writes by one rank of each node, from copies in memory that the others share with it.

So one thread of a node writes, in the order of the file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from pario.checkpoint.geometry import Box
from pario.checkpoint.transfer import Move, address
from pario.checkpoint.types import Array, Type
from pario.ranks import Ranks, node_name

#: The moves of each rank, by the name of the file.
Moves = Mapping[str, Sequence[Sequence[Move]]]
#: The path by which other processes open a memory; device and inode, to verify that it is this one.
Place = tuple[str, int, int]


class Memory:
    """Bytes that other processes of the node can map while this object exists. Raises OSError if
    there is not enough memory."""

    def __init__(self, size: int) -> None:
        self._file = -1
        self._file = os.memfd_create("pario-checkpoint")
        # Allocated now: missing memory is an OSError here, but a SIGBUS at the first access.
        os.posix_fallocate(self._file, 0, max(size, 1))
        self.array: Array = np.frombuffer(mmap.mmap(self._file, max(size, 1)), np.uint8)

    @property
    def place(self) -> Place:
        """The place of this memory, for :func:`map_memory`."""
        facts = os.fstat(self._file)
        return f"/proc/{os.getpid()}/fd/{self._file}", facts.st_dev, facts.st_ino

    def __del__(self) -> None:
        if self._file >= 0:  # mappings of other processes stay
            os.close(self._file)


def map_memory(place: Place) -> Array | None:
    """Maps the memory of another process; None if this process has no access to it."""
    path, *known = place
    with suppress(OSError, ValueError):
        # In another PID namespace the path may name any file, also a FIFO.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            facts = os.fstat(file)
            if [facts.st_dev, facts.st_ino] == known:
                return np.frombuffer(mmap.mmap(file, 0, prot=mmap.PROT_READ), np.uint8)
        finally:
            os.close(file)
    return None


@dataclass(frozen=True)
class _Part:
    """A move whose elements begin at offset ``at`` of a memory."""

    file: str
    place: int
    stored: Box
    box: Box
    dtype: Type
    at: int

    def move(self, memory: Array) -> Move:
        data = (
            memory[self.at : self.at + self.box.size * self.dtype.itemsize]
            .view(self.dtype)
            .reshape(self.box.shape)
        )
        return Move(self.place, self.stored, self.box, data)


@dataclass(frozen=True)
class _Offer:
    """A rank's memory and moves, for the writing rank of its node."""

    node: str
    memory: Place
    parts: Sequence[_Part]


def share(
    ranks: Ranks,
    what: str,
    memory: Memory | None,
    moves: Mapping[str, Sequence[Move]],
    made: Sequence[str],
) -> Moves:
    """The moves that this rank writes. Collective.

    The first rank of a node writes for all ranks whose memory it can map; those write nothing, but
    open the files that they have ``made``. ``moves``: of this rank, with their data in ``memory``;
    if that is None, this rank writes them itself.
    """
    offers = ranks.deal(what, lambda: _offer(memory, moves), _to_first)
    views = {rank: view for rank, offer in offers if (view := map_memory(offer.memory)) is not None}
    taken = ranks.deal(
        what,
        lambda: list(views),
        lambda mapped: [any(rank in theirs for theirs in mapped) for rank in range(ranks.size)],
    )
    # Without tallies, because the next checkpoint writes the same moves.
    mine = {name: [replace(move, tally=None) for move in some] for name, some in moves.items()}
    found: dict[str, list[list[Move]]] = {
        name: [] if taken else [some] for name, some in mine.items() if not taken or name in made
    }
    for rank, offer in offers:
        if rank in views:
            for name in dict.fromkeys(part.file for part in offer.parts):
                found.setdefault(name, []).append(
                    [part.move(views[rank]) for part in offer.parts if part.file == name]
                )
    return found


def _offer(memory: Memory | None, moves: Mapping[str, Sequence[Move]]) -> _Offer | None:
    if memory is None:
        return None
    begin = address(memory.array)
    parts = [
        _Part(name, move.place, move.stored, move.box, move.data.dtype, address(move.data) - begin)
        for name, some in moves.items()
        for move in some
        if move.box.size
    ]
    return _Offer(node_name(), memory.place, parts)


def _to_first(offers: list[_Offer | None]) -> list[list[tuple[int, _Offer]]]:
    """For each rank the offers of the others of its node if it is the first of them, else none."""
    found: list[list[tuple[int, _Offer]]] = [[] for _ in offers]
    first: dict[str, int] = {}
    for rank, offer in enumerate(offers):
        if offer is not None and first.setdefault(offer.node, rank) != rank:
            found[first[offer.node]].append((rank, offer))
    return found
