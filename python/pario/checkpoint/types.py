"""Types of elements in files: those that HDF5 has, in the byte order of the array.

A note names the numpy type of elements that HDF5 does not have, such as strings and times.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.checkpoint.errors import CheckpointError

#: Strings are UTF-8; a lone surrogate, as in the name of a file that is not UTF-8, is three bytes.
_ENCODING = {"encoding": "utf-8", "errors": "surrogatepass"}
_INTEGER = re.compile(r"bool|u?int(8|16|32|64)")
#: The first characters of notes that numpy understands.
_ORDERS = "<>|"
Array = NDArray[Any]
Type = np.dtype[Any]


def stored_type(dtype: Type) -> Type:
    """The type of elements in a file. Raises CheckpointError where there is none."""
    if dtype.kind in "US":  # UTF-8 needs at most as many bytes
        return np.dtype(f"S{max(dtype.itemsize, 1)}")
    if dtype.kind in "mM":
        return np.dtype("i8").newbyteorder(dtype.byteorder)
    if _is_foreign(dtype) and dtype.itemsize in (1, 2, 4, 8):
        return np.dtype(f"<u{dtype.itemsize}")
    _check(dtype)
    # h5py has no big-endian complex numbers of 32 bytes
    return dtype.newbyteorder("<") if dtype.kind == "c" and dtype.itemsize > 16 else dtype


def is_stored(dtype: Type) -> bool:
    """True for a type of elements that :func:`stored_type` accepts."""
    try:
        stored_type(dtype)
    except CheckpointError:
        return False
    return True


def _check(dtype: Type, whole: Type | None = None) -> None:
    """``whole``: the structure that has a field of this type."""
    if dtype.fields:
        for field in dtype.fields.values():
            _check(field[0].base, whole or dtype)
    elif dtype.kind not in "biufcSV" or dtype.itemsize == 0 or _is_foreign(dtype):
        within = f", with a field of type {dtype}," if whole else ""
        raise CheckpointError(
            f"elements of type {whole or dtype}{within} cannot be saved; expected numbers, strings,"
            " times, or structures of numbers and bytes"
        )


def _is_foreign(dtype: Type) -> bool:
    """True for types of other packages, such as bfloat16 of ml_dtypes, which JAX uses."""
    return dtype.isbuiltin == 2


def keeps_values(saved: str, target: str) -> bool:
    """True if elements keep their values in another type, but for the precision of floating-point
    numbers. Types have their names in numpy or PyTorch."""
    before, after = map(_find_family, (saved, target))
    if before == after == 0:
        return np.can_cast(saved, target, "safe")
    return saved == target or 0 <= before <= after


def _find_family(name: str) -> int:
    """0 for integers, 1 for real and 2 for complex floating-point numbers, -1 for others."""
    if _INTEGER.fullmatch(name):
        return 0
    return 1 if "float" in name else 2 if name.startswith("complex") else -1


def to_stored(array: Array, stored: Type) -> Array:
    """Converts an array to its :func:`stored_type`; copies only where the bytes differ."""
    if array.dtype == stored:
        return array
    if array.dtype.kind == "U":
        return np.char.encode(array, **_ENCODING).astype(stored)
    if array.dtype.kind in "mM" or _is_foreign(array.dtype):
        return array.view(stored)
    return array.astype(stored, copy=False)


def require_unmasked(value: Any) -> Any:
    """The value. Raises CheckpointError for an array with masked elements: numpy would give the
    elements below the mask."""
    if np.ma.is_masked(value):
        raise CheckpointError(
            "masked elements cannot be saved; expected a plain array, such as array.filled(), and"
            " maybe the mask as another one"
        )
    return value


def note_of(dtype: Type) -> str:
    """The note for elements of this type; empty where the stored type is the type itself."""
    if _is_foreign(dtype):
        return dtype.name
    return dtype.str if dtype.kind in "UmM" else ""


def is_number(note: str) -> bool:
    """True if the stored elements are numbers as numpy understands them."""
    return not note or note[0] in _ORDERS


def type_of_note(note: str, stored: Type) -> Type:
    """The type that a note names, for elements stored as ``stored``; that type without a note.

    Raises CheckpointError where its package is missing, or where a damaged note does not fit.
    """
    if not note:
        return stored
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
        raise CheckpointError(
            f"elements of type {note} need a package that knows them: pip install ml_dtypes"
        ) from error
    return found


def from_stored(array: Array, note: str) -> Array:
    """Converts stored elements back to the type that the note names."""
    if not note:
        return array
    before = type_of_note(note, array.dtype)
    if before.kind == "U":
        return np.char.decode(array, **_ENCODING).astype(before)
    return array.view(before)
