"""Checksums of elements and of bytes (docs/checkpoint-format.md, Checksums)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pario.checkpoint.chunks import Grid, grid_of
from pario.checkpoint.geometry import Box
from pario.checkpoint.types import Array


def checksum(data: Array, box: Box, shape: Sequence[int]) -> int:
    """Of ``data``, which is ``box`` of an array of ``shape``. Sums of boxes that tile add up, modulo 2^64."""
    from pario._native import box_checksum

    address = data.__array_interface__["data"][0]
    return box_checksum(address, data.dtype.itemsize, list(shape), list(box.begin), list(box.shape), list(data.strides))


def checksum_bytes(content: bytes) -> int:
    """Of an array of bytes."""
    size = (len(content),)
    return checksum(np.frombuffer(content, np.uint8), Box((0,), size), size)


def chunk_sums(data: Array, part: Box, grid: Grid, shape: Sequence[int]) -> tuple[int, Array]:
    """Sums of the chunks of a block, as far as they are in ``part`` of an array of ``shape``.

    ``data``: the elements of ``part``, which lies in the block. Returns the number of the first
    chunk and the sums (uint64) from it on to the last chunk of ``part``.
    """
    from pario._native import add_chunk_checksums

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
    add_chunk_checksums(address, element, whole, begin, length, strides, block, chunk, counts, first, sums)
    return first, sums


def _separate_axes(data: Array, part: Box, grid: Grid, shape: Sequence[int]) -> int:
    """How many axes are left when the last ones, which all have as a whole, are joined with the one
    before. That makes long rows of short ones.
    """
    axes, run = len(shape), data.dtype.itemsize
    while axes > 1:
        last = axes - 1
        full = part.shape[last] == grid.chunk[last] == shape[last]
        run *= part.shape[last]
        if not full or data.strides[last] * part.shape[last] != run or data.strides[last - 1] != run:
            break
        axes = last
    return axes


class Tally:
    """The checksums of the chunks of a block, added up while its bytes are in the cache."""

    def __init__(self, block: Box, shape: Sequence[int], element: int) -> None:
        self._grid, self._shape = grid_of(block, element), shape
        self._sums: Array = np.zeros(self._grid.count, np.uint64)
        self._count = 0

    def add(self, data: Array, part: Box) -> None:
        """Adds ``data``, which is ``part`` of the array; no element is added twice."""
        first, sums = chunk_sums(data, part, self._grid, self._shape)
        self._sums[first : first + len(sums)] += sums
        self._count += part.size

    def of(self, data: Array) -> Array:
        """The sums (uint64) of the chunks of the block, which is ``data``, whatever was added."""
        if self._count != self._grid.block.size:
            self._sums[:] = 0
            self._count = 0
            self.add(data, self._grid.block)
        return self._sums
