"""The distinct bytes that a process read: unions of the extents of its events."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, sums
from pario.see.analyze.cells import events_of_rows
from pario.see.tables.model import IN_VIEW, Job


def unique_bytes(job: Job) -> tuple[Ints, Floats]:
    """Return rows of records and their distinct bytes read, for the rows in which every read has
    its own event with an offset."""
    events = job.events
    reads, row = events_of_rows(job, "read")
    count = len(job.records)
    plain = (
        (events["count"][reads] == 1)
        & (events["offset"][reads] >= 0)
        & ((events["flags"][reads] & IN_VIEW) == 0)
    )
    known = (
        (sums(row, plain, count) >= job.records["reads"])
        & (sums(row, ~plain, count) == 0)
        & (job.records["reads"] > 0)
    )
    chosen = known[row]
    rows = np.flatnonzero(known)
    return rows, _union(
        row[chosen], events["offset"][reads[chosen]], events["length"][reads[chosen]], count
    )[rows]


def _union(group: Ints, offset: Ints, length: Ints, groups: int) -> Floats:
    """Return the bytes covered in each group. Offsets are shifted by group, so that one sort serves
    all groups."""
    if not len(group):
        return np.zeros(groups)
    end = offset + length
    period = float(end.max()) + 1.0
    if period * groups > 2.0**62:
        return sums(group, length, groups)
    shift = group * np.int64(period)
    order = np.argsort(offset + shift, kind="stable")
    begin, reach = (offset + shift)[order], np.maximum.accumulate((end + shift)[order])
    covered_before = np.append(begin[0], reach[:-1])
    fresh = np.maximum(reach - np.maximum(begin, covered_before), 0)
    return sums(group[order], fresh, groups)
