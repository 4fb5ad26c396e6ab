"""What an element is in a file: little endian, and nothing that only numpy knows. What it was before is noted, and made of it again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.checkpoint.errors import CheckpointError

Array = NDArray[Any]
Type = np.dtype[Any]


def stored_type(dtype: Type) -> Type:
    """The type in a file. Raises CheckpointError where there is none."""
    if dtype.kind == "U":  # UTF-8 needs at most as many bytes
        return np.dtype(f"S{max(dtype.itemsize, 1)}")
    if dtype.kind == "S":
        return np.dtype(f"S{max(dtype.itemsize, 1)}")
    if dtype.kind in "mM":
        return np.dtype("<i8")
    _check(dtype)
    return dtype.newbyteorder("<")


def _check(dtype: Type) -> None:
    if dtype.fields:
        for field in dtype.fields.values():
            _check(field[0].base)
    elif dtype.kind not in "biufcSV" or dtype.itemsize == 0:
        raise CheckpointError(f"elements of type {dtype} cannot be saved; expected numbers, strings, times or structures of numbers")


def to_stored(array: Array, wanted: Type) -> Array:
    """The array with elements as in a file, of its :func:`stored_type`; not copied where they are the same."""
    if array.dtype == wanted:
        return array
    if array.dtype.kind == "U":
        return np.char.encode(array, "utf-8").astype(wanted)
    if array.dtype.kind in "mM":
        return array.astype(array.dtype.newbyteorder("<"), copy=False).view(wanted)
    return array.astype(wanted, copy=False)


def note_of(dtype: Type) -> str:
    """What has to be noted to get elements of this type back; nothing where the file tells it."""
    return dtype.newbyteorder("<").str if dtype.kind in "UmM" else ""


def from_stored(array: Array, note: str) -> Array:
    """The array as it was before it was saved."""
    if not note:
        return array
    before = np.dtype(note)
    return np.char.decode(array, "utf-8").astype(before) if before.kind == "U" else array.view(before)
