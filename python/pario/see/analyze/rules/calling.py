"""The program's own work for a call: arguments made before it, results read after it. It is no I/O,
but a repair that saves the call saves it, too. In interpreted programs it exceeds the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, Table, order_by_group, ratio, sums
from pario.see.analyze.cells import READ, find_rows
from pario.see.analyze.durations import (
    Spans,
    find_mapped_seconds,
    find_reading_spans,
    find_repeated_spans,
    find_setup_seconds,
)
from pario.see.analyze.facts import Facts
from pario.see.analyze.intervals import Intervals, IntervalSet
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.reconcile import queue_shares
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS, Job
from pario.see.tables.scripts import is_interpreter

MANY_PARSED = 100  # opens of a file that is parsed each time
SMALL_INPUT = 4 << 20  # bytes
LONGEST_PARSING, PARSING = 0.02, 1e-6  # seconds for each open, or for each byte if that is more
#: The ends of the names of files of text.
TEXT = (
    *(".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".xml", ".yaml", ".yml"),
    *(".toml", ".ini", ".cfg", ".conf", ".properties", ".nml"),
)
LEAST_RUNNING = 0.2  # of the life of a process, as assumed of one that waits for processors
_FOLLOWERS = [EVENT_KINDS.index(kind) for kind in ("close", "stat", "flush", "other")]
_CLOSE = EVENT_KINDS.index("close")


@dataclass(frozen=True)
class Work:
    """The most time between two calls that counts as work for a call: that of a usual way of making
    it, as measured on this machine. A longer time is that of something else."""

    idiom: Callable[[], None]
    words: str  # of the idiom, after "the time of"
    times: int = 1
    compiled_share: float = idioms.COMPILED_SHARE  # in compiled programs

    @property
    def interpreted(self) -> float:
        """Seconds in interpreted programs."""
        return self.times * idioms.measure(self.idiom)

    @property
    def compiled(self) -> float:
        """Seconds in compiled programs."""
        return self.compiled_share * self.interpreted

    @property
    def text(self) -> str:
        """The limit in words, after "at most"."""
        several = f"{self.times} times " if self.times > 1 else ""
        return f"{several}the time of {self.words} (measured on this machine)"


#: Of a call of a library such as HDF5 or ADIOS2, which its package for Python prepares.
LIBRARY_WORK = Work(idioms.read_a_file, "reading an empty file", times=10)


#: Of the text of a file that the program parses after it has closed the file.
TEXT_WORK = Work(idioms.parse_a_table, "splitting as many bytes of text", times=4)


def claim_work(
    facts: Facts,
    rows: Ints,
    work: Work,
    needless: Floats | float,
    names: tuple[Floats, Floats] | None = None,
    ending: Mask | None = None,
    parsed: Mask | None = None,
) -> list[Claim]:
    """Return claims of the time between calls on ``rows`` that follow one another in a thread, as
    far as events tell it: at most ``work`` for each call. ``names``: the names per row that the
    calls return, for each of which ``work`` is allowed, and the most that come before a gap.
    ``ending``: other records whose calls may end a gap, because the repair saves them, too.
    ``parsed``: records of files whose computation while they are open is claimed already."""
    if not len(facts.job.events) or not len(rows):
        return []
    mask = np.zeros(len(facts.records), bool)
    mask[rows] = True
    limit, most = _find_limits(facts, rows, work), np.zeros(len(facts.records))
    most[rows] = limit if names is None else limit * names[1]
    ending = mask if ending is None else mask | ending
    counted, whole = _find_gaps(facts, mask, most, ending, parsed)
    seconds, slow = counted[rows], rows[_are_interpreted(facts, rows)]
    if names is not None:
        seconds = np.minimum(seconds, limit * names[0])
    seconds = seconds * needless
    lane = facts.lane[rows]
    per_lane = sums(np.maximum(lane, 0), np.where(lane >= 0, seconds, 0.0), facts.ranks)
    most = sums(np.maximum(lane, 0), np.where(lane >= 0, whole[rows] * needless, 0.0), facts.ranks)
    # The limits are processor time: a process that waits for processors needs longer.
    per_lane = np.minimum(per_lane / find_running_shares(facts, np.arange(facts.ranks)), most)
    lanes = np.flatnonzero(per_lane > 0)
    beyond = max(float(whole[slow].sum() - per_lane.sum()), 0.0)
    claim = Claim(lanes, COMPUTE, per_lane[lanes], for_calls=True, beyond=beyond)
    return [claim] if len(lanes) else []


def find_running_shares(facts: Facts, lanes: Ints) -> Floats:
    """Return the part of the life of each lane in which it did not wait for a processor: work takes
    longer where others use the processors. 1 where it is not known, and for the lane -1."""
    shares = np.maximum(1.0 - queue_shares(facts), LEAST_RUNNING)
    return np.where(lanes >= 0, shares[np.maximum(lanes, 0)], 1.0)


def are_parsed_often(facts: Facts, rows: Ints) -> Mask:
    """True for rows of small files that are opened again and again, each time to be parsed."""
    records = facts.records[rows]
    return np.asarray((records["opens"] >= MANY_PARSED) & (records["end_read"] <= SMALL_INPUT))


def find_parsing(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the seconds of computation while its file is open to be read; 0 for files
    that stay open longer than parsing takes."""
    spans = find_reading_spans(facts.job)
    return _measure_parsing(facts, rows, spans, facts.cells[rows, READ])


