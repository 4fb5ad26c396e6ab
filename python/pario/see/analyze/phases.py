"""Phases: intervals in which the job does I/O, separated by pauses of all ranks."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Ints, columns, sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.intervals import Intervals, IntervalSet
from pario.see.analyze.model import Phase
from pario.see.tables.model import EVENT_KINDS

MAX_PHASES = 100
GAP_SHARE, GAP_SECONDS = 0.01, 0.01


def phases(facts: Facts) -> tuple[Phase, ...]:
    """Return I/O phases in order of time; empty without events. Pauses shorter than 1 % of the wall
    time or 10 ms do not end a phase."""
    rows = facts.times.io_events
    if not facts.times.exact or not len(rows):
        return ()
    events = facts.job.events
    gap = max(GAP_SHARE * facts.wall, GAP_SECONDS)
    zero = np.zeros(len(rows), np.int64)
    start, end, duration = columns(events, rows, "start", "end", "duration")
    spans = Intervals(start, np.maximum(end, start) + gap, zero)
    begins, ends, _ = IntervalSet(spans, facts.wall + gap).runs()
    number = np.maximum(np.searchsorted(begins, start, side="right") - 1, 0)
    busiest = np.sort(np.argsort(-sums(number, duration, len(begins)), kind="stable")[:MAX_PHASES])
    by_phase = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[by_phase], np.arange(len(begins) + 1))
    found = []
    for phase in busiest:
        own = by_phase[bounds[phase] : bounds[phase + 1]]
        process, kind, length = columns(events, rows[own], "process", "kind", "length")
        lanes = np.unique(facts.lanes.of(process))
        moved = _sum_bytes(kind, length)
        span = float(begins[phase]), float(ends[phase] - gap)
        found.append(
            Phase(
                *span,
                _kind(moved),
                int(sum(moved)),
                int((lanes >= 0).sum()),
                float(duration[own].sum()),
            )
        )
    return tuple(found)


def _sum_bytes(kind: Ints, length: Ints) -> tuple[int, int]:
    read, written = (
        int(length[kind == EVENT_KINDS.index(name)].sum()) for name in ("read", "write")
    )
    return read, written


def _kind(moved: tuple[int, int]) -> str:
    read, written = moved
    if not read and not written:
        return "metadata"
    if min(read, written) > 0.1 * max(read, written):
        return "mixed"
    return "read" if read > written else "write"
