"""Two-phase I/O within a node, for boxes of short rows in one file.

The ranks of a node join their rows in shared memory, and each rank moves a contiguous share of the
file. This takes rounds: while the ranks fill the buffer of one round, they write that of the round
before. Pure functions come first.
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
from pario.interrupts import defer_interrupt, keep_error
from pario.progress import Show, silent
from pario.ranks import PATIENCE

#: Bytes of a round. The ring of a node has _RING buffers of this size.
_ROUND = 1 << 22
#: Buffers of the ring: enough that all ranks have emptied a buffer before one refills it (see
#: _run_rounds).
_RING = 4
#: Most bytes that a node reads, as a multiple of the bytes that its ranks need.
_WASTE = 2


@dataclass(frozen=True, order=True)
class Stored:
    """An array of a file, or a part of one, with its bytes in C order from offset ``place`` on."""

    place: int
    begin: tuple[int, ...]
    shape: tuple[int, ...]
    element: int

    @property
    def box(self) -> Box:
        """The box of its elements."""
        return Box(self.begin, self.shape)


@dataclass(frozen=True)
class Piece:
    """A box of an array. Within a round it is one run of bytes in the file."""

    stored: Stored
    box: Box

    @property
    def begin(self) -> int:
        """The offset of its first byte in the file."""
        return self.stored.place + place_of(self.box, self.stored.box, self.stored.element)

    @property
    def nbytes(self) -> int:
        """The number of its bytes."""
        return self.box.size * self.stored.element


#: The boxes of each array that a rank writes or reads.
Boxes = dict[Stored, list[Box]]
Region = Sequence[Piece]
Round = list[Piece]


def stored_of(move: Move) -> Stored:
    """The array to which a move belongs."""
    return Stored(move.place, move.stored.begin, move.stored.shape, move.data.dtype.itemsize)


def list_boxes(moves: Sequence[Move]) -> Boxes:
    """Groups the boxes of a rank's moves by array; empty boxes are left out."""
    found: Boxes = defaultdict(list)
    for move in moves:
        if move.box.size:
            found[stored_of(move)].append(move.box)
    return dict(found)


def find_joint_arrays(everyones: Sequence[Boxes]) -> frozenset[Stored]:
    """Finds the arrays that ranks move jointly: those of which some rank has short runs."""
    short = (
        stored
        for theirs in everyones
        for stored, boxes in theirs.items()
        if not are_large((stored.box, box, stored.element) for box in boxes)
    )
    return frozenset(short)


def regions(
    everyones: Sequence[Boxes], nodes: Sequence[int], arrays: frozenset[Stored], *, writing: bool
) -> list[Region] | None:
    """The region that each node moves for its ranks. None where the runs of a node are short, too,
    or a node would write bytes that its ranks do not have."""
    found: list[Region] = []
    for node in range(max(nodes) + 1):
        theirs = [held for held, where in zip(everyones, nodes, strict=True) if where == node]
        mine: list[Piece] = []
        for stored in sorted(arrays):
            boxes = [box for held in theirs for box in held.get(stored, ())]
            if boxes:
                box = _choose_box(stored, boxes, writing=writing)
                if box is None:
                    return None
                mine.append(Piece(stored, box))
        found.append(mine)
    return found


def _choose_box(stored: Stored, boxes: Sequence[Box], *, writing: bool) -> Box | None:
    """The box that a node moves for the boxes of its ranks: it has long runs and few other bytes.
    None if there is none."""
    size, around = sum(box.size for box in boxes), _around(boxes)
    if writing:
        candidates, most = [around], size
    else:
        candidates, most = [around, _extend_rows(around, stored)], _WASTE * size
    return next((box for box in candidates if box.size <= most and _is_long(box, stored)), None)


def _is_long(box: Box, stored: Stored) -> bool:
    """True if a box is one run of bytes, or consists of long ones."""
    element = stored.element
    return run_count(box, stored.box, element, strides(box.shape, element)) == 1 or are_large(
        [(stored.box, box, element)]
    )


def _around(boxes: Sequence[Box]) -> Box:
    """The smallest box that contains all boxes."""
    begin = np.min([box.begin for box in boxes], axis=0).tolist()
    end = np.max([box.end for box in boxes], axis=0).tolist()
    return Box(tuple(begin), tuple(last - first for first, last in zip(begin, end, strict=True)))


