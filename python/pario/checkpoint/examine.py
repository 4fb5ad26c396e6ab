"""Examines checkpoints piece by piece: statistics, damage, differences, slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import transfer, types
from pario.checkpoint.checksum import chunk_sums
from pario.checkpoint.compression import read_compressed
from pario.checkpoint.errors import CheckpointError, DamageError
from pario.checkpoint.geometry import Box, pieces, whole
from pario.checkpoint.header import Entry, Header
from pario.progress import Show, silent

#: Bytes that are read, compared and written together.
_PIECE = 1 << 26


@dataclass(frozen=True)
class Figures:
    """Statistics of the numbers of an array; of the numbers without NaN, and their count."""

    least: float | int | None
    most: float | int | None
    mean: float | None
    not_numbers: int


def read_box(
    header: Header, entry: Entry, box: Box, descriptor: Callable[[str], int] = lambda _: -1
) -> types.Array:
    """Reads a part of an array, with elements as in the file. ``descriptor``: that of an open
    file by its name in extents, or -1."""
    if entry.extents is None and entry.frames is None:
        with hdf5.open_to_read(header.path, CheckpointError) as source:
            return np.asarray(source.read(entry.layout.name, box.within(whole(entry.layout.shape))))
    data = np.empty(box.shape, entry.layout.dtype)
    if entry.frames is not None:
        read_compressed(header, entry, box, data)
        return data
    for file, moves in entry.moves(box, data).items():
        transfer.read(header.file(file), moves, opened=descriptor(file))
    return data


def boxes_of(entry: Entry, box: Box | None = None) -> Iterator[Box]:
    """Divides an array, or a box of it, into boxes of at most _PIECE bytes."""
    element = max(1, entry.layout.dtype.itemsize)
    return pieces(whole(entry.layout.shape) if box is None else box, max(1, _PIECE // element))


def figures(header: Header, entry: Entry) -> Figures | None:
    """Computes the statistics of an array; None where the elements are not real numbers."""
    if entry.layout.dtype.kind not in "biuf" or entry.layout.note:
        return None
    least, most, total, count, missing = [], [], 0.0, 0, 0
    for box in boxes_of(entry):
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
    """Describes all blocks whose bytes do not match their checksums."""
    total = sum(entry.layout.nbytes for entry in header.entries.values())
    done = 0

    def show_read(count: int) -> None:
        show(done + count, total)

    for entry in header.entries.values():
        if not len(entry.sums):
            continue
        for number, block in enumerate(entry.layout.blocks):
            yield from damage(header, entry, number, show_read)
            done += block.box.size * entry.layout.dtype.itemsize


def damage(
    header: Header, entry: Entry, number: int, show: Callable[[int], object] | None = None
) -> Iterator[str]:
    """Describes the damaged chunks of a block. ``show`` receives the bytes read so far."""
    block, element = entry.layout.blocks[number], entry.layout.dtype.itemsize
    grid, done = entry.grid(number), 0
    found: types.Array = np.zeros(grid.count, np.uint64)
    for box in boxes_of(entry, block.box) if entry.frames is None else grid.boxes():
        try:
            first, sums = chunk_sums(read_box(header, entry, box), box, grid, entry.layout.shape)
        except DamageError as error:  # of one chunk
            yield error.text
            first = grid.number(box.begin)
            sums = entry.sums_of(number)[first : first + 1]
        except CheckpointError as error:
            yield f"array '{entry.layout.name}': {box}: {error}"
            return
        found[first : first + len(sums)] += sums
        done += box.size * element
        if show:
            show(done)
    yield from describe_damage(entry, number, found)


def describe_damage(entry: Entry, number: int, found: types.Array) -> Iterator[str]:
    """Describes the chunks of a block whose checksums differ from those ``found``."""
    block, grid = entry.layout.blocks[number], entry.grid(number)
    wrong = np.flatnonzero(found != entry.sums_of(number))
    if block.box.size and len(wrong):
        yield entry.damage_text(number, grid.bounding_box(wrong))


def differences(one: Header, other: Header, tolerance: float, show: Show = silent) -> Iterator[str]:
    """Describes the differences of two checkpoints.

    Numbers may differ by ``tolerance``, relative to the larger one; NaN equals NaN.
    """
    for name in dict.fromkeys([*one.attrs, *other.attrs]):
        mine, its = one.attrs.get(name), other.attrs.get(name)
        if (
            name not in one.attrs
            or name not in other.attrs
            or not np.array_equal(np.asarray(mine), np.asarray(its))
        ):
            texts = _attr_text(one.attrs, name), _attr_text(other.attrs, name)
            yield f"attribute '{name}': {texts[0]}, {texts[1]}"
    total = sum(entry.layout.nbytes for entry in one.entries.values())
    done = 0
    for name in dict.fromkeys([*one.entries, *other.entries]):
        if name not in other.entries or name not in one.entries:
            yield f"array '{name}': only in {(one if name in one.entries else other).name}"
            continue
        difference = _difference(one, other, name, tolerance)
        if difference:
            yield f"array '{name}': {difference}"
        done += one.entries[name].layout.nbytes
        show(done, total)


def _attr_text(attrs: Mapping[str, Any], name: str) -> str:
    return repr(attrs[name]) if name in attrs else "not there"


def _difference(one: Header, other: Header, name: str, tolerance: float) -> str:
    mine, its = one.entries[name], other.entries[name]
    if mine.layout.shape != its.layout.shape:
        return f"shape {list(mine.layout.shape)}, {list(its.layout.shape)}"
    if (mine.layout.dtype, mine.layout.note) != (its.layout.dtype, its.layout.note):
        return (
            f"type {mine.layout.note or mine.layout.dtype}, {its.layout.note or its.layout.dtype}"
        )
    if mine.sum is not None and mine.sum == its.sum:
        return ""
    count, most, first = 0, 0.0, ""
    for box in boxes_of(mine):
        left, right = read_box(one, mine, box), read_box(other, its, box)
        differ, by = _compare(left, right, tolerance)
        if differ.any() and not first:
            at = tuple(int(places[0]) for places in np.nonzero(np.atleast_1d(differ)))
            at = at[: len(box.begin)]
            first = str([begin + place for begin, place in zip(box.begin, at, strict=True)])
        count += int(differ.sum())
        most = max(most, by if types.is_number(mine.layout.note) else 0.0)
    if not count:
        return ""
    if not mine.layout.shape:
        return f"it differs, by {most:.3g}" if most else "it differs"
    by_most = f", by {most:.3g} at most" if most else ""
    size = mine.layout.nbytes // max(mine.layout.dtype.itemsize, 1)
    return f"{count} of {size} elements differ, the first at {first}{by_most}"


def _compare(left: types.Array, right: types.Array, tolerance: float) -> tuple[types.Array, float]:
    """The elements that differ, and their largest difference."""
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
    if differ.ndim:
        return differ, float(np.max(by[differ], initial=0.0))
    return differ, float(by) if differ else 0.0


def slice_of(header: Header, name: str, axis: int, index: int | None) -> types.Array:
    """Reads two axes of an array. Of an array with more, ``axis`` is cut at ``index`` (None: in the
    middle), and further axes in the middle."""
    if name not in header.entries:
        raise CheckpointError(header.describe_missing(name))
    entry = header.entries[name]
    shape = entry.layout.shape
    is_numeric = entry.layout.dtype.kind in "biuf" and types.is_number(entry.layout.note)
    if not is_numeric or 0 in shape or not shape:
        raise CheckpointError(
            f"array '{name}' of type {entry.layout.dtype} and shape {list(shape)} cannot be drawn"
        )
    if len(shape) > 2 and not -len(shape) <= axis < len(shape):
        raise CheckpointError(f"array '{name}' of shape {list(shape)} has no axis {axis}")
    fixed = [axis % len(shape)] if len(shape) > 2 else []
    fixed += [other for other in range(len(shape)) if other not in fixed][
        : max(0, len(shape) - 2 - len(fixed))
    ]
    begin, size = [0] * len(shape), list(shape)
    for one in fixed:
        begin[one] = shape[one] // 2 if index is None or one != fixed[0] else index
        size[one] = 1
    box = Box(tuple(begin), tuple(size))
    if box.meet(whole(shape)) != box:
        raise CheckpointError(
            f"array '{name}' of shape {list(shape)} has no index {index} along axis {axis}"
        )
    return read_box(header, entry, box).squeeze(axis=tuple(fixed))
