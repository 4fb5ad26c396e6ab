"""A process log in its job: its row, its host, and its ticks in seconds of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.own.blocks import ProcessLog

_LARGEST_COUNT = np.uint64(2**63 - 1)


@dataclass(frozen=True)
class Timebase:
    """The conversion of ticks of one process to seconds since the start of the job."""

    ticks0: int
    seconds0: float
    seconds_per_tick: float

    def moment(self, ticks: int) -> float:
        """Return a moment in seconds; NaN for 0 (never)."""
        return (
            self.seconds0 + (ticks - self.ticks0) * self.seconds_per_tick if ticks else float("nan")
        )

    def moments(self, ticks: NDArray[Any]) -> NDArray[np.float64]:
        """Return moments in seconds."""
        since = (ticks - np.uint64(self.ticks0)).astype(
            np.int64
        )  # wraps to negative for moments before the anchor
        return np.where(ticks == 0, np.nan, self.seconds0 + since * self.seconds_per_tick)

    def durations(self, ticks: NDArray[Any]) -> NDArray[np.float64]:
        """Return durations in seconds."""
        seconds: NDArray[np.float64] = ticks.astype(np.float64) * self.seconds_per_tick
        return seconds


@dataclass(frozen=True)
class View:
    """A process log in its job."""

    log: ProcessLog
    row: int  # of Job.processes
    host: int  # of Job.hosts
    machine: str  # boot ID: processes with the same one share local file systems
    time: Timebase

    def moment_of_clock(self, mono_ns: int) -> float:
        """Return a moment of the host's monotonic clock in seconds of the job."""
        return self.time.seconds0 + (mono_ns - int(self.log.process["anchor0_mono_ns"])) / 1e9

    def counts(self, values: NDArray[Any], name: str) -> NDArray[np.int64]:
        """Return counters as signed numbers. A value out of range is damage of ``name``, and counts
        as 0."""
        impossible = values > _LARGEST_COUNT
        if impossible.any():
            damage = f"{name}: {np.count_nonzero(impossible)} impossible values were passed over"
            self.log.remarks.damages.append(damage)
            values = np.where(impossible, np.uint64(0), values)
        return values.astype(np.int64)
