"""Lengths of records: in files for raw records, and as they are given to a Loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from pario.errors import ParioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pario.records.dataset import Dataset

#: Lengths of all records: an array, the name of a field, or a function of the number of a record.
Lengths = Union["Sequence[int]", "NDArray[Any]", str, Callable[[int], int]]


def read_lengths(path: str) -> NDArray[np.uint64]:
    """Reads lengths from a file: a ``.npy`` array, one number per line (``.txt``, ``.csv``), or
    unsigned 64-bit numbers, little endian."""
    import numpy as np

    try:
        if path.endswith(".npy"):
            numbers = np.load(path, allow_pickle=False)
        elif Path(path).suffix in (".txt", ".csv"):
            numbers = np.array(Path(path).read_text(encoding="ascii").split(), dtype=np.int64)
        else:
            numbers = np.fromfile(path, dtype="<u8")
    except OSError as error:
        raise ParioError(
            f"{path}: {error.strerror or error}; expected a file of lengths"
        ) from error
    except ValueError as error:
        raise ParioError(f"{path}: lengths are no numbers: {error}") from error
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
        raise ParioError(f"{path}: lengths must be a list of whole numbers that are not negative")
    return np.ascontiguousarray(numbers, dtype=np.uint64)


def list_lengths(lengths: Lengths, datasets: Sequence[Dataset]) -> NDArray[np.int64]:
    """Returns the lengths of all records of data sets as an array. Raises ParioError."""
    import numpy as np

    count = sum(map(len, datasets))
    if isinstance(lengths, str):
        lengths = np.concatenate([one.lengths(lengths) for one in datasets])
    elif callable(lengths):
        lengths = [lengths(number) for number in range(count)]
    found = np.asarray(lengths)
    if found.shape != (count,) or (count and found.dtype.kind not in "iu"):
        raise ParioError(
            f"Loader: lengths of shape {list(found.shape)} and type {found.dtype}: expected a"
            f" whole number for each of the {count} records"
        )
    return found.astype(np.int64)
