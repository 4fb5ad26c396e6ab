"""Checksums of elements, of bytes, and of the chunks of blocks (docs/checkpoint-format.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario._native import add_chunk_checksums, box_checksum
from pario.checkpoint.geometry import Box, Shape
from pario.checkpoint.types import Array

#: Largest size of a chunk in bytes, unless one element is larger.
CHUNK_BYTES = 1 << 20


def checksum(data: Array, box: Box, shape: Sequence[int]) -> int:
    """The checksum of ``data``, the elements of ``box`` of an array of ``shape``.

    Checksums of boxes that tile an array add up to that of the array, modulo 2^64.
    """
    address = data.__array_interface__["data"][0]
    return box_checksum(
        address,
        data.dtype.itemsize,
        list(shape),
        list(box.begin),
        list(box.shape),
        list(data.strides),
    )


def checksum_bytes(content: bytes, element: int = 1) -> int:
    """The checksum of bytes, as an array of elements of ``element`` bytes, filled with zeros."""
    elements = np.frombuffer(content + bytes(-len(content) % element), f"u{element}")
    return checksum(elements, Box((0,), elements.shape), elements.shape)


def checksum_joined(parts: Iterable[bytes | memoryview], element: int) -> int:
    """As :func:`checksum_bytes` of the parts one after the other, without a copy of them."""
    held = [memoryview(part) for part in parts]
    shape = (-(-sum(map(len, held)) // element),)
    total, at, rest = 0, 0, b""

    def add(content: bytes | memoryview) -> None:
        nonlocal total, at
        elements = np.frombuffer(content, f"u{element}")
        total += checksum(elements, Box((at,), elements.shape), shape)
        at += len(elements)

    for view in held:
        first = min(-len(rest) % element, len(view))
        rest += view[:first]
        if len(rest) == element:
            add(rest)
            rest = b""
        if not rest:
            end = first + (len(view) - first) // element * element
            if end > first:
                add(view[first:end])
            rest = bytes(view[end:])
    if rest:
        add(rest.ljust(element, b"\0"))
    return total % (1 << 64)


def chunk_shape(shape: Sequence[int], element: int, chunk_bytes: int) -> Shape:
    """The elements of a chunk along each axis: the last axes as a whole as far as they fit, then
    as many indices of the next axis as fit, then one. ``chunk_bytes`` 0: one chunk."""
    if not chunk_bytes:
        return tuple(max(1, length) for length in shape)
    chunk = [1] * len(shape)
    left = max(1, chunk_bytes // element)
    for axis in reversed(range(len(shape))):
        chunk[axis] = max(1, min(shape[axis], left))
        left //= chunk[axis]
        if chunk[axis] < shape[axis]:
            break
    return tuple(chunk)


@dataclass(frozen=True)
class Grid:
    """The chunks of a block, numbered in C order. A block without elements has one chunk."""

    block: Box
    chunk: Shape

    @cached_property
    def counts(self) -> Shape:
        """The number of chunks along each axis."""
        pairs = zip(self.block.shape, self.chunk, strict=True)
        return tuple(max(1, -(-length // size)) for length, size in pairs)

    @property
    def count(self) -> int:
        """The number of all chunks."""
        return math.prod(self.counts)

    def box(self, index: Sequence[int]) -> Box:
        """The box of a chunk with this index along each axis."""
        pairs = zip(self.block.begin, index, self.chunk, strict=True)
        begin = tuple(first + at * size for first, at, size in pairs)
        return Box(begin, self.chunk).meet(self.block)

    def boxes(self) -> Iterator[Box]:
        """The boxes of all chunks with elements, in order."""
        boxes = (self.box(index) for index in itertools.product(*map(range, self.counts)))
        return (box for box in boxes if box.size)

    def number(self, element: Sequence[int]) -> int:
        """The number of the chunk that contains an element of the block."""
        found = 0
        axes = zip(element, self.block.begin, self.chunk, self.counts, strict=True)
        for at, begin, size, count in axes:
            found = found * count + (at - begin) // size
        return found

    def chunks_touching(self, box: Box) -> tuple[slice, ...] | None:
        """The index ranges of chunks that have elements of a box; None if there are none."""
        common = self.block.meet(box)
        if not common.size:
            return None
        axes = zip(common.begin, common.end, self.block.begin, self.chunk, strict=True)
        return tuple(
            slice((first - begin) // size, -(-(last - begin) // size))
            for first, last, begin, size in axes
        )

    def chunks_within(self, box: Box) -> tuple[slice, ...] | None:
        """The index ranges of chunks that lie completely in a box; None if there are none."""
        common = self.block.meet(box)
        if not common.size:
            return None
        found = []
        axes = zip(
            common.begin, common.end, self.block.begin, self.block.end, self.chunk, strict=True
        )
        for first, last, begin, end, size in axes:
            low = -(-(first - begin) // size)
            high = -(-(end - begin) // size) if last == end else (last - begin) // size
            if low >= high:
                return None
            found.append(slice(low, high))
        return tuple(found)

    def around(self, chunks: Sequence[slice]) -> Box:
        """The box of the chunks in index ranges."""
        first = self.box([some.start for some in chunks])
        last = self.box([some.stop - 1 for some in chunks])
        pairs = zip(first.begin, last.end, strict=True)
        return Box(first.begin, tuple(end - begin for begin, end in pairs))

    def bounding_box(self, numbers: Array) -> Box:
        """The smallest box of chunks that contains the chunks with these numbers."""
        if not self.counts:
            return self.block
        index = np.unravel_index(numbers, self.counts)
        return self.around([slice(int(at.min()), int(at.max()) + 1) for at in index])


def grid_of(block: Box, element: int, chunk_bytes: int = CHUNK_BYTES) -> Grid:
    """The chunks of a block whose elements have ``element`` bytes."""
    return Grid(block, chunk_shape(block.shape, element, chunk_bytes))


def unproven(grid: Grid, boxes: Sequence[Box]) -> Iterator[tuple[int, Box]]:
    """Numbers and boxes of the chunks that overlap a box, but lie completely in none."""
    touched = np.zeros(grid.counts, bool)
    contained = np.zeros(grid.counts, bool)
    for box in boxes:
        if (some := grid.chunks_touching(box)) is not None:
            touched[some] = True
        if (some := grid.chunks_within(box)) is not None:
            contained[some] = True
    for number in np.flatnonzero(touched & ~contained).tolist():
        yield number, grid.box([int(at) for at in np.unravel_index(number, grid.counts)])


def chunk_sums(data: Array, part: Box, grid: Grid, shape: Sequence[int]) -> tuple[int, Array]:
    """The checksums of the chunks of a block, of their elements in ``part`` only.

    ``data``: the elements of ``part``, which lies in the block of an array of ``shape``. Returns
    the number of the first chunk, and the sums (uint64) from it to the last chunk of ``part``.
    """
    if not part.size:
        return 0, np.zeros(0, np.uint64)
    first = grid.number(part.begin)
    sums = np.zeros(grid.number([end - 1 for end in part.end]) + 1 - first, np.uint64)
    axes, element = _separate_axes(data, part, grid, shape), data.dtype.itemsize
    counted = (shape, part.begin, part.shape, grid.block.begin, grid.chunk)
    whole, begin, length, block, chunk = (list(some[:axes]) for some in counted)
    strides, counts = list(data.strides[:axes]), list(grid.counts[:axes])
    if axes < len(shape):
        inner = math.prod(shape[axes:])
        for some in (whole, begin, length, block, chunk):
            some[-1] *= inner
        strides[-1] = element
    address = data.__array_interface__["data"][0]
    add_chunk_checksums(
        address, element, whole, begin, length, strides, block, chunk, counts, first, sums
    )
    return first, sums


def _separate_axes(data: Array, part: Box, grid: Grid, shape: Sequence[int]) -> int:
    """The number of axes that remain when complete last axes are joined with the one before.

    Joining makes long rows of short ones.
    """
    axes, run = len(shape), data.dtype.itemsize
    while axes > 1:
        last = axes - 1
        full = part.shape[last] == grid.chunk[last] == shape[last]
        run *= part.shape[last]
        if (
            not full
            or data.strides[last] * part.shape[last] != run
            or data.strides[last - 1] != run
        ):
            break
        axes = last
    return axes


class Tally:
    """Adds up the checksums of the chunks of a block while its bytes are in the cache."""

    def __init__(self, block: Box, shape: Sequence[int], element: int) -> None:
        self._grid, self._shape = grid_of(block, element), shape
        self._sums: Array = np.zeros(self._grid.count, np.uint64)
        self._count = 0

    def add(self, data: Array, part: Box) -> None:
        """Adds ``data``, the elements of ``part`` of the array; never an element twice."""
        first, sums = chunk_sums(data, part, self._grid, self._shape)
        self._sums[first : first + len(sums)] += sums
        self._count += part.size

    def of(self, data: Array) -> Array:
        """The sums (uint64) of all chunks of the block ``data``; computes incomplete ones."""
        if self._count != self._grid.block.size:
            self._sums[:] = 0
            self._count = 0
            self.add(data, self._grid.block)
        return self._sums