def are_of_text(facts: Facts, rows: Ints) -> Mask:
    """True for rows of files of text, by their names."""
    names = [facts.path(file).lower().endswith(TEXT) for file in facts.file[rows]]
    return np.array(names, bool)


def find_parsing_after(
    facts: Facts, rows: Ints, done: Floats | None = None, claimed: Work | None = None
) -> Floats:
    """Return, per row, the seconds from each close of a file of text to the next call of the
    thread: many programs read a whole file, close it, and parse its bytes then. At most the time
    that text of its size usually takes; 0 for other files. ``done``: seconds of parsing before the
    closes, which count towards this limit; ``claimed``: work that is claimed for each gap."""
    found = np.zeros(len(rows))
    records = facts.records[rows]
    text = are_of_text(facts, rows) & (facts.lane[rows] >= 0) & (records["opens"] > 0)
    if not text.any() or not len(facts.job.events):
        return found
    chosen = rows[text]
    opens = facts.records["opens"][chosen]
    each = facts.records["bytes_read"][chosen] / opens
    limit = _find_limits(facts, chosen, TEXT_WORK) / len(idioms.TABLE) * each
    limit /= find_running_shares(facts, facts.lane[chosen])
    if done is not None:
        limit = np.maximum(limit - done[text] / opens, 0.0)
    least = _find_limits(facts, chosen, claimed) if claimed else np.zeros(len(chosen))
    mask = np.zeros(len(facts.records), bool)
    mask[chosen] = True

    def add_up(most: Floats) -> Floats:
        each_gap = np.zeros(len(facts.records))
        each_gap[chosen] = most
        return _find_gaps(facts, mask, each_gap, np.ones_like(mask), mask)[0][chosen]

    found[text] = add_up(np.maximum(limit, least)) - add_up(least)
    return found


def find_repeated_work(facts: Facts, rows: Ints, rewound: Ints | None = None) -> Floats:
    """Return, per row, the seconds of computation after reads that repeat those of an earlier open
    of the file, or of an earlier pass in the rows ``rewound``; 0 where they take longer than
    parsing."""
    if not len(facts.job.events) or not len(rows):
        return np.zeros(len(rows))
    return _measure_parsing(facts, rows, find_repeated_spans(facts.job, rows, rewound), 0.0)


