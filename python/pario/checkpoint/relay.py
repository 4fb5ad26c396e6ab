"""One rank of each node writes in the background for all of them, from copies that it sees: so one
thread of a node writes, and in the order of the file, whatever the ranks have of it.
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

#: By file what is written there, of each rank.
Moves = Mapping[str, Sequence[Sequence[Move]]]
#: Where others find a memory, and by what they know that it is this one: device and number of the
#: file.
Place = tuple[str, int, int]


class Memory:
    """Bytes of this process that others of its node find, as long as it is there. Raises OSError
    where there is no room."""

    def __init__(self, size: int) -> None:
        self._file = -1
        self._file = os.memfd_create("pario-checkpoint")
        os.posix_fallocate(
            self._file, 0, max(size, 1)
        )  # what is not there is refused here, not where it is touched
        self.array: Array = np.frombuffer(mmap.mmap(self._file, max(size, 1)), np.uint8)

    @property
    def place(self) -> Place:
        """Where others find it."""
        facts = os.fstat(self._file)
        return f"/proc/{os.getpid()}/fd/{self._file}", facts.st_dev, facts.st_ino

    def __del__(self) -> None:
        if self._file >= 0:  # who has found it keeps it
            os.close(self._file)


def seen(place: Place, *, writing: bool = False) -> Array | None:
    """The memory of another process, or None where this one must not see it. ``writing``: it is
    changed."""
    path, *known = place
    with suppress(OSError, ValueError):
        how = os.O_RDWR if writing else os.O_RDONLY
        file = os.open(
            path, how | os.O_NONBLOCK
        )  # where processes have other numbers it may be anything
        try:
            facts = os.fstat(file)
            if [facts.st_dev, facts.st_ino] == known:
                return np.frombuffer(
                    mmap.mmap(file, 0, prot=mmap.PROT_READ | (mmap.PROT_WRITE if writing else 0)),
                    np.uint8,
                )
        finally:
            os.close(file)
    return None


@dataclass(frozen=True)
class _Part:
    """A move whose bytes lie somewhere in a memory."""

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
    """What a rank has for the one that writes on its node."""

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
    """What this rank writes, by file: the first one of a node for all that it sees of the others,
    those nothing but into files that they have ``made``. ``moves``: of this rank, whose data lies
    in ``memory``; where that is None it writes them itself. Collective.
    """
    offers = ranks.deal(what, lambda: _offer(memory, moves), _to_first)
    views = {rank: view for rank, offer in offers if (view := seen(offer.memory)) is not None}
    taken = ranks.deal(
        what,
        lambda: list(views),
        lambda told: [any(rank in theirs for theirs in told) for rank in range(ranks.size)],
    )
    mine = {
        name: [replace(move, tally=None) for move in some] for name, some in moves.items()
    }  # which are those of the next one, too
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
    """For each rank what the others of its node offer, where it is their first."""
    found: list[list[tuple[int, _Offer]]] = [[] for _ in offers]
    first: dict[str, int] = {}
    for rank, offer in enumerate(offers):
        if offer is not None and first.setdefault(offer.node, rank) != rank:
            found[first[offer.node]].append((rank, offer))
    return found
