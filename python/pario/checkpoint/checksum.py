"""Sums that tell whether what is read is what was saved (docs/checkpoint.md, Checksums)."""

from __future__ import annotations

from collections.abc import Sequence

from pario.checkpoint.geometry import Box
from pario.checkpoint.types import Array


def checksum(data: Array, box: Box, shape: Sequence[int]) -> int:
    """Of ``data``, which is ``box`` of an array of ``shape``. Sums of boxes that tile add up, modulo 2^64."""
    from pario._native import box_checksum

    address = data.__array_interface__["data"][0]
    return box_checksum(address, data.dtype.itemsize, list(shape), list(box.begin), list(box.shape), list(data.strides))


class Tally:
    """The checksum of a box, of parts that are added while they are at hand: reading memory once more costs more than the sums."""

    def __init__(self, box: Box, shape: Sequence[int]) -> None:
        self._box, self._shape = box, shape
        self._sum = self._count = 0

    def add(self, data: Array, part: Box) -> None:
        """``data``, which is ``part`` of the array; no element is added twice."""
        self._sum += checksum(data, part, self._shape)
        self._count += part.size

    def of(self, data: Array) -> int:
        """That of the whole box, which is ``data``, whatever was added."""
        return self._sum % (1 << 64) if self._count == self._box.size else checksum(data, self._box, self._shape)
