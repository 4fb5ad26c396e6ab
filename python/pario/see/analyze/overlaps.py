"""Possible corruption: overlapping writes of different ranks or processes without an order.

Ranks: the order is that of matched calls (collectives by communicator and sequence, collective
MPI-IO calls by file, messages by sender, receiver and tag). All other calls that may carry a
message, and file locks, count as if they had carried one from every rank that might have sent it.
Processes without MPI: only writes during each other count. Writes through views with holes, by
O_APPEND, and with unknown offsets are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Ints, Mask, counts
from pario.see.analyze.call_sites import CallSites
from pario.see.analyze.cells import of_library
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import OverlappingWrites, WriteRange
from pario.see.analyze.order import Overlap, Step, unordered_overlaps
from pario.see.analyze.scope import IN_MPI, IN_MPI_IO, PROGRAM
from pario.see.analyze.split import LOCK
from pario.see.analyze.waiting import COLLECTIVE, COMMUNICATION, number_running
from pario.see.analyze.waiting import match_messages as match
from pario.see.tables.model import EVENT_KINDS, IN_VIEW, LAYERS
from pario.wording import count, plural

FAILED = 1
#: More steps or lanes are not compared: memory and time stay bounded.
MAX_STEPS, MAX_LANES = 300_000, 2048
MAX_RANGES = 10
#: Seconds by which the clocks of hosts may differ.
SKEW = 1e-3
_WRITE = EVENT_KINDS.index("write")


@dataclass(frozen=True)
class _Writes:
    """Writes that may overlap others of their epoch, sorted by start."""

    event: Ints
    lane: Ints
    place: Ints  # the file, on its host if hosts do not share it
    epoch: Ints


@dataclass(frozen=True)
class Overlaps:
    """The result of the comparison of all writes."""

    files: tuple[OverlappingWrites, ...] = ()  # most bytes first
    messages: tuple[str, ...] = ()  # writes that were not compared


def overlapping_writes(facts: Facts) -> Overlaps:
    """Return the files with unordered overlapping writes; none if events are missing."""
    if not _is_known(facts):
        return Overlaps()
    writes = _candidates(facts)
    if facts.lanes.count > MAX_LANES:
        return Overlaps(messages=_messages(len(writes.event), f"{count(MAX_LANES)} ranks"))
    found: list[Overlap] = []
    left, skipped = MAX_STEPS, 0
    for epoch in np.unique(writes.epoch):
        steps = _steps(facts, writes, int(epoch), left)
        if steps is None:
            skipped += int(np.count_nonzero(writes.epoch == epoch))
            continue
        left -= len(steps)
        found += unordered_overlaps(steps, facts.lanes.count)
    messages = _messages(skipped, f"{count(MAX_STEPS)} steps that may order them")
    return Overlaps(_files(facts, writes, found), messages)


def _messages(skipped: int, limit: str) -> tuple[str, ...]:
    """Return a message on overlapping writes that were not compared; empty if there are none."""
    if not skipped:
        return ()
    writes = plural(skipped, "overlapping write")
    return (f"possible corruption is not known for {writes}: there are more than {limit}",)


def _is_known(facts: Facts) -> bool:
    processes = facts.job.processes
    return (
        "events" in facts.job.has
        and len(facts.job.events) > 0
        and facts.lanes.count >= 2
        and not facts.job.unseen
        and not (processes["events_lost"] > 0).any()
    )


def _candidates(facts: Facts) -> _Writes:
    """Return the writes of files and epochs in which writes of several lanes overlap."""
    event = np.flatnonzero(_find_compared(facts))
    lane, place = _lanes(facts, event), _places(facts, event)
    several = _have_lanes(place, lane)
    event, lane, place = event[several], lane[several], place[several]
    epoch = _epochs(facts, event, lane)
    writes = _Writes(event, lane, place, epoch)
    if not len(event):
        return writes
    chosen = _overlap_at_all(facts, writes)
    return _Writes(*(column[chosen] for column in (event, lane, place, epoch)))


def _find_compared(facts: Facts) -> Mask:
    events, records = facts.job.events, facts.records
    mask = (events["kind"] == _WRITE) & (events["layer"] < len(LAYERS)) & (events["file"] >= 0)
    mask &= (events["count"] == 1) & (events["offset"] >= 0) & (events["length"] > 0)
    mask &= (events["flags"] & (FAILED | IN_MPI_IO | IN_MPI | IN_VIEW)) == 0
    mask &= facts.lanes.of(events["process"]) >= 0
    appended = np.zeros(len(facts.job.files), bool)
    appended[records["file"][records["append_writes"] > 0]] = True
    usable = (facts.times.scope.origin == PROGRAM) & (facts.job.files["folded"] == 0) & ~appended
    mask[mask] = usable[events["file"][mask]]
    return np.asarray(mask)


def _lanes(facts: Facts, event: Ints) -> Ints:
    return facts.lanes.of(facts.job.events["process"][event])


def _places(facts: Facts, event: Ints) -> Ints:
    """Return the file of each event; equal paths of hosts that do not share it are different."""
    file = facts.job.events["file"][event].astype(np.int64)
    host = facts.job.processes["host"][facts.job.events["process"][event]]
    many = max(len(facts.job.hosts), 1)
    return np.asarray(file * many + np.where(facts.network[file] | (many == 1), 0, host))


def _epochs(facts: Facts, event: Ints, lane: Ints) -> Ints:
    """Return the number of meetings of all ranks before each event: they order all others."""
    events = facts.job.events
    rows = np.flatnonzero(
        (events["layer"] == COMMUNICATION)
        & (events["flags"] & COLLECTIVE > 0)
        & (events["offset"] >= 0)
        & (events["count"] == 1)
    )
    sizes = np.array([each.size for each in facts.job.communicators] or [0])
    rows = rows[(events["file"][rows] >= 0) & (events["file"][rows] < len(sizes))]
    rows = rows[sizes[events["file"][rows]] == facts.lanes.count]
    if not len(rows):
        return np.zeros(len(event), np.int64)
    rows = rows[events["file"][rows] == np.argmax(counts(events["file"][rows], len(sizes)))]
    number, members = np.unique(events["offset"][rows], return_counts=True)
    rows = rows[np.isin(events["offset"][rows], number[members == facts.lanes.count])]
    of_lane = _lanes(facts, rows)
    epoch = np.zeros(len(event), np.int64)
    for one in np.unique(lane):
        starts = events["start"][rows[of_lane == one]]
        own = lane == one
        epoch[own] = np.searchsorted(np.sort(starts), events["start"][event[own]])
    return epoch


def _overlap_at_all(facts: Facts, writes: _Writes) -> Mask:
    """True for writes of a file and epoch in which some overlap and several lanes write."""
    offset = facts.job.events["offset"][writes.event]
    end = offset + facts.job.events["length"][writes.event]
    key = writes.place * (int(writes.epoch.max()) + 1) + writes.epoch
    kinds, group = np.unique(key, return_inverse=True)
    groups, several = len(kinds), _have_lanes(group, writes.lane)
    order = np.lexsort((offset, group))
    # Groups become disjoint ranges of one long line, so that one running maximum serves all.
    width = int(end.max()) + 1
    if float(width) * groups > 2.0**62:
        return several
    reach = np.maximum.accumulate(end[order] + group[order] * width)
    start = offset[order] + group[order] * width
    meets = np.zeros(groups, bool)
    meets[group[order[1:]][start[1:] < reach[:-1]]] = True
    return np.asarray(several & meets[group])


def _have_lanes(group: Ints, lane: Ints) -> Mask:
    """True for members of groups with several lanes."""
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    most = np.full(len(least), -1)
    np.minimum.at(least, group, lane)
    np.maximum.at(most, group, lane)
    return np.asarray((least < most)[group])


def _steps(facts: Facts, writes: _Writes, epoch: int, most: int) -> list[Step] | None:
    """Return the steps of an epoch by time; None if there are more than ``most``."""
    own = np.flatnonzero(writes.epoch == epoch)
    if len(own) * (1 if facts.lanes.mpi else _STEPS_OF_WRITE) > most:
        return None  # before the objects of a hundred million writes fill the memory
    steps = [*_write_steps(facts, writes, own)]
    if facts.lanes.mpi:
        times = facts.job.events["start"][writes.event[own]]
        rows = _ordering_rows(facts, float(times.min()), float(times.max()))
        if len(rows) + len(steps) > most // 2:
            return None
        steps += _ordering_steps(facts, rows)
    steps.sort(key=lambda item: item[0])
    return [step for _, step in steps] if len(steps) <= most else None


#: Steps of a write of a program without MPI.
_STEPS_OF_WRITE = 3
_Timed = tuple[tuple[float, int], Step]  # moment and rank among the steps of one event


def _write_steps(facts: Facts, writes: _Writes, own: Ints) -> Iterator[_Timed]:
    events = facts.job.events
    for number in own.tolist():
        row = events[writes.event[number]]
        lane, place = int(writes.lane[number]), int(writes.place[number])
        start, begin = float(row["start"]), int(row["offset"])
        end = begin + int(row["length"])
        if not facts.lanes.mpi:
            yield (start, 0), Step(lane, start, "acquire")
        yield (start, 2), Step(lane, start, "write", place, begin, end, number)
        if not facts.lanes.mpi:
            yield (float(row["end"]), 3), Step(lane, float(row["end"]), "publish")


def _ordering_rows(facts: Facts, first: float, last: float) -> Ints:
    """Return the events that may order writes between two moments."""
    events = facts.job.events
    mask = (events["layer"] == COMMUNICATION) | (events["flags"] & COLLECTIVE > 0)
    mask &= ~of_library(events["layer"])  # it meets in the calls that it makes
    mask |= (events["kind"] == LOCK) & (events["flags"] & IN_MPI_IO == 0)
    mask &= (events["end"] >= first - SKEW) & (events["start"] <= last + SKEW)
    mask &= facts.lanes.of(events["process"]) >= 0
    return np.flatnonzero(mask)


def _ordering_steps(facts: Facts, rows: Ints) -> Iterator[_Timed]:
    events = facts.job.events
    meetings = _meetings(facts, rows)
    sends, receives = match(facts.job, facts.lanes)
    sent = dict(zip(sends.tolist(), range(len(sends)), strict=True))
    received = dict(zip(receives.tolist(), range(len(receives)), strict=True))
    lanes = _lanes(facts, rows)
    for row, lane, meeting in zip(rows.tolist(), lanes.tolist(), meetings.tolist(), strict=True):
        start, end = float(events["start"][row]), float(events["end"][row])
        if meeting >= 0:
            yield (start, 0), Step(lane, start, "meet", meeting)
        elif row in received:
            yield (end, 0), Step(lane, end, "receive", received[row])
        else:
            if row in sent:
                yield (start, 0), Step(lane, start, "send", sent[row])
            yield (start, 1), Step(lane, start, "publish")
            yield (end, 1), Step(lane, end + SKEW, "acquire")


def _meetings(facts: Facts, rows: Ints) -> Ints:
    """Return the number of the meeting of each event; -1 for none."""
    events = facts.job.events[rows]
    met = (events["flags"] & COLLECTIVE > 0) & (events["count"] == 1)
    talk = events["layer"] == COMMUNICATION
    met &= ~talk | (events["offset"] >= 0)
    lane = _lanes(facts, rows)
    file, function = events["file"].astype(np.int64), events["function"].astype(np.int64)
    running = number_running(lane, file, function, talk.astype(np.int64))
    key = np.stack(
        [
            talk.astype(np.int64),
            file,
            np.where(talk, events["offset"], function),
            np.where(talk, 0, running),
        ]
    )[:, met]
    numbers = np.full(len(rows), -1, np.int64)
    if met.any():
        numbers[met] = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)
    return numbers


def _files(facts: Facts, writes: _Writes, found: list[Overlap]) -> tuple[OverlappingWrites, ...]:
    by_file: dict[int, list[Overlap]] = {}
    for overlap in found:
        file = int(facts.job.events["file"][writes.event[overlap.first]])
        by_file.setdefault(file, []).append(overlap)
    rows = (_file(facts, writes, file, own) for file, own in by_file.items())
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.path)))


def _file(facts: Facts, writes: _Writes, file: int, found: list[Overlap]) -> OverlappingWrites:
    largest = sorted(found, key=lambda one: (one.begin - one.end, one.begin, one.first))
    numbers = np.unique([number for one in found for number in (one.first, one.second)])
    lanes = np.unique(writes.lane[numbers]).tolist()
    processes = facts.job.events["process"][writes.event[numbers]]
    return OverlappingWrites(
        path=facts.path(file),
        bytes=_union(found),
        ranks=tuple(lanes) if facts.lanes.mpi else (),
        processes=tuple(np.unique(facts.job.processes["pid"][processes]).tolist()),
        ranges=tuple(_range(facts, writes, one) for one in largest[:MAX_RANGES]),
        range_total=len(found),
    )


def _union(found: list[Overlap]) -> int:
    """Return the number of distinct bytes."""
    total, reach = 0, 0
    for one in sorted(found, key=lambda one: one.begin):
        total += max(one.end - max(one.begin, reach), 0)
        reach = max(reach, one.end)
    return total


def _range(facts: Facts, writes: _Writes, overlap: Overlap) -> WriteRange:
    rows = facts.job.events[writes.event[[overlap.first, overlap.second]]]
    lanes = writes.lane[[overlap.first, overlap.second]].tolist()
    pids = facts.job.processes["pid"][rows["process"]].tolist()
    who = [f"rank {one}" for one in lanes] if facts.lanes.mpi else [f"process {p}" for p in pids]
    names = [facts.job.function_names[number] for number in rows["function"].tolist()]
    sites = CallSites(facts)
    places = [sites.place_of_call(row) for row in rows]
    return WriteRange(
        begin=overlap.begin,
        end=overlap.end,
        writers=(who[0], who[1]),
        functions=(names[0], names[1]),
        times=(float(rows["start"][0]), float(rows["start"][1])),
        places=(places[0], places[1]),
    )
