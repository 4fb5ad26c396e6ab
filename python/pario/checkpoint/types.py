"""What an element is in a file: little endian, and nothing that only numpy knows. What it was before is noted, and made of it again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.checkpoint.errors import CheckpointError

#: How notes begin that numpy understands.
_ORDERS = "<|"
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
    if _is_foreign(dtype) and dtype.itemsize in (1, 2, 4, 8):
        return np.dtype(f"<u{dtype.itemsize}")
    _check(dtype)
    return dtype.newbyteorder("<")


def _check(dtype: Type) -> None:
    if dtype.fields:
        for field in dtype.fields.values():
            _check(field[0].base)
    elif dtype.kind not in "biufcSV" or dtype.itemsize == 0 or _is_foreign(dtype):
        raise CheckpointError(f"elements of type {dtype} cannot be saved; expected numbers, strings, times or structures of numbers")


def _is_foreign(dtype: Type) -> bool:
    """Whether numpy has it from another package, as bfloat16 from ml_dtypes, which JAX uses."""
    return dtype.isbuiltin == 2


def to_stored(array: Array, wanted: Type) -> Array:
    """The array with elements as in a file, of its :func:`stored_type`; not copied where they are the same."""
    if array.dtype == wanted:
        return array
    if array.dtype.kind == "U":
        return np.char.encode(array, "utf-8").astype(wanted)
    if array.dtype.kind in "mM":
        return array.astype(array.dtype.newbyteorder("<"), copy=False).view(wanted)
    return array.view(wanted) if _is_foreign(array.dtype) else array.astype(wanted, copy=False)


def note_of(dtype: Type) -> str:
    """What has to be noted to get elements of this type back; nothing where the file tells it."""
    if _is_foreign(dtype):
        return dtype.name
    return dtype.newbyteorder("<").str if dtype.kind in "UmM" else ""


def is_number(note: str) -> bool:
    """Whether what is in the file is a number as numpy understands it."""
    return not note or note[0] in _ORDERS


def noted(note: str, stored: Type) -> Type:
    """The type of a note on elements that are ``stored`` so. Raises CheckpointError where the package is missing that it comes from, and
    where they cannot be of it, whatever a damaged file says.
    """
    try:
        found = np.dtype(note) if note[:1] in _ORDERS else _of_package(note)
        fits = stored_type(found) == stored
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise CheckpointError(f"elements of type {stored} cannot be of type {note!r}")
    return found


def _of_package(note: str) -> Type:
    try:
        import ml_dtypes

        found: Type = np.dtype(getattr(ml_dtypes, note))
    except (ImportError, AttributeError) as error:
        raise CheckpointError(f"elements of type {note} need a package that knows them: pip install ml_dtypes") from error
    return found


def from_stored(array: Array, note: str) -> Array:
    """The array as it was before it was saved."""
    if not note:
        return array
    before = noted(note, array.dtype)
    return np.char.decode(array, "utf-8").astype(before) if before.kind == "U" else array.view(before)
