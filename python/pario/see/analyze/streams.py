"""The figures of buffered files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.analyze.cells import POSIX
from pario.see.analyze.model import MOST_ROWS, StreamRow
from pario.see.tables.model import Job

_COUNTS = (
    "reads",
    "writes",
    "buffered_read_bytes",
    "buffered_write_bytes",
    "system_reads",
    "system_read_bytes",
    "system_writes",
    "system_write_bytes",
    "buffers_used",
    "prefetches",
    "preflushes",
    "wasted_bytes",
)
_SECONDS = ("system_read_time", "system_write_time")


def streams(job: Job) -> tuple[tuple[StreamRow, ...], int]:
    """Return the buffered files by calls of the program, most first, and their number."""
    posix = job.records[job.records["layer"] == POSIX]
    buffered = (
        posix["buffered_read_bytes"] + posix["buffered_write_bytes"] + posix["system_reads"] > 0
    )
    files = np.unique(posix["file"][buffered])
    position = np.full(len(job.files), -1)
    position[files] = np.arange(len(files))
    rows = posix[position[posix["file"]] >= 0]
    sums = {
        name: _sums(rows[name], position[rows["file"]], len(files))
        for name in (*_COUNTS, *_SECONDS)
    }
    order = np.argsort(-(sums["reads"] + sums["writes"]), kind="stable")[:MOST_ROWS]
    return tuple(_row(job, sums, int(files[at]), int(at)) for at in order), len(files)


def _sums(values: NDArray[Any], at: NDArray[np.intp], size: int) -> NDArray[Any]:
    result = np.zeros(size, values.dtype)
    np.add.at(result, at, values)
    return result


def _row(job: Job, sums: dict[str, NDArray[Any]], file: int, at: int) -> StreamRow:
    counts = {name: int(sums[name][at]) for name in _COUNTS}
    reading, writing = (float(sums[name][at]) for name in _SECONDS)
    return StreamRow(
        path=job.path(file), system_read_seconds=reading, system_write_seconds=writing, **counts
    )
