"""I/O over time in bins: ranks (or groups of ranks) by time. Its size does not grow with the
log."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, columns, counts, ratio, sums
from pario.see.analyze.cells import META, READ, WRITE, of_library
from pario.see.analyze.facts import Facts
from pario.see.analyze.intervals import Intervals, nothing, spread_weights
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import Timeline
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS
from pario.wording import ranks as rank_list

MAX_ROWS = 64
BINS = 300
_READ, _WRITE = EVENT_KINDS.index("read"), EVENT_KINDS.index("write")


def timeline(facts: Facts) -> Timeline | None:
    """Return the timeline from events, otherwise from first and last times of the counters; None
    for a job without I/O."""
    edges = np.linspace(0.0, facts.wall, BINS + 1)
    row_of_lane, labels = _rows(facts)
    classes = _from_events(facts) if facts.times.exact else _from_counters(facts)
    if facts.job.heat and not facts.times.exact:
        classes |= {"read": _from_heat(facts, "reads"), "write": _from_heat(facts, "writes")}
    if not any(len(spans) for spans, _, _ in classes.values()):
        return None
    shares = {
        name: _share(spans, busy, row_of_lane, len(labels), edges)
        for name, (spans, busy, _) in classes.items()
    }
    moved = {name: _total(classes[name][0], classes[name][2], edges) for name in ("read", "write")}
    return Timeline(
        bin_seconds=facts.wall / BINS,
        start=0.0,
        labels=labels,
        read_share=shares["read"],
        write_share=shares["write"],
        meta_share=shares["meta"],
        mpi_share=shares["mpi"],
        bytes_read=moved["read"],
        bytes_written=moved["write"],
        exact=facts.times.exact,
    )


_Class = tuple[Intervals, Floats, Floats]  # spans, seconds busy in each, bytes moved in each


def _rows(facts: Facts) -> tuple[Ints, tuple[str, ...]]:
    """Return the row of each lane, and the labels of the rows."""
    group = -(-facts.ranks // MAX_ROWS)
    row = np.arange(facts.ranks) // group
    one, several = lane_words(mpi=facts.lanes.mpi)
    if group == 1:
        return row, tuple(f"{one} {lane}" for lane in range(facts.ranks))
    members = (np.flatnonzero(row == number) for number in range(int(row.max()) + 1))
    return row, tuple(f"{several} {rank_list(member.tolist())}" for member in members)


def _from_events(facts: Facts) -> dict[str, _Class]:
    events, rows = facts.job.events, facts.times.io_events
    rows = rows[facts.lanes.of(events["process"][rows]) >= 0]
    kind = events["kind"][rows]
    chosen = {
        "read": rows[kind == _READ],
        "write": rows[kind == _WRITE],
        "meta": rows[(kind != _READ) & (kind != _WRITE)],
        "mpi": np.flatnonzero(
            (events["layer"] == COMMUNICATION) & (facts.lanes.of(events["process"]) >= 0)
        ),
    }
    return {name: _spans(facts, picked) for name, picked in chosen.items()}


def _spans(facts: Facts, rows: Ints) -> _Class:
    names = ("start", "end", "process", "duration", "length", "layer")
    start, end, process, duration, length, layer = columns(facts.job.events, rows, *names)
    spans = Intervals(start, np.maximum(end, start), facts.lanes.of(process))
    # The bytes of libraries are those of the calls that it makes.
    return spans, duration, np.where(of_library(layer), 0.0, length.astype(float))


def _bytes(facts: Facts, name: str) -> Floats:
    return np.where(facts.library, 0.0, facts.column(name))


def _from_counters(facts: Facts) -> dict[str, _Class]:
    reads = _make_class(
        facts, "first_read", "last_read", facts.cells[:, READ], _bytes(facts, "bytes_read")
    )
    writes = _make_class(
        facts, "first_write", "last_write", facts.cells[:, WRITE], _bytes(facts, "bytes_written")
    )
    meta = _make_class(
        facts,
        "first_open",
        "last_close",
        facts.cells[:, META].sum(axis=1),
        np.zeros(len(facts.records)),
    )
    return {
        "read": reads,
        "write": writes,
        "meta": meta,
        "mpi": (nothing(), np.zeros(0), np.zeros(0)),
    }


def _from_heat(facts: Facts, direction: str) -> _Class:
    """Return the intervals in which bytes moved. The seconds of a lane in reads or writes are
    distributed by bytes, because the log does not know them by interval."""
    layers = {bins.layer for bins in facts.job.heat}
    chosen = [bins for bins in facts.job.heat if bins.layer != "mpiio" or "posix" not in layers]
    starts: list[Floats] = [np.zeros(0)]
    widths, lanes, moved = starts.copy(), starts.copy(), starts.copy()
    for bins in chosen:
        values = np.asarray(getattr(bins, direction), np.float64)
        (used,) = np.nonzero(values > 0)
        starts.append(np.asarray(bins.start + used * bins.width, np.float64))
        widths.append(np.full(len(used), bins.width))
        lanes.append(np.full(len(used), facts.lanes.of_process[bins.process]))
        moved.append(values[used])
    start, width, amount = (np.concatenate(part) for part in (starts, widths, moved))
    lane = np.concatenate(lanes).astype(np.int64)
    kept = lane >= 0
    kind = READ if direction == "reads" else WRITE
    seconds = sums(facts.lane[facts.lane >= 0], facts.cells[facts.lane >= 0, kind], facts.ranks)
    seconds += facts.cells[facts.lane < 0, kind].sum() / facts.ranks
    whole = sums(lane[kept], amount[kept], facts.ranks)
    part = ratio(seconds, whole)[lane[kept]] * amount[kept]
    spans = Intervals(start[kept], (start + width)[kept], lane[kept])
    return spans, np.minimum(part, width[kept]), amount[kept]


def _make_class(facts: Facts, first: str, last: str, seconds: Floats, moved: Floats) -> _Class:
    start, end = facts.column(first), facts.column(last)
    own = facts.stored & ~np.isnan(start) & ~np.isnan(end) & (facts.lane >= 0)
    shared = facts.stored & ~np.isnan(start) & ~np.isnan(end) & (facts.lane < 0)
    lanes = np.concatenate([facts.lane[own], np.tile(np.arange(facts.ranks), int(shared.sum()))])

    def column(values: Floats, divide: bool) -> Floats:
        return np.concatenate(
            [values[own], np.repeat(values[shared] / (facts.ranks if divide else 1), facts.ranks)]
        )

    spans = Intervals(
        column(start, False), np.maximum(column(end, False), column(start, False)), lanes
    )
    return spans, column(seconds, True), column(moved, True)


def _share(
    spans: Intervals, busy: Floats, row_of_lane: Ints, rows: int, edges: Floats
) -> tuple[tuple[float, ...], ...]:
    members = counts(row_of_lane, rows)
    by_row = Intervals(spans.start, spans.end, row_of_lane[spans.lane]) if len(spans) else spans
    share = spread_weights(by_row, busy, edges, rows) / (np.diff(edges) * members[:, None])
    return tuple(tuple(row) for row in np.clip(share, 0.0, 1.0).round(4).tolist())


def _total(spans: Intervals, moved: Floats, edges: Floats) -> tuple[float, ...]:
    together = Intervals(spans.start, spans.end, np.zeros(len(spans), np.int64))
    return tuple(spread_weights(together, moved, edges, 1)[0].round(1).tolist())
