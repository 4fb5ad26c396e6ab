"""Waiting between ranks: calls in which ranks meet are matched, and the time until the last rank
arrives is waiting.

Collectives are matched by communicator and sequence number, collective MPI-IO calls by file,
function and running number, blocking point-to-point messages by sender, receiver, tag and running
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, Mask, Table
from pario.see.analyze.intervals import Intervals
from pario.see.analyze.lanes import Lanes
from pario.see.tables.model import FILE_LAYERS, Job

COLLECTIVE = 8  # flag of events
COMMUNICATION = 255  # layer of events that are MPI communication


@dataclass(frozen=True)
class Waits:
    """One row per call that waited: its event, lane, start and seconds, and the lane and start of
    the last arrival."""

    event: Ints
    lane: Ints
    start: Floats
    seconds: Floats
    last_lane: Ints
    last_start: Floats

    def intervals(self) -> Intervals:
        """Return the intervals of waiting."""
        return Intervals(self.start, self.start + self.seconds, self.lane)


def find_waits(job: Job, lanes: Lanes) -> Waits:
    """Return all matched waiting of the job; empty if the log has no events of calls in which
    ranks meet."""
    events = job.events
    lane = lanes.of(events["process"])
    single = (events["count"] == 1) & (lane >= 0)
    parts = []
    collective = np.flatnonzero(
        single
        & (events["flags"] & COLLECTIVE > 0)
        & (events["layer"] == COMMUNICATION)
        & (events["offset"] >= 0)
    )
    parts.append(
        _last_arriver(
            events, lane, collective, [events["file"][collective], events["offset"][collective]]
        )
    )
    shared_io = np.flatnonzero(
        single & (events["flags"] & COLLECTIVE > 0) & (events["layer"] < len(FILE_LAYERS))
    )
    columns = [events["file"][shared_io], events["function"][shared_io]]
    parts.append(
        _last_arriver(
            events, lane, shared_io, [*columns, number_running(lane[shared_io], *columns)]
        )
    )
    parts.append(_messages(job, lane, single))
    return _join_waits(parts)


def _join_waits(parts: list[Waits]) -> Waits:
    fields = ("event", "lane", "start", "seconds", "last_lane", "last_start")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in fields}
    order = np.argsort(columns["start"], kind="stable")
    return Waits(**{name: column[order] for name, column in columns.items()})


def _find_starts(columns: Sequence[Any], order: Ints) -> Ints:
    """Return the places in ``order`` where rows begin that agree in all columns."""
    new = np.zeros(len(order), bool)
    new[0] = True
    for column in columns:
        new[1:] |= np.diff(np.asarray(column, np.int64)[order]) != 0
    return np.flatnonzero(new)


def number_running(*columns: Any) -> Ints:
    """Number the rows that agree in all columns 0, 1, 2 ... in the order of the rows (events are
    sorted by start)."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(columns[::-1])
    starts = _find_starts(columns, order)
    numbers = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    running = np.empty(len(order), np.int64)
    running[order] = numbers
    return running


def _last_arriver(events: Table, lane: Ints, rows: Ints, columns: list[Any]) -> Waits:
    """Return the waiting of each row, within its call, for the latest start of the rows that agree
    in all columns."""
    if not len(rows):
        return _waits(events, lane, rows, rows)
    start = events["start"][rows]
    order = np.lexsort((start, *columns[::-1]))
    first = _find_starts(columns, order)
    sizes = np.diff(np.append(first, len(rows)))
    last = np.repeat(order[first + sizes - 1], sizes)
    return _waits(events, lane, rows[order], rows[last])


def _waits(events: Table, lane: Ints, rows: Ints, last: Ints) -> Waits:
    seconds = np.clip(events["start"][last] - events["start"][rows], 0.0, events["duration"][rows])
    kept = seconds > 0
    rows, last, seconds = rows[kept], last[kept], seconds[kept]
    return Waits(
        rows,
        lane[rows],
        events["start"][rows].astype(float),
        seconds,
        lane[last],
        events["start"][last].astype(float),
    )


