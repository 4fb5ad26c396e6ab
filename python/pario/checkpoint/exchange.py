"""Moves boxes of short rows: the ranks write or read them together, by the engine of pario's
MPI-IO, which joins their rows into large calls."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pario import _native
from pario.checkpoint import transfer
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import pieces, place_of
from pario.checkpoint.transfer import Move, address
from pario.interrupts import defer_interrupt, keep_error
from pario.progress import Show, silent
from pario.ranks import OneRank, Ranks

#: Bytes of the file of one call; between calls the ranks show progress.
_WINDOW = 1 << 28
#: A number of a call after all others.
_END = 1 << 62

#: A box as the engine takes it: offset of the array in the file, bytes of an element, shape of the
#: array, first element and shape of the box, address and strides of the elements.
_Box = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]


def write(
    ranks: Ranks,
    path: str,
    moves: Sequence[Move],
    *,
    durable: bool,
    node: bool = False,
    show: Show = silent,
) -> None:
    """Writes moves to a file that all ranks open; ``durable``: flushes it.

    Collective over ``ranks``, or with ``node`` over those of this rank's node, whose file it is.
    Raises CheckpointError that names the file.
    """
    failed: list[BaseException] = []
    with (
        defer_interrupt(failed),
        _flushed_at_end(path, failed, show, durable=durable),
        _open_together(ranks, path, failed, writes=True, node=node) as file,
    ):
        _move(file, path, moves, failed, show, writes=True)
    _raise(path, failed)


def write_for_all(
    path: str, by_rank: Sequence[Sequence[Move]], *, durable: bool, show: Show = silent
) -> None:
    """Writes the moves of several ranks by this process alone."""
    moves = sorted((move for theirs in by_rank for move in theirs), key=lambda move: move.begin)
    if transfer.are_large((move.stored, move.box, move.data.dtype.itemsize) for move in moves):
        transfer.write(path, moves, durable=durable, show=show)
        return
    failed: list[BaseException] = []
    with (
        _flushed_at_end(path, failed, show, durable=durable),
        _open_together(OneRank(), path, failed, writes=True) as file,
    ):
        _move(file, path, moves, failed, show, writes=True)
    _raise(path, failed)


def read(
    ranks: Ranks,
    path: str,
    moves: Sequence[Move],
    *,
    node: bool = False,
    opened: int = -1,
    show: Show = silent,
) -> None:
    """Reads a file into the arrays of moves.

    Collective over ``ranks``, or with ``node`` over those of this rank's node. Raises
    CheckpointError that names the file. ``opened``: a descriptor of the file that this rank uses;
    -1: it has none.
    """
    failed: list[BaseException] = []
    with (
        defer_interrupt(failed),
        _open_together(ranks, path, failed, writes=False, node=node, opened=opened) as file,
    ):
        _move(file, path, moves, failed, show, writes=False)
    _raise(path, failed)


@contextmanager
def _open_together(
    ranks: Ranks,
    path: str,
    failed: list[BaseException],
    *,
    writes: bool,
    node: bool = False,
    opened: int = -1,
) -> Iterator[_native.SharedFile | None]:
    """The file of all ranks, or None on all of them where one cannot open it."""
    file = None
    with keep_error(failed):
        file = ranks.open_file(path, writes=writes, node=node, opened=opened)
    try:
        yield file
    finally:
        if file is not None:
            with keep_error(failed):
                file.close()


def _move(
    file: _native.SharedFile | None,
    path: str,
    moves: Sequence[Move],
    failed: list[BaseException],
    show: Show,
    *,
    writes: bool,
) -> None:
    """Moves boxes by collective calls. Every rank makes all calls, even after an error of its own,
    because other ranks would wait for it."""
    if file is None:
        return
    calls: dict[int, list[Move]] = {}
    with keep_error(failed):
        calls = _calls(moves)
    size, done = sum(move.data.nbytes for move in moves), 0
    try:
        first = _END - file.maximum(_END - min(calls, default=_END))
        for number in range(first, file.maximum(max(calls, default=-1) + 1)):
            some = calls.get(number, []) if not failed else []
            with keep_error(failed):
                for move in some if writes else ():
                    if move.tally is not None:
                        move.tally.add(move.data, move.box)
            some = some if not failed else []
            wanted = sum(move.data.nbytes for move in some)
            moved = (file.write if writes else file.read)([_box(move) for move in some])
            if moved < wanted:
                failed.append(CheckpointError(f"{path} ends before the end of an array"))
            done += wanted
            with keep_error(failed):
                show(done, size)
    except OSError as error:
        failed.append(error)


def _calls(moves: Sequence[Move]) -> dict[int, list[Move]]:
    """The moves of each call, by its number. All ranks divide an array at the same offsets of the
    file: the parts of a call fill their range of the file without holes."""
    calls: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        element = move.data.dtype.itemsize
        for part in pieces(move.stored, max(1, _WINDOW // max(element, 1))):
            common = move.box.meet(part)
            if common.size:
                begin = move.place + place_of(part, move.stored, element)
                data = move.data[common.within(move.box)]
                calls[begin // _WINDOW].append(replace(move, box=common, data=data))
    return calls


def _box(move: Move) -> _Box:
    """A move as the engine takes it."""
    begin = tuple(
        first - origin for first, origin in zip(move.box.begin, move.stored.begin, strict=True)
    )
    return (
        move.place,
        move.data.dtype.itemsize,
        move.stored.shape,
        begin,
        move.box.shape,
        address(move.data),
        move.data.strides,
    )


@contextmanager
def _flushed_at_end(
    path: str, failed: list[BaseException], show: Show, *, durable: bool
) -> Iterator[None]:
    """Flushes a file after the body. The descriptor is from before the body, so that it gets the
    errors of all its writes. ``durable``: False does nothing."""
    descriptor = -1
    if durable:
        with keep_error(failed):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        yield
        if descriptor >= 0 and not failed:
            with keep_error(failed):
                transfer.flush(descriptor, show)
    finally:
        if descriptor >= 0:
            with keep_error(failed):
                os.close(descriptor)


def _raise(path: str, failed: Sequence[BaseException]) -> None:
    if failed and isinstance(failed[0], OSError):
        raise CheckpointError(f"{path}: {failed[0].strerror or failed[0]}") from failed[0]
    if failed:
        raise failed[0]
