"""What the rules ask of a job, computed once: rows with their lanes and seconds, reference rates, names."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.analyze.arrays import Floats, Ints, Mask, counts, ratio, sums, unique_pairs
from pario.analyze.cells import KINDS, META, MPIIO, POSIX, READ, STDIO, WRITE
from pario.analyze.extents import unique_bytes
from pario.analyze.lanes import lane_words
from pario.analyze.reference import Reference
from pario.analyze.split import Times
from pario.tables.model import Job


class Facts:
    """A job as the rules see it. Rows are rows of ``Job.records``; ``cells`` their seconds by kind (see cells.KINDS)."""

    def __init__(self, times: Times) -> None:
        self.times = times
        self.job: Job = times.job
        self.wall = times.wall
        self.lanes = times.lanes
        self.cells: Floats = times.active_cells
        self.records = self.job.records
        self.file: Ints = self.records["file"].astype(np.int64)
        self.lane: Ints = self.lanes.of(self.records["process"])

    def has(self, what: str) -> bool:
        """Whether the log could know ``what`` (see ``Job.has``)."""
        return what in self.job.has

    @cached_property
    def ranks(self) -> int:
        """Lanes that run side by side."""
        return self.lanes.count

    @property
    def over_all(self) -> str:
        """Behind seconds that are a sum: over what. Empty for what runs alone."""
        return "" if self.ranks == 1 else f" over all {lane_words(mpi=self.lanes.mpi)[1]}"

    @cached_property
    def stored(self) -> Mask:
        """Rows of storage files."""
        return np.asarray(self.times.storage[self.file]) if len(self.records) else np.zeros(0, bool)

    @cached_property
    def posix(self) -> Mask:
        """Rows of POSIX calls to storage."""
        return self._layer(POSIX)

    @cached_property
    def stdio(self) -> Mask:
        """Rows of stdio calls to storage."""
        return self._layer(STDIO)

    @cached_property
    def mpiio(self) -> Mask:
        """Rows of MPI-IO calls."""
        return self._layer(MPIIO)

    def _layer(self, number: int) -> Mask:
        return np.asarray(self.stored & (self.records["layer"] == number))

    @cached_property
    def writers(self) -> Ints:
        """Per file: processes that write it."""
        rows = self.records[(self.records["writes"] > 0) | (self.records["bytes_written"] > 0)]
        many = counts(unique_pairs(rows["file"], rows["process"] + 1)[0], len(self.job.files))
        np.maximum.at(many, rows["file"], rows["ranks"])  # a sum over ranks is one row
        return many

    def column(self, name: str) -> Floats:
        """A counter of all rows as floats, moments that never were as NaN."""
        return np.asarray(self.records[name], np.float64)

    @cached_property
    def reads(self) -> Floats:
        """Reads per row, without those MPI-IO made."""
        return self.column("reads") - self.column("nested_reads")

    @cached_property
    def writes(self) -> Floats:
        """Writes per row, without those MPI-IO made."""
        return self.column("writes") - self.column("nested_writes")

    @cached_property
    def read_size(self) -> Floats:
        """Mean bytes of a read per row, infinite without reads."""
        return ratio(self.column("bytes_read"), self.column("reads"), np.inf)

    @cached_property
    def write_size(self) -> Floats:
        """Mean bytes of a write per row, infinite without writes."""
        return ratio(self.column("bytes_written"), self.column("writes"), np.inf)

    @cached_property
    def read_extent(self) -> Floats:
        """Different bytes that each row read: from events where they show every read, else up to the highest offset read."""
        extent = self.column("end_read")
        if self.times.exact:
            rows, unique = unique_bytes(self.job)
            extent[rows] = unique
        return extent

    def asked_bytes(self, name: str) -> Floats:
        """Bytes per row as the program moved them: of a file opened through MPI-IO the POSIX rows below do not count again."""
        value = self.column(name)
        mpiio = self.records["layer"] == MPIIO
        above = sums(self.file[mpiio], value[mpiio], len(self.job.files))
        return np.where(~mpiio & (above[self.file] > 0), 0.0, value)

    @cached_property
    def meta_seconds(self) -> Floats:
        """Seconds per row in calls that move no data."""
        return np.asarray(self.cells[:, META].sum(axis=1))

    @cached_property
    def reference(self) -> Reference:
        """What storage can do, seen in this job or by default."""
        return Reference(self)

    def per_file(self, values: Floats, mask: Mask | None = None) -> Floats:
        """Sums of row values per file."""
        rows = slice(None) if mask is None else mask
        return sums(self.file[rows], values[rows], len(self.job.files))

    @cached_property
    def filesystem_type(self) -> NDArray[np.str_]:
        """Per file the type of its file system, empty when not known."""
        types = np.append(self.job.filesystems["type"].astype(str), "")
        return np.asarray(types[self.job.files["filesystem"]])

    @cached_property
    def network(self) -> Mask:
        """Per file whether its file system is on a network."""
        network = np.append(self.job.filesystems["network"] > 0, False)
        return np.asarray(network[self.job.files["filesystem"]])

    @cached_property
    def directory(self) -> Ints:
        """Per file the number of its directory in ``directories``."""
        return self._directories[0]

    @cached_property
    def directories(self) -> list[str]:
        """Directories of all files."""
        return self._directories[1]

    @cached_property
    def _directories(self) -> tuple[Ints, list[str]]:
        numbers: dict[str, int] = {}
        of_path = np.array([numbers.setdefault(path.rpartition("/")[0] or "/", len(numbers)) for path in self.job.paths], np.int64)
        return (of_path[self.job.files["path"]] if len(of_path) else of_path), list(numbers)

    def path(self, file: int) -> str:
        """Path of a file row."""
        return self.job.path(int(file))

    def ranks_of(self, rows: Any) -> tuple[int, ...]:
        """MPI ranks of rows, empty when all ranks (or no MPI) are meant."""
        lanes = np.unique(self.lane[rows])
        if not self.lanes.mpi or len(lanes) >= self.ranks or (lanes < 0).any():
            return ()
        return tuple(int(lane) for lane in lanes)


__all__ = ["KINDS", "META", "READ", "WRITE", "Facts"]
