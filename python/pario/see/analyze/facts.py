"""The facts of a job that the rules read, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, Mask, counts, sums, unique_pairs
from pario.see.analyze.cells import (
    META,
    MPIIO,
    POSIX,
    find_rows,
    of_library,
)
from pario.see.analyze.definitions import DefinedFile, find_defined_files
from pario.see.analyze.durations import find_stalls, find_usual
from pario.see.analyze.extents import unique_bytes
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.reference import Reference
from pario.see.analyze.row_facts import RowFacts

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def compute_once(
    find: Callable[Concatenate[Facts, _Given], _Found],
) -> Callable[Concatenate[Facts, _Given], _Found]:
    """Return a function of facts that several rules ask, and that computes its result once for each
    of its arguments. Callers do not change the result."""

    @wraps(find)
    def ask(facts: Facts, /, *given: _Given.args, **named: _Given.kwargs) -> _Found:
        key = (find, given, tuple(named.items()))
        if key not in facts.answers:
            facts.answers[key] = find(facts, *given, **named)
        return facts.answers[key]  # type: ignore[no-any-return]

    return ask


class Facts(RowFacts):
    """A job in the form that the rules use: rows, files, directories and reference rates."""

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """The results of functions with ``compute_once``."""
        return {}

    @cached_property
    def ranks(self) -> int:
        """The number of lanes that run at the same time."""
        return self.lanes.count

    @property
    def over_all(self) -> str:
        """The text after a sum of seconds: the lanes summed over; empty for one lane."""
        return "" if self.ranks == 1 else f" over all {lane_words(mpi=self.lanes.mpi)[1]}"

    @cached_property
    def writers(self) -> Ints:
        """The number of processes that write each file."""
        rows = self.records[(self.records["writes"] > 0) | (self.records["bytes_written"] > 0)]
        many = counts(unique_pairs(rows["file"], rows["process"] + 1)[0], len(self.job.files))
        np.maximum.at(many, rows["file"], rows["ranks"])  # a sum over ranks is one row
        return many

    @cached_property
    def read_extent(self) -> Floats:
        """Distinct bytes read per row: from events if they hold every read, otherwise the highest
        offset read."""
        extent = self.column("end_read")
        if self.times.exact:
            rows, unique = unique_bytes(self.job)
            extent[rows] = unique
        return extent

    @cached_property
    def usual_reads(self) -> Floats:
        """Median seconds of a read per row; NaN for rows without events."""
        return find_usual(self.job, "read")

    @cached_property
    def stalls(self) -> Floats:
        """Seconds per row in writes to the page cache that waited for the device: their bytes cause
        it, not their number."""
        waiting = (self.column("direct_calls") > 0.5 * self.writes) | self.synced_writes
        return np.where(waiting, 0.0, find_stalls(self.job))

    @cached_property
    def defined_files(self) -> tuple[DefinedFile, ...]:
        """Files of netCDF whose definitions write many bytes."""
        return tuple(find_defined_files(self))

    def asked_bytes(self, name: str) -> Floats:
        """Bytes per row that the program moved: 0 for the POSIX rows below a file of MPI-IO, and
        for rows of libraries, whose files have rows of their own."""
        value = np.where(of_library(self.records["layer"]), 0.0, self.column(name))
        mpiio = self.records["layer"] == MPIIO
        above = sums(self.file[mpiio], value[mpiio], len(self.job.files))
        return np.where(~mpiio & (above[self.file] > 0), 0.0, value)

    @cached_property
    def meta_seconds(self) -> Floats:
        """Seconds per row in calls that move no data."""
        return np.asarray(self.cells[:, META].sum(axis=1))

    @cached_property
    def reference(self) -> Reference:
        """The rates of the storage, measured in this job or assumed."""
        return Reference(self)

    def find_in_layer(self, rows: Ints, layer: int) -> Ints:
        """Row of the same process and file in another layer for each of ``rows``, -1 for none."""
        process, file = self.records["process"][rows], self.records["file"][rows]
        return find_rows(self.records, process, file, layer)

    def find_below(self, rows: Ints) -> tuple[Ints, Ints]:
        """The rows with a POSIX row of the same process and file, and these."""
        lower = self.find_in_layer(rows, POSIX)
        return rows[lower >= 0], lower[lower >= 0]

    def per_file(self, values: Floats, mask: Mask | None = None) -> Floats:
        """Sums of row values per file."""
        rows = slice(None) if mask is None else mask
        return sums(self.file[rows], values[rows], len(self.job.files))

    @cached_property
    def directory(self) -> Ints:
        """The index of each file's directory in ``directories``."""
        return self._directories[0]

    @cached_property
    def directories(self) -> list[str]:
        """Directories of all files."""
        return self._directories[1]

    @cached_property
    def _directories(self) -> tuple[Ints, list[str]]:
        numbers: dict[str, int] = {}
        of_path = np.array(
            [
                numbers.setdefault(path.rpartition("/")[0] or "/", len(numbers))
                for path in self.job.paths
            ],
            np.int64,
        )
        return (of_path[self.job.files["path"]] if len(of_path) else of_path), list(numbers)

    def path(self, file: int) -> str:
        """Path of a file row."""
        return self.job.path(int(file))

    def ranks_of(self, rows: Any) -> tuple[int, ...]:
        """MPI ranks of rows; empty for all ranks, and without MPI."""
        lanes = np.unique(self.lane[rows])
        if not self.lanes.mpi or len(lanes) >= self.ranks or (lanes < 0).any():
            return ()
        return tuple(int(lane) for lane in lanes)