def _extend_rows(box: Box, stored: Stored) -> Box:
    """Extends a box to whole rows, which closes the gaps between its runs in the file."""
    return Box((*box.begin[:1], *stored.begin[1:]), (*box.shape[:1], *stored.shape[1:]))


def _lines(box: Box, stored: Stored) -> Iterator[Box]:
    """Divides a box into boxes of one run of bytes each, in order."""
    outer = len(box.shape) - contiguous_axes(
        box, stored.box, stored.element, strides(box.shape, stored.element)
    )
    for index in _indices(box.shape[:outer]):
        begin = tuple(first + at for first, at in zip(box.begin, index, strict=False))
        yield Box((*begin, *box.begin[outer:]), (*(1,) * outer, *box.shape[outer:]))


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the indices of an array in C order; numpy would allocate all of them."""
    for index in range(shape[0]) if shape else ():
        for rest in _indices(shape[1:]):
            yield (index, *rest)
    if not shape:
        yield ()


def rounds(region: Region, most: int) -> Iterator[Round]:
    """Divides a region into rounds that need at most ``most`` bytes of a buffer, unless one element
    needs more. Lazy, because there may be too many to keep."""
    turn: Round = []
    room = most
    for part in region:
        for line in _lines(part.box, part.stored):
            for box in pieces(line, max(1, most // part.stored.element)):
                piece = Piece(part.stored, box)
                if turn and _align(piece.nbytes) > room:
                    yield turn
                    turn, room = [], most
                turn.append(piece)
                room -= _align(piece.nbytes)
    if turn:
        yield turn


def slot(region: Region, most: int) -> int:
    """Bytes of a buffer that holds each round of :func:`rounds`."""
    return max(_align(most), *(_align(part.stored.element) for part in region))


def _align(size: int) -> int:
    """Rounds a size up to the alignment of all element types."""
    return -(-size // 16) * 16


def places(turn: Round) -> list[int]:
    """The offset of each piece of a round in the buffer; at the end that of the end."""
    return list(accumulate((_align(piece.nbytes) for piece in turn), initial=0))


def share(turn: Round, rank: int, ranks: int) -> list[tuple[int, slice]]:
    """The share of one rank in a round: offsets in the file and slices of the buffer."""
    starts = places(turn)
    first, last = (starts[-1] * number // ranks for number in (rank, rank + 1))
    found = []
    for piece, at in zip(turn, starts, strict=False):
        begin, end = max(first, at), min(last, at + piece.nbytes)
        if begin < end:
            found.append((piece.begin + begin - at, slice(begin, end)))
    return found


class _Mine:
    """The moves of one rank or of several, by array, to look up those that overlap a box."""

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
        """Yields the moves within a round, each with the part of the buffer for its elements."""
        for piece, at in zip(turn, places(turn), strict=False):
            for move in self._near(piece):
                common = move.box.meet(piece.box)
                kind = _plain(move.data.dtype.itemsize)
                there = buffer[at : at + piece.nbytes].view(kind).reshape(piece.box.shape)
                data = move.data.view(kind)[common.within(move.box)]
                yield replace(move, box=common, data=data), there[common.within(piece.box)]

    def fill(self, turn: Round, buffer: Array) -> None:
        """Copies the elements of the moves into the buffer of a round; adds them to their
        tallies."""
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
    """A type whose elements are copied byte by byte, with the padding of structures."""
    return np.dtype(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")


@dataclass(frozen=True)
class Plan:
    """The joint moves of the ranks of each node; equal on all ranks."""

    arrays: frozenset[Stored]  # moved jointly; each rank moves the others alone
    regions: Sequence[Region]  # of each node
    patience: float = PATIENCE


def plan(comm: Any, held: Boxes, *, writing: bool, patience: float = PATIENCE) -> Plan | None:
    """Plans the moves of all ranks to or from one file. Collective.

    None if MPI-IO moves them: because it is pario's own, or because the runs of a node are short.
    """
    if transfer.is_ours():
        return None
    with defer_interrupt():
        node = node_of(comm)
        everyones: list[Boxes] = comm.allgather(held)
    arrays = find_joint_arrays(everyones)
    found = regions(everyones, node.numbers, arrays, writing=writing)
    return None if found is None else Plan(arrays, found, patience)


def write(
    comm: Any, plan: Plan, path: str, moves: Sequence[Move], *, durable: bool, show: Show = silent
) -> None:
    """Writes moves to a file; ``durable``: flushes it to the disk. Collective over the ranks of a
    node, each with the moves that it planned."""
    failed: list[BaseException] = []
    with defer_interrupt(failed):
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
    alone, mine = _separate(plan, moves)
    buffers = _ring(node, plan.regions[node.number])
    if buffers is None:
        with keep_error(failed):
            transfer.write(None, path, moves, durable=durable, show=show)
        return
    with keep_error(failed):
        transfer.write(None, path, alone, durable=False, show=show)
    with _file(path, os.O_WRONLY | os.O_CREAT, failed) as file:

        def empty(turn: Round, buffer: Array) -> None:
            _write_share(file, turn, buffer, node.rank, node.size)

        _run_rounds(node, plan, buffers, mine.fill, empty, failed, show)
        if durable and not failed:
            with keep_error(failed):
                transfer.flush(file, show)


def write_for_all(
    path: str, by_rank: Sequence[Sequence[Move]], *, durable: bool, show: Show = silent
) -> None:
    """Writes the moves of several ranks of a node by this process alone; joins short rows."""
    moves = sorted((move for theirs in by_rank for move in theirs), key=lambda move: move.begin)
    everyones = [list_boxes(theirs) for theirs in by_rank]
    arrays = find_joint_arrays(everyones)
    found = regions(everyones, [0] * len(everyones), arrays, writing=True) if arrays else None
    if found is None:
        transfer.write(None, path, moves, durable=durable, show=show)
        return
    alone, theirs = _separate(Plan(arrays, found), moves)
    transfer.write(None, path, alone, durable=False, show=show)
    whole, done = sum(part.nbytes for part in found[0]), 0
    buffer = np.empty(slot(found[0], _ROUND), np.uint8)
    with transfer.open_file(path, os.O_WRONLY | os.O_CREAT) as file:
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
    """Reads into the moves' arrays; by MPI-IO where the runs of a node are short. Collective."""
    planned = plan(comm, list_boxes(moves), writing=False, patience=patience)
    if planned is None:
        transfer.read(comm, path, moves, show=show)
    else:
        failed: list[BaseException] = []
        with defer_interrupt(failed):
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
    alone, mine = _separate(plan, moves)
    buffers = _ring(node, plan.regions[node.number])
    if buffers is None:
        with keep_error(failed):
            transfer.read(None, path, moves, show=show)
        return
    with keep_error(failed):
        transfer.read(None, path, alone, show=show)
    with _file(path, os.O_RDONLY, failed) as file:

        def fill(turn: Round, buffer: Array) -> None:
            for place, part in share(turn, node.rank, node.size):
                transfer.read_all(file, buffer[part].data, place, path)

        def empty(turn: Round, buffer: Array) -> None:
            for move, there in mine.parts(turn, buffer):
                move.data[...] = there

        _run_rounds(node, plan, buffers, fill, empty, failed, show)


