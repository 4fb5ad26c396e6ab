"""Reads an array that all ranks need as a whole: each rank reads a share, so that each byte is read
once, and the ranks exchange their shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pario.checkpoint import transfer
from pario.checkpoint.geometry import Box, pieces, place_of, whole
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.node_files import NodeFiles
from pario.checkpoint.transfer import Extent, Move
from pario.checkpoint.types import Array
from pario.interrupts import keep_error
from pario.progress import Show, silent
from pario.ranks import Ranks

#: Bytes that the ranks read together and then exchange.
_WINDOW = 1 << 30
#: Bytes of an array that one rank reads for all.
_SMALL = 1 << 20


def scratch_needed(entry: Entry) -> int:
    """Bytes of scratch memory that :func:`read_shared` needs."""
    layout = entry.layout
    return (
        0
        if _is_in_order(entry) or layout.nbytes <= _SMALL
        else min(layout.nbytes, max(_WINDOW, layout.dtype.itemsize))
    )


def _is_in_order(entry: Entry) -> bool:
    """True if the elements are in the same order in the file as in memory."""
    return len(entry.extents or ()) == 1


def list_files(ranks: Ranks, entry: Entry) -> list[str]:
    """The files from which this rank reads its shares in :func:`read_shared`."""
    extents, element = entry.extents or (), entry.layout.dtype.itemsize
    if entry.layout.nbytes <= _SMALL:
        return list(dict.fromkeys(one.file for one in extents)) if ranks.rank == 0 else []
    found: dict[str, None] = {}
    for window in _windows(extents, max(1, _WINDOW // element)):
        size, at = sum(box.size for _, box in window), 0
        begin, end = (size * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        for extent, box in window:
            if max(begin, at) < min(end, at + box.size):
                found[extent.file] = None
            at += box.size
    return list(found)


def read_shared(
    ranks: Ranks,
    header: Header,
    entry: Entry,
    data: Array,
    scratch: Array,
    files: NodeFiles,
    failed: list[BaseException],
    show: Show = silent,
) -> None:
    """Fills ``data`` with all of an array that has extents. Collective; errors are appended to
    ``failed``, and all calls are made nevertheless.

    ``scratch``: bytes (:func:`scratch_needed`). The caller allocates them before, because an error
    here would make other ranks wait.
    """
    if data.nbytes <= _SMALL:
        if ranks.rank == 0:
            _read(header, entry.moves(whole(data.shape), data), files, failed)
        ranks.comm.Bcast(data.reshape(-1).view(np.uint8))
        return
    kind = _elements(data.dtype.itemsize)
    extents = entry.extents or ()
    at, in_order = 0, _is_in_order(entry)
    for window in _windows(extents, max(1, _WINDOW // data.dtype.itemsize)):
        size = sum(box.size for _, box in window)
        flat = (
            data.reshape(-1)[at : at + size]
            if in_order
            else scratch[: size * data.dtype.itemsize].view(data.dtype)
        )
        bounds = [size * rank // ranks.size for rank in range(ranks.size + 1)]
        share = _share(window, flat, bounds[ranks.rank], bounds[ranks.rank + 1])
        _read(header, share, files, failed)
        counts = [last - one for one, last in pairwise(bounds)]
        ranks.comm.Allgatherv(_in_place(), [flat.view(np.uint8), counts, bounds[:-1], kind])
        if not in_order:
            _copy_window(window, flat, data)
        at += size
        show(at * data.dtype.itemsize, data.nbytes)
    kind.Free()


def _read(
    header: Header,
    moves: Mapping[str, list[Move]],
    files: NodeFiles,
    failed: list[BaseException],
) -> None:
    for file, some in moves.items():
        with keep_error(failed):
            transfer.read(header.file(file), some, opened=files.descriptor(file))


#: Boxes whose elements lie in order in extents.
_Window = list[tuple[Extent, Box]]


def _windows(extents: Sequence[Extent], most: int) -> Iterator[_Window]:
    """Divides all extents into windows of at most ``most`` elements."""
    window: _Window = []
    size = 0
    for extent in extents:
        for box in pieces(extent.box, most):
            if size + box.size > most and window:
                yield window
                window, size = [], 0
            window.append((extent, box))
            size += box.size
    if window:
        yield window


def _share(window: _Window, flat: Array, begin: int, end: int) -> dict[str, list[Move]]:
    """The moves, by file, that read the elements from ``begin`` to ``end`` of a window into
    ``flat``, which has the elements of its boxes one box after the other."""
    found: dict[str, list[Move]] = {}
    at, element = 0, flat.dtype.itemsize
    for extent, box in window:
        first, last = max(begin, at), min(end, at + box.size)
        if first < last:
            place = extent.place + place_of(box, extent.box, element)
            mine = Box((first - at,), (last - first,))
            found.setdefault(extent.file, []).append(
                Move(place, whole((box.size,)), mine, flat[first:last])
            )
        at += box.size
    return found


def _copy_window(window: _Window, flat: Array, data: Array) -> None:
    at = 0
    for _, box in window:
        data[box.within(whole(data.shape))] = flat[at : at + box.size].reshape(box.shape)
        at += box.size


def _elements(size: int) -> Any:
    from mpi4py import MPI

    return MPI.BYTE.Create_contiguous(size).Commit()


def _in_place() -> Any:
    from mpi4py import MPI

    return MPI.IN_PLACE
