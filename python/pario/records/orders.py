"""Orders of records by their names and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pario._native import RecordOrder

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Name, seed, epoch, and two numbers that belong to the name.
Order = tuple[str, int, int, int, int]
#: Returns the records at the positions from the first number up to the second one.
Numbers = Callable[[int, int], "NDArray[Any]"]


def make_order(
    order: Order, counts: Sequence[int] | NDArray[Any], blocks: Sequence[int] | NDArray[Any] = ()
) -> RecordOrder:
    """An order of the records of files.

    Parameters
    ----------
    counts : sequence of int
        The records of each file.
    blocks : sequence of int
        For blocks of different lengths: their first records, and the number of all records.
    """
    import numpy as np

    return RecordOrder(order, np.asarray(counts, dtype="u8"), np.asarray(blocks, dtype="u8"))
