"""The calls on storage inside MPI-IO calls: their seconds, also of rows that sum all ranks."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, Mask, ratio, sums
from pario.see.analyze.cells import POSIX, READS, Direction
from pario.see.analyze.facts import Facts

_PARTS = ("read", "write", "other")


@dataclass(frozen=True)
class Storage:
    """Seconds in storage of MPI-IO rows. A row that sums all ranks gets the seconds of the process
    with most, multiplied by ``scale``, because in collective calls all ranks wait for it."""

    read: Floats
    write: Floats
    other: Floats
    scale: Floats  # seconds of the row for a second of its slowest rank; 1: the row of a process
    processes: Floats  # that share the calls on storage of the row, at least

    def select(self, chosen: Mask) -> Storage:
        """Return the seconds of some of the rows."""
        return Storage(*(getattr(self, one.name)[chosen] for one in fields(self)))

    @property
    def total(self) -> Floats:
        """Seconds of all calls."""
        return self.read + self.write + self.other

    def inside(self, facts: Facts, rows: Ints, direction: Direction) -> Floats:
        """Return the seconds inside reads or writes of the rows. Reads of rows that ask for none
        belong to the writes."""
        if direction is READS:
            return self.read + self.other
        return self.write + self.other + np.where(facts.column("reads")[rows] > 0, 0.0, self.read)


def find_storage(facts: Facts, rows: Ints) -> Storage:
    """Return the calls on storage inside MPI-IO rows; 0 seconds where the log has none."""
    lower = facts.find_in_layer(rows, POSIX)
    own = (lower >= 0) & (facts.lane[rows] >= 0)
    inside = [facts.column(f"nested_{part}_time") for part in _PARTS]
    parts = [np.where(own, seconds[lower], 0.0) for seconds in inside]
    scale, processes = np.ones(len(rows)), np.ones(len(rows))
    shared = np.flatnonzero(facts.lane[rows] < 0)
    if len(shared):
        file = facts.file[rows[shared]]
        sums_of = [facts.per_file(seconds) for seconds in inside]
        most, whole = _longest(facts, inside), np.sum(sums_of, axis=0)[file]
        seconds = facts.cells[rows[shared]].sum(axis=1)
        longest = _slowest(facts, rows[shared], seconds)
        scale[shared] = ratio(seconds, longest, 1.0)
        processes[shared] = ratio(whole, most[file], 1.0)
        factor = ratio(np.minimum(most[file], longest), whole) * scale[shared]
        for part, values in zip(parts, sums_of, strict=True):
            part[shared] = values[file] * factor
    read, write, other = parts
    return Storage(read, write, other, scale, processes)


def _longest(facts: Facts, parts: list[Floats]) -> Floats:
    """Return, per file, the seconds that the process with most spends in storage inside MPI-IO.
    ``parts``: such seconds per row."""
    inside = np.asarray(np.sum(parts, axis=0))
    own = np.flatnonzero((inside > 0) & (facts.lane >= 0))
    most = np.zeros(len(facts.job.files))
    np.maximum.at(most, facts.file[own], inside[own])
    rows = np.flatnonzero((inside > 0) & (facts.lane < 0))
    np.maximum.at(most, facts.file[rows], _slowest(facts, rows, inside[rows]))
    return most


def _slowest(facts: Facts, rows: Ints, seconds: Floats) -> Floats:
    """Return the seconds of the slowest rank of rows that sum ``seconds`` of all ranks; the mean if
    it is not known."""
    known = facts.column("slowest_rank_time")[rows]
    mean = seconds / np.maximum(facts.column("ranks")[rows], 1)
    return np.minimum(np.where(known > 0, known, mean), seconds)


def are_covered(facts: Facts) -> Mask:
    """Return, per file, True if the log has most of the calls on storage that MPI-IO made."""
    files = len(facts.job.files)
    moved = facts.column("bytes_read") + facts.column("bytes_written")
    asked = sums(facts.file[facts.mpiio], moved[facts.mpiio], files)
    made = sums(facts.file[facts.posix], moved[facts.posix], files)
    return np.asarray(made >= 0.5 * asked)
