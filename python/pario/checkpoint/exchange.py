"""Boxes of short rows in one file: the ranks of a node join them in memory that they share, and
each moves a contiguous share of the file.

That takes rounds. In each one the ranks fill a buffer, and while they fill the next one they write
it. What is pure comes first.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, chain, cycle
from typing import Any

import numpy as np

from pario.checkpoint import transfer
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, contiguous_axes, pieces, place_of, run_count, strides
from pario.checkpoint.node import Node, node_of
from pario.checkpoint.transfer import Move, are_large
from pario.checkpoint.types import Array
from pario.interrupts import deferred, kept
from pario.progress import Show, silent
from pario.ranks import PATIENCE

#: Bytes of a round; those of a node's ring of buffers are _RING times as many.
_ROUND = 1 << 22
#: Buffers: who fills one has met the others since they emptied it (see _in_rounds).
_RING = 4
#: What is read of what nobody wants is at most so many times what is wanted.
_WASTE = 2


@dataclass(frozen=True, order=True)
class Stored:
    """An array of a file, or a part of one, whose bytes lie in order from ``place`` on."""

    place: int
    begin: tuple[int, ...]
    shape: tuple[int, ...]
    element: int

    @property
    def box(self) -> Box:
        """What it has."""
        return Box(self.begin, self.shape)


@dataclass(frozen=True)
class Piece:
    """A box of an array; in a round one that is one run of bytes in the file."""

    stored: Stored
    box: Box

    @property
    def begin(self) -> int:
        """Its first byte in the file."""
        return self.stored.place + place_of(self.box, self.stored.box, self.stored.element)

    @property
    def nbytes(self) -> int:
        """Of it."""
        return self.box.size * self.stored.element


#: What a rank has of each array, or wants of it.
Held = dict[Stored, list[Box]]
Region = Sequence[Piece]
Round = list[Piece]


def stored_of(move: Move) -> Stored:
    """The array that a move is of."""
    return Stored(move.place, move.stored.begin, move.stored.shape, move.data.dtype.itemsize)


def held_by(moves: Sequence[Move]) -> Held:
    """What a rank says of its moves."""
    found: Held = defaultdict(list)
    for move in moves:
        if move.box.size:
            found[stored_of(move)].append(move.box)
    return dict(found)


def divided(everyones: Sequence[Held]) -> frozenset[Stored]:
    """The arrays of which some rank has short runs: the others each rank moves by itself."""
    short = (
        stored
        for theirs in everyones
        for stored, boxes in theirs.items()
        if not are_large((stored.box, box, stored.element) for box in boxes)
    )
    return frozenset(short)


def regions(
    everyones: Sequence[Held], nodes: Sequence[int], arrays: frozenset[Stored], *, writing: bool
) -> list[Region] | None:
    """What each node moves for its ranks. None where nodes have short runs themselves, or would
    write what is not theirs."""
    found: list[Region] = []
    for node in range(max(nodes) + 1):
        theirs = [held for held, where in zip(everyones, nodes, strict=True) if where == node]
        mine: list[Piece] = []
        for stored in sorted(arrays):
            boxes = [box for held in theirs for box in held.get(stored, ())]
            if boxes:
                box = _moved(stored, boxes, writing=writing)
                if box is None:
                    return None
                mine.append(Piece(stored, box))
        found.append(mine)
    return found


def _moved(stored: Stored, boxes: Sequence[Box], *, writing: bool) -> Box | None:
    """The box of an array that a node moves for ranks that have these: in long runs, and not much
    more than they have."""
    size, around = sum(box.size for box in boxes), _around(boxes)
    if writing:
        candidates, most = [around], size
    else:
        candidates, most = [around, _widened(around, stored)], _WASTE * size
    return next((box for box in candidates if box.size <= most and _is_long(box, stored)), None)


def _is_long(box: Box, stored: Stored) -> bool:
    """Whether it is one run, or of long ones."""
    element = stored.element
    return run_count(box, stored.box, element, strides(box.shape, element)) == 1 or are_large(
        [(stored.box, box, element)]
    )


def _around(boxes: Sequence[Box]) -> Box:
    """The smallest box that has all of them."""
    begin = np.min([box.begin for box in boxes], axis=0).tolist()
    end = np.max([box.end for box in boxes], axis=0).tolist()
    return Box(tuple(begin), tuple(last - first for first, last in zip(begin, end, strict=True)))


def _widened(box: Box, stored: Stored) -> Box:
    """With all that lies between its parts in the file."""
    return Box((*box.begin[:1], *stored.begin[1:]), (*box.shape[:1], *stored.shape[1:]))


def _lines(box: Box, stored: Stored) -> Iterator[Box]:
    """A box as boxes that are one run of bytes each, in order."""
    outer = len(box.shape) - contiguous_axes(
        box, stored.box, stored.element, strides(box.shape, stored.element)
    )
    for index in _indices(box.shape[:outer]):
        begin = tuple(first + at for first, at in zip(box.begin, index, strict=False))
        yield Box((*begin, *box.begin[outer:]), (*(1,) * outer, *box.shape[outer:]))


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Of an array, in order; numpy would have all of an axis first."""
    for index in range(shape[0]) if shape else ():
        for rest in _indices(shape[1:]):
            yield (index, *rest)
    if not shape:
        yield ()


