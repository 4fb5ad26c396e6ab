"""What is in a checkpoint: figures, damage, differences. Of any size: arrays are read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from pario import hdf5
from pario.checkpoint import transfer, types
from pario.checkpoint.checksum import chunk_sums
from pario.checkpoint.chunks import bounding_box
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, pieces, whole
from pario.checkpoint.header import Entry, Header
from pario.progress import Show, silent

#: Bytes of a piece.
_PIECE = 1 << 26


@dataclass(frozen=True)
class Figures:
    """Of the numbers of an array; NaN does not count but as itself."""

    least: float | int | None
    most: float | int | None
    mean: float | None
    not_numbers: int


def read_box(header: Header, entry: Entry, box: Box) -> types.Array:
    """A part of an array, with elements as in the file."""
    if entry.extents is None:
        with hdf5.open_to_read(header.path, CheckpointError) as source:
            return np.asarray(source.read(entry.layout.name, box.within(whole(entry.layout.shape))))
    data = np.empty(box.shape, entry.layout.dtype)
    for file, moves in entry.moves(box, data).items():
        transfer.read(None, header.file(file), moves)
    return data


def figures(header: Header, entry: Entry) -> Figures | None:
    """None where the elements are no real numbers."""
    if entry.layout.dtype.kind not in "biuf" or entry.layout.note:
        return None
    least, most, total, count, missing = [], [], 0.0, 0, 0
    for box in pieces(whole(entry.layout.shape), _PIECE // entry.layout.dtype.itemsize):
        data = read_box(header, entry, box)
        numbers = data[~np.isnan(data)] if data.dtype.kind == "f" else data.reshape(-1)
        missing += data.size - numbers.size
        if numbers.size:
            least.append(numbers.min())
            most.append(numbers.max())
            total += float(numbers.sum(dtype="f8"))
            count += numbers.size
    if not count:
        return Figures(None, None, None, missing)
    return Figures(min(least).item(), max(most).item(), total / count, missing)


def damages(header: Header, show: Show = silent) -> Iterator[str]:
    """Descriptions of blocks whose bytes do not match their checksums."""
    total = sum(entry.layout.nbytes for entry in header.entries.values())
    done = 0
    for entry in header.entries.values():
        if not len(entry.sums):
            continue
        for number, block in enumerate(entry.layout.blocks):
            yield from damage(header, entry, number, partial(_shown, show, done, total))
            done += block.box.size * entry.layout.dtype.itemsize


def _shown(show: Show, before: int, total: int, read: int) -> None:
    show(before + read, total)


def damage(header: Header, entry: Entry, number: int, show: Callable[[int], object] | None = None) -> Iterator[str]:
    """Describes the damaged chunks of a block that has checksums.

    ``show`` gets the number of bytes read so far.
    """
    block, element = entry.layout.blocks[number], entry.layout.dtype.itemsize
    grid, done = entry.grid(number), 0
    found: types.Array = np.zeros(grid.count, np.uint64)
    for box in pieces(block.box, max(1, _PIECE // element)):
        try:
            first, sums = chunk_sums(read_box(header, entry, box), box, grid, entry.layout.shape)
        except CheckpointError as error:
            yield f"array '{entry.layout.name}': {box}: {error}"
            return
        found[first : first + len(sums)] += sums
        done += box.size * element
        if show:
            show(done)
    yield from describe_damage(entry, number, found)


def describe_damage(entry: Entry, number: int, found: types.Array) -> Iterator[str]:
    """Describes the chunks of a block whose sums are not the ones ``found``."""
    block, grid = entry.layout.blocks[number], entry.grid(number)
    wrong = np.flatnonzero(found != entry.sums_of(number))
    if block.box.size and len(wrong):
        box = bounding_box(grid, wrong)
        yield f"array '{entry.layout.name}': {box}, saved by rank {block.rank}, is not what was saved"


def differences(one: Header, other: Header, tolerance: float, show: Show = silent) -> Iterator[str]:
    """What differs between two checkpoints. Numbers may differ by ``tolerance``, relative to the larger of both; NaN equals NaN."""
    for name in dict.fromkeys([*one.attrs, *other.attrs]):
        mine, its = one.attrs.get(name), other.attrs.get(name)
        if name not in one.attrs or name not in other.attrs or not np.array_equal(np.asarray(mine), np.asarray(its)):
            yield f"attribute '{name}': {_said(one.attrs, name)}, {_said(other.attrs, name)}"
    total = sum(entry.layout.nbytes for entry in one.entries.values())
    done = 0
    for name in dict.fromkeys([*one.entries, *other.entries]):
        if name not in other.entries or name not in one.entries:
            yield f"array '{name}': only in {(one if name in one.entries else other).path}"
            continue
        difference = _difference(one, other, name, tolerance)
        if difference:
            yield f"array '{name}': {difference}"
        done += one.entries[name].layout.nbytes
        show(done, total)


def _said(attrs: object, name: str) -> str:
    return repr(attrs[name]) if isinstance(attrs, dict) and name in attrs else "not there"


def _difference(one: Header, other: Header, name: str, tolerance: float) -> str:
    mine, its = one.entries[name], other.entries[name]
    if mine.layout.shape != its.layout.shape:
        return f"shape {list(mine.layout.shape)}, {list(its.layout.shape)}"
    if (mine.layout.dtype, mine.layout.note) != (its.layout.dtype, its.layout.note):
        return f"type {mine.layout.note or mine.layout.dtype}, {its.layout.note or its.layout.dtype}"
    if mine.sum is not None and mine.sum == its.sum:
        return ""
    count, most, first = 0, 0.0, ""
    for box in pieces(whole(mine.layout.shape), _PIECE // mine.layout.dtype.itemsize):
        left, right = read_box(one, mine, box), read_box(other, its, box)
        differ, by = _unequal(left, right, tolerance)
        if differ.any() and not first:
            at = tuple(int(places[0]) for places in np.nonzero(np.atleast_1d(differ)))[: len(box.begin)]
            first = str([begin + place for begin, place in zip(box.begin, at, strict=True)])
        count += int(differ.sum())
        most = max(most, by if types.is_number(mine.layout.note) else 0.0)
    if not count:
        return ""
    if not mine.layout.shape:
        return f"it differs, by {most:.3g}" if most else "it differs"
    by_much = f", by {most:.3g} at most" if most else ""
    return f"{count} of {mine.layout.nbytes // max(mine.layout.dtype.itemsize, 1)} elements differ, the first at {first}{by_much}"


def _unequal(left: types.Array, right: types.Array, tolerance: float) -> tuple[types.Array, float]:
    """Which elements differ, and by how much at most."""
    if left.dtype.kind not in "biufc":
        return np.asarray(left != right), 0.0
    if left.dtype.kind not in "fc":
        differ = np.asarray(left != right)
        by = np.abs(left.astype("f8") - right.astype("f8"))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            by = np.abs(left - right)
            limit = tolerance * np.maximum(np.abs(left), np.abs(right))
            close = (left == right) | (np.isnan(left) & np.isnan(right)) | (by <= limit)
        differ = np.asarray(~close)
    return differ, float(np.max(by[differ], initial=0.0)) if differ.ndim else (float(by) if differ else 0.0)


def slice_of(header: Header, name: str, axis: int, index: int | None) -> types.Array:
    """Two axes of an array: of one with three, where ``axis`` has an index (None: the middle); further axes in the middle, too."""
    if name not in header.entries:
        raise CheckpointError(f"{header.path} has no array '{name}'; it has {', '.join(header.entries) or 'none'}")
    entry = header.entries[name]
    shape = entry.layout.shape
    if entry.layout.dtype.kind not in "biuf" or not types.is_number(entry.layout.note) or 0 in shape or not shape:
        raise CheckpointError(f"array '{name}' of type {entry.layout.dtype} and shape {list(shape)} cannot be drawn")
    if len(shape) > 2 and not -len(shape) <= axis < len(shape):
        raise CheckpointError(f"array '{name}' of shape {list(shape)} has no axis {axis}")
    fixed = [axis % len(shape)] if len(shape) > 2 else []
    fixed += [other for other in range(len(shape)) if other not in fixed][: max(0, len(shape) - 2 - len(fixed))]
    begin, size = [0] * len(shape), list(shape)
    for one in fixed:
        begin[one] = shape[one] // 2 if index is None or one != fixed[0] else index
        size[one] = 1
    box = Box(tuple(begin), tuple(size))
    if box.meet(whole(shape)) != box:
        raise CheckpointError(f"array '{name}' of shape {list(shape)} has no index {index} along axis {axis}")
    return read_box(header, entry, box).squeeze(axis=tuple(fixed))
