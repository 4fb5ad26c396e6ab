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
    """Return the sums of values by group number."""
    return np.bincount(group, np.asarray(values, np.float64), groups).astype(np.float64, copy=False)


def counts(group: Any, groups: int) -> Ints:
    """Return the number of members of each group."""
    return np.bincount(group, minlength=groups).astype(np.int64, copy=False)


def unique_pairs(first: Any, second: Any) -> tuple[Ints, Ints]:
    """Return the distinct pairs of non-negative numbers, sorted. Much faster than np.unique over
    rows."""
    width = int(second.max(initial=0)) + 1
    keys = np.unique(np.asarray(first, np.int64) * width + second)
    return keys // width, keys % width


def order_by_group(group: Any, value: Any) -> Ints:
    """Return the stable order by group number and then by value. Values that are sorted already,
    such as the starts of events, need a tenth of the time."""
    if not np.all(value[1:] >= value[:-1]):
        return np.asarray(np.lexsort((value, group)))
    # numpy sorts numbers of 16 bits in linear time.
    few = group.min(initial=0) >= 0 and group.max(initial=0) < 1 << 16
    return np.asarray(np.argsort(group.astype(np.uint16) if few else group, kind="stable"))


def columns(table: Table, rows: Any, *names: str) -> tuple[NDArray[Any], ...]:
    """Return columns of some rows. Much faster than indexing whole rows, which copies all of
    them."""
    return tuple(table[name][rows] for name in names)


def ratio(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """Return ``part / whole``; ``otherwise`` where ``whole`` is 0."""
    result = np.full(len(part), otherwise)
    np.divide(part, whole, out=result, where=whole > 0)
    return result
