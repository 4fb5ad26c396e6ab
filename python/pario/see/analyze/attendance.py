"""The collective calls in which some ranks wait, and the ranks that have not arrived in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from pario.see.analyze.arrays import Mask
from pario.see.analyze.progress_model import Meeting
from pario.see.tables.model import COLLECTIVE, EVENT_KINDS, LAYERS, CurrentCall, Job

_MPIIO = LAYERS.index("mpiio")
_OPEN, _COMMUNICATE = EVENT_KINDS.index("open"), EVENT_KINDS.index("communicate")

#: Calls of different ranks that belong together: function, communicator, file, sequence number.
_Key = tuple[str, int, str, int]


def find_meetings(job: Job, now: float) -> tuple[Meeting, ...]:
    """Return the collective calls in progress that lack ranks, the longest first; ``now`` is the
    moment of looking. Calls on communicators without a common number are left out. Without events
    it is not known which ranks have left a call already: then none is returned."""
    if job.events_left_out:
        return ()
    groups: dict[_Key, list[CurrentCall]] = defaultdict(list)
    for call in job.current:
        if call.depth == 0 and call.collective and job.processes["rank"][call.process] >= 0:
            groups[_key(call)].append(call)
    meetings = (_meeting(job, calls, now) for calls in groups.values())
    found = [meeting for meeting in meetings if meeting.missing]
    return tuple(sorted(found, key=lambda meeting: -meeting.seconds))


def _key(call: CurrentCall) -> _Key:
    sequence = -1 if call.category in LAYERS else call.offset
    return call.function, call.communicator, call.path, sequence


def _meeting(job: Job, calls: list[CurrentCall], now: float) -> Meeting:
    rank_of = job.processes["rank"]
    arrived = sorted({int(rank_of[call.process]) for call in calls})
    missing = _members(job, calls[0]) - set(arrived)
    if missing:
        missing -= _find_passed(job, calls[0], missing)
    return Meeting(
        function=calls[0].function,
        path=calls[0].path,
        seconds=max(now - max(call.start for call in calls), 0.0),
        arrived=tuple(arrived),
        missing=tuple(sorted(missing)),
    )


def _members(job: Job, call: CurrentCall) -> set[int]:
    """Return the ranks that make the call together; empty: not known."""
    if call.communicator < 0:
        return set(range(job.ranks)) if call.category in LAYERS and call.file >= 0 else set()
    communicator = job.communicators[call.communicator]
    if communicator.id == 0:
        return set()  # another process has another number for it
    return set(communicator.ranks or (range(job.ranks) if communicator.size == job.ranks else ()))


def _find_passed(job: Job, call: CurrentCall, ranks: Iterable[int]) -> set[int]:
    """Return the ranks that have left the call already."""
    progress = _count_finished(job, _like(job, call), call.category in LAYERS)
    mine = call.offset if call.category not in LAYERS else progress[call.process]
    rank_of = job.processes["rank"]
    return {
        int(rank_of[row])
        for row in np.flatnonzero(np.isin(rank_of, list(ranks))).tolist()
        if progress[row] > mine - (call.category not in LAYERS)
    }


def _like(job: Job, call: CurrentCall) -> Mask:
    """Return the events that count in the same sequence as the call."""
    events = job.events
    collective = (events["flags"] & COLLECTIVE) != 0
    if call.category not in LAYERS:
        same: Mask = events["file"] == call.communicator
        same &= collective & (events["kind"] == _COMMUNICATE)
        return same
    file = call.file
    if call.op == "open":
        file = next((row for row in range(len(job.files)) if job.path(row) == call.path), -1)
        collective &= events["kind"] == _OPEN
    of_file: Mask = events["file"] == file
    of_file &= collective & (events["layer"] == _MPIIO)
    return of_file


def _count_finished(job: Job, mask: Mask, count: bool) -> list[int]:
    """Return for each process the number of its events; with ``count`` False their last sequence
    number, or -1."""
    events = job.events[mask]
    if count:
        weights = events["count"].astype(np.float64)
        number = np.bincount(events["process"], weights, len(job.processes))
        return [int(value) for value in number]
    last = np.full(len(job.processes), -1, np.int64)
    np.maximum.at(last, events["process"], events["offset"])
    return [int(number) for number in last]
