"""Cells: the seconds of each record by kind of call, every second in one cell only.

MPI-IO time contains the time of the POSIX calls made inside, so these are removed from the POSIX
rows. Time of libraries (HDF5, netCDF, PnetCDF) is without that of the calls on files made inside,
which stays in their rows: it is the time inside the library. Files that are not storage of the
program (see scope) have empty cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pario import _native
from pario.see.analyze.arrays import Floats, Ints, Mask, Table, ratio
from pario.see.analyze.waiting import COMMUNICATION, Waits
from pario.see.tables.model import EVENT_KINDS, LAYERS, Job

#: Kinds of time; ``<kind>_time`` are counters of the table model.
KINDS: tuple[str, ...] = (
    "read",
    "write",
    "open",
    "close",
    "seek",
    "stat",
    "sync",
    "flush",
    "map",
    "list",
    "other",
)
READ, WRITE = KINDS.index("read"), KINDS.index("write")
META = tuple(number for number in range(len(KINDS)) if number not in (READ, WRITE))
#: The kind of time of each kind of event, by the counter of its duration; others are "other".
_TIMES = {kind: time.removesuffix("_time") for kind, _, time in _native.op_table()}
KIND_OF_EVENTS = np.array(
    [KINDS.index(_TIMES[kind] if _TIMES.get(kind) in KINDS else "other") for kind in EVENT_KINDS]
)
#: Counters of calls that move no data, and the usual cost of a call relative to that of a stat; an
#: open includes its close.
_USUAL_COSTS = {
    "open": ("opens", 4.0),
    "stat": ("stats", 1.0),
    "seek": ("seeks", 0.05),
    "map": ("maps", 1.0),
    "other": ("others", 4.0),
}
#: Counters of the calls that tables and limits count as metadata: neither reads, writes nor opens.
METADATA = ("closes", "seeks", "stats", "syncs", "lists", "others")
POSIX, STDIO, MPIIO = (LAYERS.index(layer) for layer in ("posix", "stdio", "mpiio"))


@dataclass(frozen=True)
class Direction:
    """Reads or writes: their cells, counters and words."""

    kind: int  # of cells
    word: str
    bytes: str  # counter
    end: str  # counter
    preposition: str  # before the file

    @property
    def calls(self) -> str:
        """The counter of calls, which is the plural of the word, too."""
        return f"{self.word}s"


READS = Direction(READ, "read", "bytes_read", "end_read", "from")
WRITES = Direction(WRITE, "write", "bytes_written", "end_written", "to")

#: The layers of libraries that store arrays, such as HDF5.
LIBRARIES = range(MPIIO + 1, len(LAYERS))


def of_library(layer: Any) -> Mask:
    """Return a mask of LIBRARIES: their calls contain calls on files."""
    return np.asarray((np.asarray(layer) > MPIIO) & (np.asarray(layer) < len(LAYERS)))


def exclusive_seconds(job: Job, storage: Mask) -> Floats:
    """Return an array ``[records, kinds]`` of seconds. A sum over rows and kinds counts each second
    of a thread once."""
    records = job.records
    cells = (
        np.stack([np.nan_to_num(records[kind + "_time"]) for kind in KINDS], axis=1)
        if len(records)
        else np.zeros((0, len(KINDS)))
    )
    _add_async_calls(cells, records)
    for within in ("nested", "inner"):
        cells[:, READ] -= records[f"{within}_read_time"]
        cells[:, WRITE] -= records[f"{within}_write_time"]
        _take_from_meta(cells, records[f"{within}_other_time"])
    if (
        job.format == "darshan"
        and not records["nested_reads"].any()
        and not records["nested_writes"].any()
    ):
        _take_out_assumed_nesting(records, cells)
    cells[~storage[records["file"]]] = 0.0
    return np.maximum(cells, 0.0)


def without_waiting(job: Job, cells: Floats, waits: Waits) -> Floats:
    """Return the cells minus the matched waiting inside collective MPI-IO calls."""
    events = job.events[waits.event]
    inside = events["layer"] != COMMUNICATION
    events, seconds = events[inside], waits.seconds[inside]
    if not len(events):
        return cells
    rows = find_rows(job.records, events["process"], events["file"], events["layer"])
    column = KIND_OF_EVENTS[events["kind"]]
    less = cells.copy()
    np.subtract.at(less, (rows[rows >= 0], column[rows >= 0]), seconds[rows >= 0])
    return np.maximum(less, 0.0)


def find_rows(records: Table, process: Any, file: Any, layer: Any) -> Ints:
    """Return the row of each (process, file, layer), -1 for none."""
    width = int(records["process"].max(initial=0)) + 2

    def key(process: Any, file: Any, layer: Any) -> Ints:
        return np.asarray((np.asarray(file, np.int64) * width + process + 1) * len(LAYERS) + layer)

    known = key(records["process"], records["file"], records["layer"])
    order = np.argsort(known, kind="stable")
    wanted = key(process, file, layer)
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    found = order[np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)]
    return np.where(known[found] == wanted, found, -1)


def events_of_rows(job: Job, kind: str) -> tuple[Ints, Ints]:
    """Return the events of a kind of call that belong to a row, and their rows."""
    events = job.events
    chosen = np.flatnonzero(
        (events["kind"] == EVENT_KINDS.index(kind)) & (events["layer"] != COMMUNICATION)
    )
    row = find_rows(
        job.records, events["process"][chosen], events["file"][chosen], events["layer"][chosen]
    )
    return chosen[row >= 0], row[row >= 0]


def _add_async_calls(cells: Floats, records: Table) -> None:
    """Add the time of calls that submit and await asynchronous requests: to reads and writes in
    proportion to the requests, the rest (such as fsync by io_uring) to other calls."""
    seconds = np.nan_to_num(records["async_time"])
    requests = np.maximum(records["async_requests"], 1)
    reads = seconds * np.minimum(records["async_reads"] / requests, 1.0)
    writes = seconds * np.minimum(records["async_writes"] / requests, 1.0)
    cells[:, READ] += reads
    cells[:, WRITE] += writes
    cells[:, KINDS.index("other")] += np.maximum(seconds - reads - writes, 0.0)


def divide_meta(job: Job, cells: Floats) -> Floats:
    """Return the cells with the time of calls that move no data divided among their kinds by the
    numbers of calls and their usual costs, if the log has only the sum of these times."""
    if "meta_split" in job.has or not len(job.records):
        return cells
    weights = np.zeros_like(cells)
    for kind, (calls, cost) in _USUAL_COSTS.items():
        weights[:, KINDS.index(kind)] = cost * job.records[calls]
    whole = weights.sum(axis=1)
    divided = cells.copy()
    own = whole > 0
    meta = cells[own][:, META].sum(axis=1)
    divided[np.ix_(own, META)] = weights[np.ix_(own, META)] * (meta / whole[own])[:, None]
    return divided


def _take_from_meta(cells: Floats, seconds: Floats) -> None:
    meta = cells[:, META].sum(axis=1)
    cells[:, META] *= np.clip(ratio(meta - seconds, meta), 0.0, 1.0)[:, None]


def _take_out_assumed_nesting(records: Table, cells: Floats) -> None:
    """Treat the POSIX calls of a process on a file that it opened through MPI-IO as made by MPI-IO,
    because a Darshan log does not separate them."""
    lower = np.flatnonzero(records["layer"] == POSIX)
    outer = find_rows(records, records["process"][lower], records["file"][lower], MPIIO)
    rows, outer = lower[outer >= 0], outer[outer >= 0]
    for group in (np.array([READ]), np.array([WRITE]), np.array(META)):
        own, above = cells[np.ix_(rows, group)].sum(axis=1), cells[np.ix_(outer, group)].sum(axis=1)
        cells[np.ix_(rows, group)] *= np.clip(ratio(own - above, own), 0.0, 1.0)[:, None]
