"""Durations per row of ``records`` that only events tell: usual reads, and files held open or
mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario.see.analyze.accounts import image_seconds
from pario.see.analyze.arrays import Floats, Ints, Mask, ratio, sums
from pario.see.analyze.cells import events_of_rows, find_rows
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS, Job

FAILED = 1  # a flag of events
OFTEN = 100  # reads of a place that belongs to the header of a file
#: A write that takes so many times the median, and so many seconds, waits for the device.
STALL_FACTOR, STALL_SECONDS = 50.0, 1e-3


def find_usual(job: Job, kind: str) -> Floats:
    """Return the median seconds of a read or write; NaN for rows without events."""
    calls, row = events_of_rows(job, kind)
    return _find_medians(_seconds_each(job, calls), row, len(job.records))


def _find_medians(each: Floats, row: Ints, rows_of_job: int) -> Floats:
    """Return the median of each row; NaN for rows without a value."""
    usual = np.full(rows_of_job, np.nan)
    order = np.lexsort((each, row))
    rows, first, count = np.unique(row[order], return_index=True, return_counts=True)
    usual[rows] = each[order][first + count // 2]
    return usual


def find_stalls(job: Job) -> Floats:
    """Return the seconds of writes that took far longer than the usual one of their row, beyond
    that; 0 for rows without events. The kernel makes them wait for the device, because too many
    bytes are not stored yet."""
    calls, row = events_of_rows(job, "write")
    each = _seconds_each(job, calls)
    usual = _find_medians(each, row, len(job.records))[row]
    stalled = each >= np.maximum(STALL_FACTOR * usual, STALL_SECONDS)
    beyond = job.events["duration"][calls] - job.events["count"][calls] * usual
    seconds = sums(row[stalled], beyond[stalled], len(job.records))
    return np.maximum(seconds - _find_queued_seconds(job), 0.0)


def _find_queued_seconds(job: Job) -> Floats:
    """Return, per row, the part of the time of its writes in which their process waited for a
    processor; 0 if that is not known."""
    processes, process = job.processes, job.records["process"]
    queued = np.maximum(processes["run_queue_delay"], 0) * 1e-9
    share = np.minimum(ratio(queued, image_seconds(job), 0.0), 1.0)
    written = np.nan_to_num(job.records["write_time"])
    return np.where(process >= 0, written * np.append(share, 0.0)[process], 0.0)


def _seconds_each(job: Job, calls: Ints) -> Floats:
    """Return the seconds of each call of events, which may hold several."""
    events = job.events
    return ratio(events["duration"][calls], events["count"][calls].astype(float), 0.0)


@dataclass(frozen=True)
class Spans:
    """Times between calls on files. ``known``: mask of the rows whose times are known; the others
    have none."""

    row: Ints
    begin: Floats
    end: Floats
    known: Mask

    @property
    def seconds(self) -> Floats:
        """The length of all spans per row; NaN where it is not known."""
        return np.where(self.known, sums(self.row, self.end - self.begin, len(self.known)), np.nan)


def find_reading_spans(job: Job) -> Spans:
    """Return the times in which files were open to be read, until the first write, without their
    open and close calls; known of rows with an event of each of these calls."""
    events, rows = job.events, len(job.records)
    opens, closes = (_Calls.of(job, kind) for kind in ("open", "close"))
    known = (opens.count(rows) == job.records["opens"]) & (opens.count(rows) > 0)
    known &= closes.count(rows) == opens.count(rows)
    opens, closes = opens.choose(known[opens.row]), closes.choose(known[closes.row])
    begin = opens.sort(events["start"] + events["duration"], job.wall)
    end = closes.sort(events["start"], job.wall)
    reads, writes = (
        _Calls.of(job, kind).sort(events["start"], job.wall) for kind in ("read", "write")
    )
    end = np.minimum(end, np.append(writes, np.inf)[np.searchsorted(writes, begin)])
    read = np.searchsorted(reads, end) > np.searchsorted(reads, begin)
    row = np.sort(opens.row)[read]
    shift = row * _period(job.wall)
    return Spans(row, begin[read] - shift, end[read] - shift, known)


def find_repeated_spans(job: Job, rows: Ints, rewound: Ints | None = None) -> Spans:
    """Return the times after reads at places of the file that an earlier pass read, too: until the
    next read at another place, write or close; and until the next open, if this one reads another
    part of the same header. They repeat the same work. A pass begins with an open, and in the rows
    ``rewound`` also with a read where the first one began. Known of ``rows`` whose file one thread
    uses."""
    events = job.events
    of_row = find_rows(job.records, events["process"], events["file"], events["layer"])
    of_row[events["layer"] == COMMUNICATION] = -1
    chosen = np.flatnonzero(np.isin(of_row, rows) & ((events["flags"] & FAILED) == 0))
    chosen = chosen[np.lexsort((events["start"][chosen], of_row[chosen]))]
    row, kind, start, end = of_row[chosen], *(events[chosen][it] for it in ("kind", "start", "end"))
    opens, reads, closes = (kind == EVENT_KINDS.index(word) for word in ("open", "read", "close"))
    place = np.stack([row[reads], events["offset"][chosen][reads].astype(np.int64)])
    place = np.unique(place, axis=1, return_inverse=True)[1].ravel()
    begins = opens.copy()
    if rewound is not None:
        begins[reads] = _begin_again(row[reads], place) & np.isin(row[reads], rewound)
    number = np.cumsum(begins)  # of the pass of each event
    first = np.full(int(place.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first, place, number[reads])
    again = np.zeros(len(chosen), bool)
    again[reads] = number[reads] > first[place]
    changes = np.append(True, row[1:] != row[:-1])[: len(row)]
    ending = np.isin(kind, [EVENT_KINDS.index(word) for word in ("open", "close", "write")])
    counted = again[_find_last(reads | ending | changes)]
    counted |= closes & _are_inside_headers(row, reads, kind, place)
    gaps = np.maximum(np.append(start[1:], 0.0)[: len(row)] - end, 0.0)
    counted &= np.append(row[1:] == row[:-1], False)[: len(row)]
    known = np.zeros(len(job.records), bool)
    known[rows] = True
    known[_have_threads(row, events["thread"][chosen])] = False
    counted &= known[row]
    return Spans(row[counted], end[counted], end[counted] + gaps[counted], known)


def _begin_again(row: Ints, place: Ints) -> Mask:
    """Return, per read in order of rows and time, True if it is where the reads of its row began;
    equal numbers of ``place`` are the same place."""
    begun = np.full(int(row.max(initial=-1)) + 1, -1)
    begun[row[::-1]] = place[::-1]
    return np.asarray(place == begun[row])


def _find_last(mask: Mask) -> Ints:
    """Return, per element, the position of the last one of the mask so far; 0 for none."""
    return np.asarray(np.maximum.accumulate(np.where(mask, np.arange(len(mask)), 0)))


def _are_inside_headers(row: Ints, reads: Mask, kind: Ints, place: Ints) -> Mask:
    """Return, per event in order of rows and time, True if the last read was one of a place that is
    read OFTEN, and the next one is not at the place where the reads of the row began: libraries
    open and close a file for each part of its header, and find the next part by parsing the last
    one."""
    inside = np.zeros(len(row), bool)
    at = np.flatnonzero(reads)
    if not len(at):
        return inside
    often = np.bincount(place)[place] >= OFTEN
    begins = _begin_again(row[at], place)
    written = kind == EVENT_KINDS.index("write")
    last = _find_last(reads | written)
    number = np.cumsum(reads) - 1  # of the last read among the reads
    following = number + 1
    known = reads[last] & (number >= 0) & (following < len(at))
    here, then = number[known], following[known]
    same = (row[at[here]] == row[known]) & (row[at[then]] == row[known])
    inside[known] = same & often[here] & ~begins[then]
    return inside


def _have_threads(row: Ints, thread: Ints) -> Ints:
    """Return the rows with events of several threads."""
    pairs = np.unique(np.stack([row, thread.astype(np.int64)]), axis=1)[0]
    found, count = np.unique(pairs, return_counts=True)
    return np.asarray(found[count > 1])


def find_mapped_seconds(job: Job) -> Floats:
    """Return the seconds in which a file was mapped, without the calls, summed over its mappings;
    NaN for rows without an event of each of these calls, and with two mappings at a time."""
    events, rows = job.events, len(job.records)
    maps, unmaps = _find_mappings(job)
    known = (maps.count(rows) == job.records["maps"]) & (maps.count(rows) > 0)
    known &= unmaps.count(rows) == maps.count(rows)
    maps, unmaps = maps.choose(known[maps.row]), unmaps.choose(known[unmaps.row])
    begin = maps.sort(events["start"] + events["duration"], job.wall)
    end = unmaps.sort(events["start"], job.wall)
    row = np.sort(maps.row)
    known[row[1:][(row[1:] == row[:-1]) & (begin[1:] < end[:-1])]] = False
    return np.where(known, sums(row, end - begin, rows), np.nan)


def find_setup_seconds(job: Job) -> Floats:
    """Return the seconds between the mapping of a file and the close of its descriptor, summed over
    its opens, where the mapping outlives the descriptor: a library that opens a file checks and
    parses its header in that time. NaN for rows without an event of each of these calls, and with
    other orders of them."""
    rows = len(job.records)
    begins, ends, opens, closes = (
        *_find_mappings(job),
        _Calls.of(job, "open"),
        _Calls.of(job, "close"),
    )
    counts = begins.count(rows)
    known = (counts == job.records["opens"]) & (counts > 0)
    for calls in (ends, opens, closes):
        known &= calls.count(rows) == counts
    start, events = job.events["start"], job.events
    opened, mapped, closed, unmapped = (
        calls.choose(known[calls.row]).sort(times, job.wall)
        for calls, times in (
            (opens, start),
            (begins, start + events["duration"]),
            (closes, start),
            (ends, start),
        )
    )
    row = np.sort(begins.choose(known[begins.row]).row)
    ordered = (opened < mapped) & (mapped <= closed) & (closed < unmapped)
    ordered &= np.append(unmapped[:-1] < opened[1:], True)[: len(row)]
    known[row[~ordered]] = False
    return np.where(known, sums(row, closed - mapped, rows), np.nan)


def _find_mappings(job: Job) -> tuple[_Calls, _Calls]:
    """Return the calls that map files, and those that end it."""
    calls = _Calls.of(job, "map")
    begins, ends = (
        job.select_functions(names.__contains__)[job.events["function"][calls.event]]
        for names in (("mmap", "mmap64"), ("munmap",))
    )
    return calls.choose(begins), calls.choose(ends)


@dataclass(frozen=True)
class _Calls:
    """Events of a kind of call that succeeded, and their rows of ``Job.records``."""

    event: Ints
    row: Ints

    @staticmethod
    def of(job: Job, kind: str) -> _Calls:
        event, row = events_of_rows(job, kind)
        succeeded = (job.events["flags"][event] & FAILED) == 0
        return _Calls(event[succeeded], row[succeeded])

    def count(self, rows: int) -> Ints:
        """Return the calls of each row."""
        return np.bincount(self.row, minlength=rows)

    def choose(self, mask: Mask) -> _Calls:
        """Return the calls of a mask."""
        return _Calls(self.event[mask], self.row[mask])

    def sort(self, times: Floats, wall: float) -> Floats:
        """Return a time of each call, by row and then by time, as numbers in the same order."""
        return np.sort(self.row * _period(wall) + times[self.event])


def _period(wall: float) -> float:
    """Return the distance of two rows in numbers that sort by row and then by time."""
    return 2.0 * wall + 1.0
