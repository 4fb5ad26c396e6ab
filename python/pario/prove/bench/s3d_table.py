"""The checkpoint of S3D written in three ways: measured counts and times, and the published
ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pario.prove.bench.results import Repetitions, require_format

FORMAT = "pario-bench-s3d"
VERSION = 1
#: The grid of the published case: 16 ranks with rows of 8 cells.
GRID, RANKS = (40, 40, 32), 16
WAYS = {
    "independent": "each row of cells a write of its own",
    "sieved": "windows that are read, changed and written back",
    "collective": "gathered, then written in large pieces",
}
#: POSIX writes, reads, MiB written, writes that do not begin at a multiple of 4 MiB, seconds of the
#: run; ATPESC 2020 hands-on I/O.
PUBLISHED = {
    "independent": (102_401, 0, 6.25, 102_399, 1443.0),
    "sieved": (81, 80, 87.11, 80, 11.0),
    "collective": (5, 0, 6.25, 4, 6.0),
}
#: Alignment, in bytes, of the published counts of unaligned writes.
UNIT = 4 << 20


@dataclass(frozen=True)
class Row:
    """The result of one way: seconds of the slowest rank, and counts of the accesses to one
    checkpoint, over all ranks."""

    way: str
    seconds: Repetitions
    bytes: int  # of the checkpoint
    writes: int
    reads: int
    written: int
    read: int
    unaligned: int


def rows_of(document: Mapping[str, Any]) -> list[Row]:
    """The rows of a result in JSON. Raises ValueError for another document."""
    require_format(document, FORMAT, VERSION)
    return [Row(**{**row, "seconds": Repetitions(row["seconds"])}) for row in document["rows"]]
