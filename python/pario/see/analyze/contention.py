"""Contention maps: the stripe targets, or the blocks, of the busiest shared files by the ranks that
access them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario import filesystems, wording
from pario.see.analyze.arrays import Ints, counts, sums, unique_pairs
from pario.see.analyze.cells import POSIX
from pario.see.analyze.facts import Facts
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import Contention
from pario.see.analyze.timeline import MAX_ROWS
from pario.see.tables.model import EVENT_KINDS, IN_VIEW, LAYERS, Layout

MAX_MAPS = 3
MAX_TARGETS = 64
MAX_TOUCHES = 4_000_000


@dataclass(frozen=True)
class Touches:
    """Pieces of accesses, each within one unit of the file."""

    lane: Ints
    unit: Ints
    bytes: Ints

    def shared_units(self) -> int:
        """The number of units that more than one lane accessed."""
        units, _ = unique_pairs(self.unit, self.lane)
        return len(np.unique(units[1:][np.diff(units) == 0]))


def contention(facts: Facts) -> tuple[Contention, ...]:
    """Return the maps of the shared files with most bytes written. Reads of a local file contend
    for nothing: its pages come from one cache."""
    if "events" not in facts.job.has or facts.ranks < 2:
        return ()
    maps = (_map(facts, file) for file in _busiest_shared(facts))
    return tuple(found for found in maps if found is not None)


def _busiest_shared(facts: Facts) -> list[int]:
    own = (
        facts.stored
        & (facts.lane >= 0)
        & ((facts.column("bytes_written") > 0) | (facts.column("bytes_read") > 0))
    )
    shared = counts(unique_pairs(facts.file[own], facts.lane[own])[0], len(facts.job.files)) > 1
    written = facts.per_file(facts.column("bytes_written"), own)
    shared &= (written > 0) | facts.network
    weight = np.where(
        shared, written + 0.001 * facts.per_file(facts.column("bytes_read"), own), 0.0
    )
    return [int(file) for file in np.argsort(-weight, kind="stable")[:MAX_MAPS] if weight[file] > 0]


def accesses(facts: Facts, file: int, kind: str) -> Ints:
    """Return the rows of events of ``kind`` that reached the file system: POSIX calls if the file
    has any, otherwise MPI-IO calls at known offsets."""
    events = facts.job.events
    rows = np.flatnonzero(
        (events["file"] == file)
        & (events["kind"] == EVENT_KINDS.index(kind))
        & (events["layer"] < len(LAYERS))
    )
    rows = rows[
        (events["offset"][rows] >= 0)
        & (events["length"][rows] > 0)
        & (facts.lanes.of(events["process"][rows]) >= 0)
    ]
    rows = rows[(events["flags"][rows] & IN_VIEW) == 0]
    low = events["layer"][rows] == POSIX
    return np.asarray(rows[low] if low.any() else rows)


def touches(facts: Facts, rows: Ints, unit: int) -> Touches | None:
    """Cut accesses at the borders of units; None for too many pieces."""
    offset, length, process = (
        facts.job.events[name][rows] for name in ("offset", "length", "process")
    )
    first, last = offset // unit, (offset + length - 1) // unit
    pieces = last - first + 1
    if not len(rows) or pieces.sum() > MAX_TOUCHES:
        return None
    piece = np.repeat(np.arange(len(rows)), pieces)
    number = first[piece] + np.arange(len(piece)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.maximum(offset[piece], number * unit)
    end = np.minimum((offset + length)[piece], (number + 1) * unit)
    return Touches(facts.lanes.of(process)[piece], number, end - start)


def unit_of(facts: Facts, file: int) -> int:
    """Return the bytes that one lock or stripe covers: the stripe size, otherwise the block of the
    alignment counters, at least 4 KiB."""
    layout = int(facts.job.files["layout"][file])
    if layout >= 0:
        return max(facts.job.layouts[layout].stripe_size, 1)
    return max(int(facts.records["block_size"][facts.file == file].max(initial=0)), 4096)


def _map(facts: Facts, file: int) -> Contention | None:
    rows = accesses(facts, file, "write")
    if not len(rows):
        rows = accesses(facts, file, "read")
    unit = unit_of(facts, file)
    cut = touches(facts, rows, unit)
    if cut is None:
        return None
    number = facts.job.files["layout"][file]
    target, labels, word = (
        _place_on_targets(cut, facts.job.layouts[number]) if number >= 0 else _regions(cut, unit)
    )
    return _table(facts, file, cut, target, labels, word)


def _place_on_targets(cut: Touches, layout: Layout) -> tuple[Ints, list[str], str]:
    count = max(layout.stripe_count, 1)
    word = filesystems.of_kind(layout.kind).target
    numbers = layout.targets if len(layout.targets) == count else tuple(range(count))
    return cut.unit % count, [f"{word} {number}" for number in numbers], word


def _regions(cut: Touches, unit: int) -> tuple[Ints, list[str], str]:
    """Divide a file without stripes into as many equal regions of whole blocks as fit on the
    map."""
    blocks = int(cut.unit.max()) + 1
    per_region = -(-blocks // MAX_TARGETS)
    labels = [wording.block(start * unit) for start in range(0, blocks, per_region)]
    word = "region" if per_region > 1 else "block"
    return cut.unit // per_region, labels, f"{wording.block(unit * per_region)} {word}"


def _table(
    facts: Facts, file: int, cut: Touches, target: Ints, labels: list[str], word: str
) -> Contention:
    group = -(-facts.ranks // MAX_ROWS)
    rows = -(-facts.ranks // group)
    amount = sums(
        (cut.lane // group) * len(labels) + target, cut.bytes, rows * len(labels)
    ).reshape(rows, len(labels))
    pairs = np.unique(target * facts.ranks + cut.lane) // facts.ranks
    shared = cut.shared_units()
    members = ((first, min(first + group, facts.ranks)) for first in range(0, facts.ranks, group))
    names = tuple(
        f"rank{'s' if b - a > 1 else ''} {wording.ranks(range(a, b))}" for a, b in members
    )
    units = (
        f"{wording.count(len(np.unique(cut.unit)))} units ({wording.block(unit_of(facts, file))}"
        " each)"
    )
    return Contention(
        path=facts.path(file),
        unit=word,
        targets=tuple(labels),
        ranks=names,
        bytes=tuple(tuple(int(n) for n in row) for row in amount),
        ranks_per_target=tuple(int(n) for n in counts(pairs, len(labels))),
        shared_units=shared,
        note=f"{wording.count(shared)} of {units} are touched by more than one"
        f" {lane_words(mpi=facts.lanes.mpi)[0]}",
    )