def _separate(plan: Plan, moves: Sequence[Move]) -> tuple[list[Move], _Mine]:
    """Separates the moves that this rank makes alone from joint ones."""
    together = [stored_of(move) in plan.arrays for move in moves]
    alone = [move for move, joined in zip(moves, together, strict=True) if not joined]
    return alone, _Mine([move for move, joined in zip(moves, together, strict=True) if joined])


def _ring(node: Node, region: Region) -> Array | None:
    """The ring of buffers of a node; None on all its ranks if it moves no region. Collective over
    the node."""
    size = slot(region, _ROUND) if region else 0
    memory = node.memory(_RING * size) if size else None
    return None if memory is None else memory[: _RING * size].reshape(_RING, size)


def _run_rounds(
    node: Node,
    plan: Plan,
    buffers: Array,
    fill: Callable[[Round, Array], None],
    empty: Callable[[Round, Array], None],
    failed: list[BaseException],
    show: Show,
) -> None:
    """All ranks fill each buffer, and then all empty it. Every rank takes part in every barrier,
    also after an error.

    A rank refills a buffer after four rounds. All ranks have emptied it by then, because they have
    arrived at the barrier of the round before the last one. So no rank waits for the slowest one in
    every round.
    """
    region = plan.regions[node.number]
    whole, done = sum(part.nbytes for part in region), 0
    # The round before, its buffer, and the barrier after which all ranks have filled it.
    before: tuple[Round, Array, int] | None = None
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
        with keep_error(failed):
            work(turn, buffer)


@contextmanager
def _file(path: str, flags: int, failed: list[BaseException]) -> Iterator[int]:
    """Opens a file and yields its descriptor; -1, and the error in ``failed``, if it cannot be
    opened."""
    file = -1
    with keep_error(failed):
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
