"""Durations per row of ``records`` that only events tell: usual reads, and files held open."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, ratio, sums
from pario.see.analyze.cells import events_of_rows
from pario.see.tables.model import Job


def find_usual_reads(job: Job) -> Floats:
    """Return the median seconds of a read; NaN for rows without events."""
    events = job.events
    usual = np.full(len(job.records), np.nan)
    reads, row = events_of_rows(job, "read")
    each = ratio(events["duration"][reads], events["count"][reads].astype(float), 0.0)
    order = np.lexsort((each, row))
    rows, first, count = np.unique(row[order], return_index=True, return_counts=True)
    usual[rows] = each[order][first + count // 2]
    return usual


def find_open_seconds(job: Job) -> Floats:
    """Return the seconds in which a file was open, without its open and close calls, summed over
    the times it was open; NaN for rows without an event of each of these calls."""
    events, count = job.events, len(job.records)
    opens, row = events_of_rows(job, "open")
    closes, row_of_close = events_of_rows(job, "close")
    known = (np.bincount(row, minlength=count) == job.records["opens"]) & (
        np.bincount(row_of_close, minlength=count) == job.records["opens"]
    )
    ends, starts = events["start"][opens] + events["duration"][opens], events["start"][closes]
    seconds = sums(row_of_close, starts, count) - sums(row, ends, count)
    return np.where(known & (job.records["opens"] > 0), seconds, np.nan)
