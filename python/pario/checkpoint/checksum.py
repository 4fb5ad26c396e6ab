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
