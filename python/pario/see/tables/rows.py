"""Empty rows of the table model, in which unknown values are marked, and helpers to fill them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario import _native
from pario.see.tables.model import (
    EVENT,
    FILE,
    PROCESS,
    PROCESS_COLUMNS,
    RECORD,
    RECORD_COLUMNS,
)

#: Columns of RECORD that are moments: NaN when they never happened.
MOMENTS: tuple[str, ...] = tuple(name for name, row in RECORD_COLUMNS.items() if row.unit == "time")

_OPTIONAL = tuple(name for name, row in PROCESS_COLUMNS.items() if row.use == "optional")
_RANK_SUMMARY = ("slowest_rank_time", "fastest_rank_time", "variance_time", "variance_bytes")
_RANK_NUMBERS = ("slowest_rank", "fastest_rank", "slowest_rank_bytes", "fastest_rank_bytes")


def make_lookup(of_number: dict[int, int]) -> NDArray[np.int32]:
    """Return a table from a mapping with small keys; the last element, -1, is for others."""
    valid = {number: value for number, value in of_number.items() if 0 <= number < 1 << 24}
    table = np.full(max(valid, default=-1) + 2, -1, np.int32)
    for number, value in valid.items():
        table[number] = value
    return table


def new_records(count: int) -> NDArray[Any]:
    """Return ``count`` rows of RECORD: no calls, moments that never happened, one rank each."""
    rows = np.zeros(count, RECORD)
    for name in (*MOMENTS, *_RANK_SUMMARY):
        rows[name] = np.nan
    for name in _RANK_NUMBERS:
        rows[name] = -1
    rows["ranks"] = 1
    return rows


def new_processes(count: int) -> NDArray[Any]:
    """Return ``count`` rows of PROCESS: no MPI, end and counters of the kernel unknown."""
    rows = np.zeros(count, PROCESS)
    for name in ("end", "seen", "mpi_start", "mpi_end"):
        rows[name] = np.nan
    for name in ("rank", "parent", *_OPTIONAL):
        rows[name] = -1
    return rows


def new_files(count: int) -> NDArray[Any]:
    """Return ``count`` rows of FILE: file system and layout unknown."""
    rows = np.zeros(count, FILE)
    rows["filesystem"] = -1
    rows["layout"] = -1
    return rows


def sort_events(events: NDArray[Any]) -> NDArray[Any]:
    """Sort rows of EVENT by start, in place; return them."""
    starts = np.ascontiguousarray(events["start"])
    if np.all(starts[1:] >= starts[:-1]):
        return events
    order = np.argsort(starts, kind="stable")  # merges the sorted runs of threads and records
    del starts
    _native.permute_rows(events.view(np.uint8).reshape(len(events), EVENT.itemsize), order)
    return events


class Names:
    """Numbers for names in the order of their first use: the string tables of a Job."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._index: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of ``name``, a new one for a new name."""
        index = self._index.setdefault(name, len(self.list))
        if index == len(self.list):
            self.list.append(name)
        return index