def rounds(region: Region, most: int) -> Iterator[Round]:
    """A region in rounds of so many bytes of a buffer at most, unless an element has more. There
    may be too many to have them all."""
    turn: Round = []
    room = most
    for part in region:
        for line in _lines(part.box, part.stored):
            for box in pieces(line, max(1, most // part.stored.element)):
                piece = Piece(part.stored, box)
                if turn and _aligned(piece.nbytes) > room:
                    yield turn
                    turn, room = [], most
                turn.append(piece)
                room -= _aligned(piece.nbytes)
    if turn:
        yield turn


def slot(region: Region, most: int) -> int:
    """Bytes of a buffer that takes each round of so many."""
    return max(_aligned(most), *(_aligned(part.stored.element) for part in region))


def _aligned(size: int) -> int:
    """As elements of all types are."""
    return -(-size // 16) * 16


def places(turn: Round) -> list[int]:
    """Where in the buffer each piece of a round begins, and where the last one ends."""
    return list(accumulate((_aligned(piece.nbytes) for piece in turn), initial=0))


def share(turn: Round, rank: int, ranks: int) -> list[tuple[int, slice]]:
    """What one of the ranks moves of a round: places in the file and parts of the buffer."""
    starts = places(turn)
    first, last = (starts[-1] * number // ranks for number in (rank, rank + 1))
    found = []
    for piece, at in zip(turn, starts, strict=False):
        begin, end = max(first, at), min(last, at + piece.nbytes)
        if begin < end:
            found.append((piece.begin + begin - at, slice(begin, end)))
    return found


class _Mine:
    """The moves of this rank, or of several, by array, for those who look for what is in a box."""

    def __init__(self, moves: Sequence[Move]) -> None:
        self._moves: dict[Stored, list[Move]] = defaultdict(list)
        for move in moves:
            if move.box.size:
                self._moves[stored_of(move)].append(move)
        self._bounds = {
            stored: (
                np.array([one.box.begin for one in some]),
                np.array([one.box.end for one in some]),
            )
            for stored, some in self._moves.items()
        }

    def parts(self, turn: Round, buffer: Array) -> Iterator[tuple[Move, Array]]:
        """Moves of parts of a round, and the arrays of the buffer that are the same."""
        for piece, at in zip(turn, places(turn), strict=False):
            for move in self._near(piece):
                common = move.box.meet(piece.box)
                kind = _plain(move.data.dtype.itemsize)
                there = buffer[at : at + piece.nbytes].view(kind).reshape(piece.box.shape)
                data = move.data.view(kind)[common.within(move.box)]
                yield replace(move, box=common, data=data), there[common.within(piece.box)]

    def fill(self, turn: Round, buffer: Array) -> None:
        """Puts into the buffer of a round what these have of it, and tells their tallies."""
        for move, there in self.parts(turn, buffer):
            there[...] = move.data
            if move.tally is not None:
                move.tally.add(there, move.box)

    def _near(self, piece: Piece) -> Iterator[Move]:
        some = self._moves.get(piece.stored, ())
        if not some:
            return
        begins, ends = self._bounds[piece.stored]
        near = ((begins < piece.box.end) & (ends > piece.box.begin)).all(axis=1)
        yield from (some[number] for number in np.flatnonzero(near))


def _plain(size: int) -> np.dtype[Any]:
    """Elements that are copied as they are, with what lies between the fields of structures."""
    return np.dtype(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")


@dataclass(frozen=True)
class Plan:
    """What the ranks of each node move together. All ranks have the same."""

    arrays: frozenset[Stored]  # the other ones each rank moves by itself
    regions: Sequence[Region]  # of each node
    patience: float = PATIENCE


def plan(comm: Any, held: Held, *, writing: bool, patience: float = PATIENCE) -> Plan | None:
    """How the ranks move what each has, or wants, of one file. None: by MPI-IO, as it is pario's,
    or nodes have short runs as well. Collective."""
    if transfer.is_ours():
        return None
    with deferred():
        node = node_of(comm)
        everyones: list[Held] = comm.allgather(held)
    arrays = divided(everyones)
    found = regions(everyones, node.numbers, arrays, writing=writing)
    return None if found is None else Plan(arrays, found, patience)


def write(
    comm: Any, plan: Plan, path: str, moves: Sequence[Move], *, durable: bool, show: Show = silent
) -> None:
    """Writes to a file; ``durable``: it is on the disk then. Collective over the ranks of a node,
    each of which has what was planned."""
    failed: list[BaseException] = []
    with deferred(failed):
        _write(node_of(comm), plan, path, moves, durable, show, failed)
    _raise(path, failed)


def _write(
    node: Node,
    plan: Plan,
    path: str,
    moves: Sequence[Move],
    durable: bool,
    show: Show,
    failed: list[BaseException],
) -> None:
    alone, mine = _parted(plan, moves)
    buffers = _ring(node, plan.regions[node.number])
    if buffers is None:
        with kept(failed):
            transfer.write(None, path, moves, durable=durable, show=show)
        return
    with kept(failed):
        transfer.write(None, path, alone, durable=False, show=show)
    with _file(path, os.O_WRONLY | os.O_CREAT, failed) as file:

        def empty(turn: Round, buffer: Array) -> None:
            _write_share(file, turn, buffer, node.rank, node.size)

        _in_rounds(node, plan, buffers, mine.fill, empty, failed, show)
        if durable and not failed:
            with kept(failed):
                transfer.flush(file, show)


def write_for_all(
    path: str, by_rank: Sequence[Sequence[Move]], *, durable: bool, show: Show = silent
) -> None:
    """Writes to a file what ranks of a node have of it, by this process alone: rows that are short
    for each of them are joined."""
    moves = sorted((move for theirs in by_rank for move in theirs), key=lambda move: move.begin)
    everyones = [held_by(theirs) for theirs in by_rank]
    arrays = divided(everyones)
    found = regions(everyones, [0] * len(everyones), arrays, writing=True) if arrays else None
    if found is None:
        transfer.write(None, path, moves, durable=durable, show=show)
        return
    alone, theirs = _parted(Plan(arrays, found), moves)
    transfer.write(None, path, alone, durable=False, show=show)
    whole, done = sum(part.nbytes for part in found[0]), 0
    buffer = np.empty(slot(found[0], _ROUND), np.uint8)
    with transfer.opened(path, os.O_WRONLY | os.O_CREAT) as file:
        for turn in rounds(found[0], _ROUND):
            theirs.fill(turn, buffer)
            _write_share(file, turn, buffer, 0, 1)
            done += sum(piece.nbytes for piece in turn)
            show(done, whole)
        if durable:
            transfer.flush(file, show)


def _write_share(file: int, turn: Round, buffer: Array, rank: int, ranks: int) -> None:
    for place, part in share(turn, rank, ranks):
        transfer.write_all(file, buffer[part].data, place)


def read(
    comm: Any, path: str, moves: Sequence[Move], *, patience: float = PATIENCE, show: Show = silent
) -> None:
    """Reads into the moves' arrays; by MPI-IO where nodes want short runs. Collective."""
    planned = plan(comm, held_by(moves), writing=False, patience=patience)
    if planned is None:
        transfer.read(comm, path, moves, show=show)
    else:
        failed: list[BaseException] = []
        with deferred(failed):
            _read(node_of(comm), planned, path, moves, show, failed)
        _raise(path, failed)


def _read(
    node: Node,
    plan: Plan,
    path: str,
    moves: Sequence[Move],
    show: Show,
    failed: list[BaseException],
) -> None:
    alone, mine = _parted(plan, moves)
    buffers = _ring(node, plan.regions[node.number])
    if buffers is None:
        with kept(failed):
            transfer.read(None, path, moves, show=show)
        return
    with kept(failed):
        transfer.read(None, path, alone, show=show)
    with _file(path, os.O_RDONLY, failed) as file:

        def fill(turn: Round, buffer: Array) -> None:
            for place, part in share(turn, node.rank, node.size):
                transfer.read_all(file, buffer[part].data, place, path)

        def empty(turn: Round, buffer: Array) -> None:
            for move, there in mine.parts(turn, buffer):
                move.data[...] = there

        _in_rounds(node, plan, buffers, fill, empty, failed, show)


def _parted(plan: Plan, moves: Sequence[Move]) -> tuple[list[Move], _Mine]:
    """Moves of this rank alone, and those that it makes with others."""
    together = [stored_of(move) in plan.arrays for move in moves]
    alone = [move for move, joined in zip(moves, together, strict=True) if not joined]
    return alone, _Mine([move for move, joined in zip(moves, together, strict=True) if joined])


def _ring(node: Node, region: Region) -> Array | None:
    """The buffers of a node that moves a region, or None on all its ranks. Collective over the
    node."""
    size = slot(region, _ROUND) if region else 0
    memory = node.memory(_RING * size) if size else None
    return None if memory is None else memory[: _RING * size].reshape(_RING, size)


def _in_rounds(
    node: Node,
    plan: Plan,
    buffers: Array,
    fill: Callable[[Round, Array], None],
    empty: Callable[[Round, Array], None],
    failed: list[BaseException],
    show: Show,
) -> None:
    """All ranks fill each buffer, and then all empty it. Every rank comes to every meeting,
    whatever fails.

    A rank fills the buffer of four rounds before: it has met the others since they emptied that, as
    the meeting before the last one begins behind it. So nobody waits for the slowest in every
    round.
    """
    region = plan.regions[node.number]
    whole, done = sum(part.nbytes for part in region), 0
    before: tuple[Round, Array, int] | None = (
        None  # what the ranks have filled, and at which meeting all of them have
    )
    for turn, buffer in chain(zip(rounds(region, _ROUND), cycle(buffers)), [(None, buffers[0])]):
        filled = None
        if turn is not None:
            _attempt(failed, fill, turn, buffer)
            filled = turn, buffer, node.arrive()
        if before is not None:
            node.wait(before[2], plan.patience)
            _attempt(failed, empty, *before[:2])
            done += sum(piece.nbytes for piece in before[0])
            show(done, whole)
        before = filled


def _attempt(
    failed: list[BaseException], work: Callable[[Round, Array], None], turn: Round, buffer: Array
) -> None:
    if not failed:
        with kept(failed):
            work(turn, buffer)


@contextmanager
def _file(path: str, flags: int, failed: list[BaseException]) -> Iterator[int]:
    """A descriptor; of a file that cannot be opened none, but what is done goes on."""
    file = -1
    with kept(failed):
        file = os.open(path, flags, 0o666)
    try:
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _raise(path: str, failed: Sequence[BaseException]) -> None:
    if failed and isinstance(failed[0], OSError):
        raise CheckpointError(f"{path}: {failed[0].strerror or failed[0]}") from failed[0]
    if failed:
        raise failed[0]
