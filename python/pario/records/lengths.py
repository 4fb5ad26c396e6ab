"""Reads files with the lengths of raw records: numpy, text or binary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pario.errors import ParioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read_lengths(path: str) -> NDArray[np.uint64]:
    """Reads a ``.npy`` array, one number per line (``.txt``, ``.csv``), or unsigned 64-bit numbers,
    little endian."""
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