_SENDS = ("MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend")
_ANY_SENDS = (*_SENDS, "MPI_Isend", "MPI_Issend", "MPI_Irsend")
#: MPI_Mprobe waits for the message, which MPI_Mrecv then has at once (mpi4py receives so).
_RECEIVES = ("MPI_Recv", "MPI_Mprobe")


def _messages(job: Job, lane: Ints, single: Mask) -> Waits:
    """Return the waiting of blocking messages: the k-th receive of a (sender, receiver, tag) waits
    for the start of the k-th send, and a blocking send for the start of its receive."""
    events, names = job.events, job.function_names
    sends, receives = _pair_messages(events, lane, *_ends_of_messages(job, single))
    blocking = np.isin(
        events["function"][sends], [names.index(name) for name in _SENDS if name in names]
    )
    return _join_waits(
        [
            _waits(events, lane, receives, sends),
            _waits(events, lane, sends[blocking], receives[blocking]),
        ]
    )


def _ends_of_messages(job: Job, single: Mask) -> tuple[Ints, Ints]:
    """Return the rows of sends and of blocking receives."""
    events, names = job.events, job.function_names
    known = single & (events["layer"] == COMMUNICATION) & (events["offset"] >= 0)
    sends = _rows_of(events, known, [names.index(name) for name in _ANY_SENDS if name in names])
    receives = _rows_of(events, known, [names.index(name) for name in _RECEIVES if name in names])
    return sends, receives


def match_messages(job: Job, lanes: Lanes) -> tuple[Ints, Ints]:
    """Return pairs of sends and receives, as rows of events, that certainly belong together: of
    each sender, receiver, communicator and tag there are as many blocking receives as sends."""
    events = job.events
    lane = lanes.of(events["process"])
    single = (events["count"] == 1) & (lane >= 0)
    sends, receives = _ends_of_messages(job, single)
    ends = [
        _message_keys(events, lane, rows, outgoing)
        for rows, outgoing in ((sends, True), (receives, False))
    ]
    keys, place = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
    place = place.reshape(-1)
    here, there = (np.bincount(part, minlength=len(keys)) for part in np.split(place, [len(sends)]))
    certain = (here == there)[place]
    return _pair_messages(
        events, lane, sends[certain[: len(sends)]], receives[certain[len(sends) :]]
    )


def _message_keys(events: Table, lane: Ints, rows: Ints, outgoing: bool) -> Ints:
    """Return sender, receiver, communicator and tag of rows."""
    peer, tag = events["offset"][rows] >> 32, events["offset"][rows] & 0xFFFFFFFF
    ends = (lane[rows], peer) if outgoing else (peer, lane[rows])
    return np.stack([*ends, events["file"][rows].astype(np.int64), tag], axis=1)


def _rows_of(events: Table, mask: Mask, functions: list[int]) -> Ints:
    return np.flatnonzero(mask & np.isin(events["function"], functions))


def _pair_messages(events: Table, lane: Ints, sends: Ints, receives: Ints) -> tuple[Ints, Ints]:
    def columns(rows: Ints, outgoing: bool) -> Ints:
        key = list(_message_keys(events, lane, rows, outgoing).T)
        return (
            np.stack([*key, number_running(*key)], axis=1)
            if len(rows)
            else np.zeros((0, 5), np.int64)
        )

    both = np.concatenate([columns(sends, True), columns(receives, False)])
    if not len(sends) or not len(receives):
        return sends[:0], receives[:0]
    side = np.append(np.zeros(len(sends), np.int64), np.ones(len(receives), np.int64))
    order = np.lexsort((side, *both.T[::-1]))
    meet = np.flatnonzero((both[order[1:]] == both[order[:-1]]).all(axis=1))
    all_rows = np.append(sends, receives)
    return all_rows[order[meet]], all_rows[order[meet + 1]]
