"""The rows of a job by layer, file and lane, with the sizes of their calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pario.see.analyze.arrays import Floats, Ints, Mask, ratio, sums
from pario.see.analyze.cells import (
    MPIIO,
    POSIX,
    STDIO,
    WRITES,
    Direction,
    divide_meta,
    of_library,
)
from pario.see.analyze.nesting import own_calls
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, Job

#: Syncs of a file by processes in turn that are many, and the most writes for each of them.
MANY_SYNCS, WRITES_OF_A_SYNC = 20, 20


class RowFacts:
    """Masks and columns of the rows of ``Job.records``; ``cells`` holds their seconds by kind (see
    cells.KINDS)."""

    def __init__(self, times: Times) -> None:
        self.times = times
        self.job: Job = times.job
        self.wall = times.wall
        self.lanes = times.lanes
        self.cells: Floats = divide_meta(self.job, times.active_cells)
        self.records = self.job.records
        self.file: Ints = self.records["file"].astype(np.int64)
        self.lane: Ints = self.lanes.of(self.records["process"])

    def has(self, fact: str) -> bool:
        """Tell whether the log can hold ``fact`` (see ``Job.has``)."""
        return fact in self.job.has

    @cached_property
    def stored(self) -> Mask:
        """Rows of calls on storage files; not of the library calls that made them."""
        return np.asarray(self._on_storage & (self.records["layer"] <= MPIIO))

    @cached_property
    def _on_storage(self) -> Mask:
        return np.asarray(self.times.storage[self.file]) if len(self.records) else np.zeros(0, bool)

    @cached_property
    def library(self) -> Mask:
        """Rows of calls of libraries such as HDF5, on datasets and on files in storage."""
        return np.asarray(self._on_storage & of_library(self.records["layer"]))

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

    def column(self, name: str) -> Floats:
        """A counter of all rows as floats; times of events that did not occur are NaN."""
        return np.asarray(self.records[name], np.float64)

    def are_of_programs(self, accept: Callable[[str], bool]) -> Mask:
        """True for the rows of processes that run a program whose path is accepted."""
        programs = np.array([accept(path) for path in self.job.programs] or [False])
        of_process = np.append(programs[self.job.processes["exe"]], False)
        return np.asarray(of_process[self.records["process"]])

    def calls(self, name: str) -> Floats:
        """Calls of a kind per row (``opens``, ``syncs`` ...), without those of MPI-IO itself."""
        return own_calls(self.job, name)

    @cached_property
    def reads(self) -> Floats:
        """Reads per row, without the calls of MPI-IO itself."""
        return self.calls("reads")

    @cached_property
    def writes(self) -> Floats:
        """Writes per row, without the calls of MPI-IO itself."""
        return self.calls("writes")

    @cached_property
    def read_size(self) -> Floats:
        """Mean bytes of a read per row, infinite without reads."""
        return ratio(self.column("bytes_read"), self.column("reads"), np.inf)

    @cached_property
    def write_size(self) -> Floats:
        """Mean bytes of a write per row, infinite without writes."""
        return ratio(self.column("bytes_written"), self.column("writes"), np.inf)

    def calls_of(self, direction: Direction) -> Floats:
        """Calls per row in one direction, without the calls of MPI-IO itself."""
        return self.writes if direction is WRITES else self.reads

    def mean_size(self, direction: Direction) -> Floats:
        """Mean bytes of a call per row, infinite without calls."""
        return self.write_size if direction is WRITES else self.read_size

    @cached_property
    def often_synced(self) -> Mask:
        """Rows of files with a sync for every few writes."""
        writes = self.add_followers(self.calls("writes"))
        return np.asarray(
            self.stored
            & (self.calls("syncs") > 0)
            & (self.syncs_in_turn >= MANY_SYNCS)
            & (self.syncs_in_turn * WRITES_OF_A_SYNC >= writes)
        )

    @cached_property
    def syncs_in_turn(self) -> Floats:
        """Syncs of each row's file by a rank, or by processes that follow one another."""
        return self.add_followers(self.calls("syncs"))

    def add_followers(self, values: Floats) -> Floats:
        """Return, per row, the sum over its lane's rows of the same file and layer: those of
        processes that follow one another; for rows of several ranks the mean of a rank."""
        groups = self.file * len(LAYERS) + self.records["layer"]
        groups = groups * (self.lanes.count + 1) + self.lane + 1
        members, group = np.unique(groups, return_inverse=True)
        alone = self.lane < 0
        total = sums(group, values, len(members))[group]
        return np.where(alone, values / np.maximum(self.column("ranks"), 1), total)

    @cached_property
    def synced_writes(self) -> Mask:
        """Rows whose writes wait for the device, or whose write time holds that of many syncs."""
        waiting = self.stored & (self.column("sync_writes") >= MANY_SYNCS)
        return np.asarray(waiting if self.has("meta_split") else waiting | self.often_synced)

    @cached_property
    def filesystem_type(self) -> NDArray[np.str_]:
        """The type of each file's file system; empty if unknown."""
        types = np.append(self.job.filesystems["type"].astype(str), "")
        return np.asarray(types[self.job.files["filesystem"]])

    @cached_property
    def network(self) -> Mask:
        """True for files on a network file system."""
        network = np.append(self.job.filesystems["network"] > 0, False)
        return np.asarray(network[self.job.files["filesystem"]])
