"""Reference costs of a call and a byte: measured in the job's large calls, otherwise kept rates of
the file system (pario bench --calibrate), otherwise cautious defaults by its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import WRITES, Direction
from pario.see.analyze.kept_rates import applies_to, load_rates
from pario.see.analyze.row_facts import RowFacts


@dataclass(frozen=True)
class Speed:
    """One process on one file: bytes per second of large calls, seconds of a small write."""

    read: float
    write: float
    call: float


#: Defaults for jobs without large calls (docs/findings.md, Reference rates).
DEFAULTS: dict[str, Speed] = {
    "memory": Speed(read=3e9, write=2e9, call=1e-6),
    "local": Speed(read=2e9, write=1e9, call=2e-6),
    "network": Speed(read=500e6, write=400e6, call=200e-6),
}
#: Bytes per second of a copy in memory, such as an exchange between ranks of a node (assumed).
COPY_RATE = 2e9
LARGE_CALL = 64 * 1024
ENOUGH_BYTES = 4 << 20


class Reference:
    """Reference rates per file, for reading and writing."""

    def __init__(self, facts: RowFacts) -> None:
        self._facts = facts

    @cached_property
    def default(self) -> Floats:
        """Array ``[files, 3]``: read rate, write rate, seconds of a small write."""
        kinds = np.where(
            self._facts.network,
            2,
            np.where(np.isin(self._facts.filesystem_type, ("tmpfs", "ramfs")), 0, 1),
        )
        costs = np.array([[speed.read, speed.write, speed.call] for speed in DEFAULTS.values()])
        return self._with_kept(costs[kinds])

    def _with_kept(self, costs: Floats) -> Floats:
        """Replace the defaults of file systems whose rates were measured. A small write waits for a
        request on network file systems only; elsewhere the page cache takes it."""
        job = self._facts.job
        for (type, mount), rates in load_rates().items():
            for number, system in enumerate(job.filesystems):
                network = bool(system["network"])
                if (system["type"], system["mount"]) != (type, mount) or not applies_to(
                    job.hosts, network
                ):
                    continue
                files = job.files["filesystem"] == number
                kept = [rates.read, rates.write, rates.request if network else 0.0]
                costs[files] = np.where(kept, kept, costs[files])
        return costs

    @property
    def call(self) -> Floats:
        """Per file: seconds of a write of a few bytes."""
        return np.asarray(self.default[:, 2])

    def rate(self, direction: Direction) -> tuple[Floats, Mask]:
        """Per file: bytes per second, and True if this job measured it on the same file system
        (otherwise the default)."""
        facts = self._facts
        moved, seconds = facts.column(direction.bytes), facts.cells[:, direction.kind]
        large = facts.mean_size(direction) >= LARGE_CALL
        good = (
            facts.stored
            & large
            & (moved >= ENOUGH_BYTES)
            & (seconds > 1e-4)
            & ~self._cut(moved, direction)
            & ~(facts.synced_writes & (direction is WRITES))
        )
        best = np.zeros(len(facts.job.filesystems) + 1)
        np.maximum.at(
            best, facts.job.files["filesystem"][facts.file[good]], moved[good] / seconds[good]
        )
        seen = best[facts.job.files["filesystem"]]
        return np.where(seen > 0, seen, self.default[:, direction.kind]), seen > 0

    def _cut(self, moved: Floats, direction: Direction) -> Mask:
        """MPI-IO rows whose large calls the library divided into small pieces, as for views with
        holes. In collective calls other ranks may write the pieces."""
        facts, files = self._facts, len(self._facts.job.files)
        cuts = sums(facts.file, facts.column(f"nested_{direction.calls}"), files)
        whole = sums(facts.file[facts.mpiio], moved[facts.mpiio], files)
        return np.asarray(facts.mpiio & (whole < LARGE_CALL * cuts)[facts.file])

    def row_rate(self, direction: Direction) -> Floats:
        """The rate of each record's file."""
        return self.rate(direction)[0][self._facts.file]

    def cost(self, rows: Ints, direction: Direction) -> Floats:
        """The seconds of the bytes of rows at the rates of their files."""
        moved = self._facts.records[direction.bytes][rows]
        return np.asarray(moved / self.row_rate(direction)[rows])
