"""Chunks of the blocks of an array, each with a checksum of its own. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario.checkpoint.geometry import Box, Shape
from pario.checkpoint.types import Array

#: Bytes of a chunk at most, unless an element has more.
CHUNK_BYTES = 1 << 20


def chunk_shape(shape: Sequence[int], element: int, chunk_bytes: int) -> Shape:
    """Elements of a chunk along each axis: the last axes as a whole as far as they fit, then as
    many indices of the next axis as fit, then one. ``chunk_bytes`` 0: the block is one chunk.
    """
    if not chunk_bytes:
        return tuple(max(1, length) for length in shape)
    chunk = [1] * len(shape)
    room = max(1, chunk_bytes // element)
    for axis in reversed(range(len(shape))):
        chunk[axis] = max(1, min(shape[axis], room))
        room //= chunk[axis]
        if chunk[axis] < shape[axis]:
            break
    return tuple(chunk)


@dataclass(frozen=True)
class Grid:
    """The chunks of a block, numbered in C order. A block without elements has one."""

    block: Box
    chunk: Shape

    @cached_property
    def counts(self) -> Shape:
        """Chunks along each axis."""
        pairs = zip(self.block.shape, self.chunk, strict=True)
        return tuple(max(1, -(-length // size)) for length, size in pairs)

    @property
    def count(self) -> int:
        """All chunks."""
        return math.prod(self.counts)

    def box(self, index: Sequence[int]) -> Box:
        """A chunk, by its number along each axis."""
        pairs = zip(self.block.begin, index, self.chunk, strict=True)
        begin = tuple(first + at * size for first, at, size in pairs)
        return Box(begin, self.chunk).meet(self.block)

    def number(self, element: Sequence[int]) -> int:
        """The chunk of an element of the block."""
        found = 0
        axes = zip(element, self.block.begin, self.chunk, self.counts, strict=True)
        for at, begin, size, count in axes:
            found = found * count + (at - begin) // size
        return found

    def touched(self, box: Box) -> tuple[slice, ...] | None:
        """The chunks that have elements of a box, along each axis. None: there are none."""
        common = self.block.meet(box)
        if not common.size:
            return None
        axes = zip(common.begin, common.end, self.block.begin, self.chunk, strict=True)
        return tuple(slice((first - begin) // size, -(-(last - begin) // size)) for first, last, begin, size in axes)

    def contained(self, box: Box) -> tuple[slice, ...] | None:
        """The chunks all of whose elements are in a box, along each axis. None: there are none."""
        common = self.block.meet(box)
        if not common.size:
            return None
        found = []
        axes = zip(common.begin, common.end, self.block.begin, self.block.end, self.chunk, strict=True)
        for first, last, begin, end, size in axes:
            low = -(-(first - begin) // size)
            high = -(-(end - begin) // size) if last == end else (last - begin) // size
            if low >= high:
                return None
            found.append(slice(low, high))
        return tuple(found)

    def around(self, chunks: Sequence[slice]) -> Box:
        """The box of such chunks."""
        first = self.box([some.start for some in chunks])
        last = self.box([some.stop - 1 for some in chunks])
        pairs = zip(first.begin, last.end, strict=True)
        return Box(first.begin, tuple(end - begin for begin, end in pairs))


def grid_of(block: Box, element: int, chunk_bytes: int = CHUNK_BYTES) -> Grid:
    """The chunks of a block whose elements have so many bytes."""
    return Grid(block, chunk_shape(block.shape, element, chunk_bytes))


def unproven(grid: Grid, boxes: Sequence[Box]) -> Iterator[tuple[int, Box]]:
    """Numbers and boxes of chunks that have elements of some box, but are in no box as a whole."""
    touched = np.zeros(grid.counts, bool)
    contained = np.zeros(grid.counts, bool)
    for box in boxes:
        if (some := grid.touched(box)) is not None:
            touched[some] = True
        if (some := grid.contained(box)) is not None:
            contained[some] = True
    for number in np.flatnonzero(touched & ~contained).tolist():
        yield number, grid.box([int(at) for at in np.unravel_index(number, grid.counts)])


def bounding_box(grid: Grid, wrong: Array) -> Box:
    """The smallest box of chunks that has all with these numbers."""
    if not grid.counts:
        return grid.block
    index = np.unravel_index(wrong, grid.counts)
    return grid.around([slice(int(at.min()), int(at.max()) + 1) for at in index])
