"""Names for array types, and grouped sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Table = NDArray[Any]  #: a structured array of the table model


def sums(group: Any, values: Any, groups: int) -> Floats:
    """Sums of values by group number."""
    return np.bincount(group, np.asarray(values, np.float64), groups).astype(np.float64, copy=False)


def counts(group: Any, groups: int) -> Ints:
    """How many of each group number."""
    return np.bincount(group, minlength=groups).astype(np.int64, copy=False)


def unique_pairs(first: Any, second: Any) -> tuple[Ints, Ints]:
    """The different pairs of numbers (none negative), sorted. Much faster than np.unique over
    rows."""
    width = int(second.max(initial=0)) + 1
    keys = np.unique(np.asarray(first, np.int64) * width + second)
    return keys // width, keys % width


def ratio(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """``part / whole``, ``otherwise`` where there is no whole."""
    result = np.full(len(part), otherwise)
    np.divide(part, whole, out=result, where=whole > 0)
    return result