def find_setup(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the seconds of computation in which a library sets up a mapping of the file
    after each open; 0 where it takes longer than parsing."""
    held = np.nan_to_num(find_setup_seconds(facts.job)[rows])
    found = (facts.lane[rows] >= 0) & (held <= LONGEST_PARSING * facts.records["opens"][rows])
    return np.where(found, held, 0.0)


def _measure_parsing(facts: Facts, rows: Ints, spans: Spans, reads: Floats | float) -> Floats:
    """Return, per row, the seconds of spans without ``reads``, if they are short enough for
    parsing. Files that are open at the same time share them."""
    held = np.nan_to_num(spans.seconds[rows] - reads)
    parsed = (facts.lane[rows] >= 0) & (facts.records["bytes_read"][rows] > 0)
    parsed &= held <= _longest_parsing(facts, rows)
    own = np.isin(spans.row, rows[parsed])
    lane = facts.lane[spans.row[own]]
    times = Intervals(spans.begin[own], spans.end[own], lane)
    covered = IntervalSet(times, facts.wall).measure(np.arange(facts.ranks), 0.0, facts.wall)
    share = ratio(covered, sums(lane, times.end - times.start, facts.ranks))
    return np.asarray(np.where(parsed, held, 0.0) * share[np.maximum(facts.lane[rows], 0)])


def _longest_parsing(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the most seconds that parsing takes."""
    records = facts.records[rows]
    opens = np.maximum(records["opens"], 1)
    return np.asarray(np.maximum(LONGEST_PARSING * opens, PARSING * records["bytes_read"]))


def claim_mapped_parsing(facts: Facts, rows: Ints, needless: Floats) -> list[Claim]:
    """Return claims of the computation while files are mapped, a part per row of it; none for
    files that stay mapped longer than parsing takes."""
    held = find_mapped_seconds(facts.job)[rows]
    parsed = (facts.lane[rows] >= 0) & (held <= PARSING * facts.records["bytes_mapped"][rows])
    return claim_computation(facts, rows, np.where(parsed, np.nan_to_num(held) * needless, 0.0))


def claim_computation(facts: Facts, rows: Ints, seconds: Floats) -> list[Claim]:
    """Return a claim of seconds of each row on its lane's computation."""
    per_lane = sums(np.maximum(facts.lane[rows], 0), np.maximum(seconds, 0.0), facts.ranks)
    lanes = np.flatnonzero(per_lane > 0)
    return [Claim(lanes, COMPUTE, per_lane[lanes])] if len(lanes) else []


def _find_limits(facts: Facts, rows: Ints, work: Work) -> Floats:
    """Return, per row, the most seconds of work for a call."""
    return np.where(_are_interpreted(facts, rows), work.interpreted, work.compiled)


def _are_interpreted(facts: Facts, rows: Ints) -> Mask:
    """True for rows of programs of interpreters."""
    job = facts.job
    slow = np.array([is_interpreter(program) for program in job.programs] or [False])
    process = facts.records["process"][rows]
    interpreted, own = np.zeros(len(rows), bool), process >= 0
    interpreted[own] = slow[job.processes["exe"][process[own]]]
    return interpreted


def _find_gaps(
    facts: Facts, mask: Mask, most: Floats, ending: Mask, parsed: Mask | None
) -> tuple[Floats, Floats]:
    """Return, per record of the mask, the seconds between a call and the next one of the same
    thread, which is on a record of ``ending``: each gap at most ``most``, and whole. Of ``parsed``
    records only the gaps after a close."""
    job = facts.job
    events, new = _sort_by_thread(job.events)
    row = find_rows(job.records, events["process"], events["file"], events["layer"])
    row[events["layer"] == COMMUNICATION] = -1
    row = _follow(row, _find_followers(facts, events, row), new)
    own = (row >= 0) & mask[row]
    if parsed is not None:
        own &= ~parsed[row] | (events["kind"] == _CLOSE)
    ends = _find_latest_ends(events["end"], np.cumsum(new), 1.0 + float(job.wall))
    own_next = own[:-1] & ((row >= 0) & ending[row])[1:] & ~new[1:]
    first = np.flatnonzero(own_next)
    gap = np.maximum(events["start"][first + 1] - ends[first], 0.0)
    joint = np.flatnonzero(own & (events["count"] > 1))
    calls = events["count"][joint] - 1
    between = np.maximum(
        events["end"][joint] - events["start"][joint] - events["duration"][joint], 0
    )
    row, each = np.append(row[first], row[joint]), np.append(np.ones(len(first)), calls)
    whole = np.append(gap, between)
    counted = np.minimum(whole, most[row] * each)
    return sums(row, counted, len(mask)), sums(row, whole, len(mask))


def find_outer_calls(job: Job) -> tuple[Table, Mask]:
    """Return the events by thread and start without those inside of others, and the mask of the
    first one of each thread: libraries make calls on files inside their own."""
    events, new = _sort_by_thread(job.events)
    ends = _find_latest_ends(events["end"], np.cumsum(new), 1.0 + float(job.wall))
    outer = new | (events["start"] >= np.append(0.0, ends[:-1]))
    return events[outer], new[outer]


def _sort_by_thread(events: Table) -> tuple[Table, Mask]:
    """Return the events by thread and start, and the mask of the first one of each thread."""
    thread = events["process"].astype(np.int64) * 256 + events["thread"]
    if np.any(thread[1:] < thread[:-1]):  # else they are in order: a copy would cost half the time
        order = order_by_group(thread, events["start"])
        events, thread = events[order], thread[order]
    return events, np.append(True, thread[1:] != thread[:-1])


def _find_followers(facts: Facts, events: Table, row: Ints) -> Mask:
    """Return, per event, True for calls that move no data and concern no stored file: closedir, or
    calls of a shell that redirect its output. They belong to the call before them."""
    stored = (row >= 0) & facts.stored[row]
    return np.asarray(
        ~stored & (events["layer"] != COMMUNICATION) & np.isin(events["kind"], _FOLLOWERS)
    )


def _follow(row: Ints, follows: Mask, new: Mask) -> Ints:
    """Return the rows of events, those that follow with the row of the event before; ``new``: the
    first event of each thread."""
    at = np.arange(len(row))
    return np.asarray(row[np.maximum.accumulate(np.where(follows & ~new, 0, at))])


def _find_latest_ends(ends: Floats, group: Ints, width: float) -> Floats:
    """Return, per call, the latest end of the calls of its group so far: calls of libraries contain
    others."""
    shift = group * width
    return np.asarray(np.maximum.accumulate(ends + shift) - shift)
