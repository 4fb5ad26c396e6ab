"""The split of the time of lanes into compute, communication, waiting and I/O, per lane and along
the critical path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario.see.analyze import counted
from pario.see.analyze.arrays import Floats, Ints, Table, columns, sums
from pario.see.analyze.cells import MPIIO, exclusive_seconds, of_library, without_waiting
from pario.see.analyze.intervals import Intervals, IntervalSet, nothing
from pario.see.analyze.lanes import Lanes, find_lanes
from pario.see.analyze.model import Split
from pario.see.analyze.path import Path, critical_path
from pario.see.analyze.scope import IN_MPI, IN_MPI_IO, Scope, find_scope
from pario.see.analyze.waiting import COMMUNICATION, Waits, find_waits
from pario.see.tables.model import EVENT_KINDS, Job

#: Events that hold this part of the counted I/O time count as complete.
ALMOST_ALL = 0.9

LOCK = EVENT_KINDS.index("lock")  # events that wait for the owner of a lock: no I/O


@dataclass(frozen=True)
class LaneTimes:
    """Seconds per lane, disjoint: their sum is at most the wall time."""

    io: Floats
    waiting: Floats
    communication: Floats


class Times:
    """The time of a job, computed once: from events if they are complete (``exact``), otherwise
    from sums of counters, bounded by the wall time."""

    def __init__(self, job: Job) -> None:
        self.wall = max(float(job.wall), 1e-9)
        self.lanes: Lanes = find_lanes(job)
        self.scope: Scope = find_scope(job, self.lanes)
        self.job = self.scope.job
        self.storage = self.scope.storage
        self.cells = exclusive_seconds(self.job, self.storage)

    @property
    def divided(self) -> bool:
        """True if the time outside I/O and MPI is known to be computation or sleep."""
        return "cpu" in self.job.has

    @cached_property
    def exact(self) -> bool:
        """True if the events hold (nearly) all counted I/O time."""
        if "events" not in self.job.has:
            return False
        layer, duration = columns(self.job.events, self.io_events, "layer", "duration")
        records = self.job.records
        counted = self.cells.sum(axis=1)
        above, above_events = of_library(records["layer"]), of_library(layer)
        counted += np.where(above, inner_seconds(records), 0.0)
        # Calls of libraries contain others: each of the two has to be complete.
        return all(
            float(duration[of_events].sum()) >= ALMOST_ALL * float(counted[rows].sum())
            for of_events, rows in (
                (above_events, above),
                (~above_events, ~above),
            )
        )

    @cached_property
    def io_events(self) -> Ints:
        """Rows of the program's I/O events: no POSIX calls inside MPI-IO, and inside other MPI
        calls only those that complete non-blocking MPI-IO."""
        events, records = self.job.events, self.job.records
        if not len(events) or not len(self.job.files):
            return np.zeros(0, np.int64)
        outer = (events["flags"] & IN_MPI_IO) == 0
        own = outer & (self.lanes.of(events["process"]) >= 0)
        rows = np.flatnonzero((events["layer"] != COMMUNICATION) & own & (events["file"] >= 0))
        file = events["file"][rows]
        ending = np.zeros(len(self.job.files), bool)
        ending[records["file"][records["layer"] == MPIIO]] = True
        io = events["kind"][rows] != LOCK
        chosen = io & self.storage[file] & (((events["flags"][rows] & IN_MPI) == 0) | ending[file])
        return np.asarray(rows[chosen])

    @cached_property
    def lock_events(self) -> Ints:
        """Rows of the program's lock calls on storage."""
        events = self.job.events
        if not len(events) or not len(self.job.files):
            return np.zeros(0, np.int64)
        rows = np.flatnonzero(
            (events["kind"] == LOCK) & (events["file"] >= 0) & (events["layer"] != COMMUNICATION)
        )
        own = self.storage[events["file"][rows]] & (self.lanes.of(events["process"][rows]) >= 0)
        return np.asarray(rows[own])

    @cached_property
    def lock_seconds(self) -> Floats:
        """Seconds per record in lock calls on storage: waiting for others, not I/O."""
        records = self.job.records
        seconds = np.nan_to_num(np.asarray(records["lock_time"], np.float64))
        return np.where(self.storage[records["file"]], seconds, 0.0) if len(records) else seconds

    @cached_property
    def waits(self) -> Waits:
        """The calls that waited for another rank."""
        return find_waits(self.job, self.lanes)

    @cached_property
    def active_cells(self) -> Floats:
        """The cells without the waiting in collective MPI-IO calls."""
        return without_waiting(self.job, self.cells, self.waits)

    @cached_property
    def path(self) -> Path:
        """The critical path; without MPI the lane with most I/O from start to end."""
        if not self.lanes.mpi or not len(self.waits.lane):
            lane = int(np.argmax(self.lane_times.io)) if self.lanes.count else 0
            return Path(np.array([lane]), np.zeros(1), np.array([self.wall]))
        return critical_path(self.waits, self._last_lane(), self.wall)

    def _last_lane(self) -> int:
        processes = self.job.processes
        ranked = processes["rank"] >= 0
        ends = np.where(np.isnan(processes["mpi_end"]), processes["seen"], processes["mpi_end"])
        return int(processes["rank"][np.argmax(np.where(ranked, ends, -np.inf))])

    def intervals(self, rows: Ints) -> Intervals:
        """Return the time spans of events in their lanes; a row of several calls has the length of
        their summed durations."""
        process, start, length = columns(self.job.events, rows, "process", "start", "duration")
        lane = self.lanes.of(process)
        end = np.maximum(start + length, start)
        if lane.min(initial=0) >= 0:
            return Intervals(start, end, lane)
        kept = lane >= 0
        return Intervals(start[kept], end[kept], lane[kept])

    @cached_property
    def _sets(self) -> tuple[IntervalSet, ...]:
        talk_rows = np.flatnonzero(self.job.events["layer"] == COMMUNICATION)
        are_barriers = counted.find_barriers(self.job)
        barriers = talk_rows[are_barriers[self.job.events["function"][talk_rows]]]
        waiting = (
            self.waits.intervals() + self.intervals(barriers) + self.intervals(self.lock_events)
        )
        above = of_library(self.job.events["layer"][self.io_events])
        io = self.intervals(self.io_events[~above])
        talk = self.intervals(talk_rows)
        parts = [waiting, io, talk]
        if above.any():  # the rest of the calls of libraries is time inside it
            parts.append(self.intervals(self.io_events[above]))
        whole, sets = nothing(), [IntervalSet(nothing(), self.wall)]
        for part in parts:
            whole = whole + part
            sets.append(IntervalSet(whole, self.wall) if len(part) else sets[-1])
        return tuple(sets[1:])

    def between(self, lane: Ints, start: Floats, end: Floats) -> LaneTimes:
        """Return I/O, waiting and communication in intervals of lanes, from events."""
        waiting, io, talk, *library = (part.measure(lane, start, end) for part in self._sets)
        inside = library[0] - talk if library else 0.0
        return LaneTimes(io - waiting + inside, waiting, talk - io)

    @cached_property
    def lane_times(self) -> LaneTimes:
        """Totals per lane."""
        lanes = np.arange(self.lanes.count)
        if self.exact and "events" in self.job.has:
            return self.between(lanes, np.zeros(len(lanes)), np.full(len(lanes), self.wall))
        return self._counted_times()

    def _counted_times(self) -> LaneTimes:
        talk, barrier = counted.communication_seconds(self.job, self.lanes)
        waiting = barrier
        if len(self.waits.lane):
            waiting = sums(self.waits.lane, self.waits.seconds, self.lanes.count)
        lane = self.lanes.of(self.job.records["process"])
        waiting = waiting + sums(lane[lane >= 0], self.lock_seconds[lane >= 0], self.lanes.count)
        io = np.minimum(counted.io_seconds(self.job, self.lanes, self.cells), self.wall)
        waiting = np.minimum(waiting, self.wall - io)
        return LaneTimes(io, waiting, np.clip(talk - waiting, 0.0, self.wall - io - waiting))

    @cached_property
    def peer_seconds(self) -> Floats:
        """Seconds per lane of waiting for other processes or users: of a process in its busiest
        thread, of a lane only without a processor. 0 with MPI, whose library waits so inside its
        calls."""
        processes, times = self.job.processes, self.lane_times
        if self.lanes.mpi or not self.divided:
            return np.zeros(self.lanes.count)
        waits = counted.peer_seconds(self.job) + counted.stream_seconds(self.job)
        used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
        busy = times.io + times.waiting + times.communication + self.lanes.sum_processes(used)
        return np.clip(self.wall - busy, 0.0, self.lanes.sum_processes(waits))

    def split(self, lane: int) -> Split:
        """Return the split of the wall time of one lane."""
        times = self.lane_times
        return self._whole(
            float(times.io[lane]), float(times.waiting[lane]), float(times.communication[lane])
        )

    @cached_property
    def mean(self) -> Split:
        """The mean over lanes."""
        times = self.lane_times
        return self._whole(
            float(times.io.mean()), float(times.waiting.mean()), float(times.communication.mean())
        )

    @cached_property
    def critical(self) -> Split:
        """The split along the critical path; without events that of the lane with most I/O."""
        if not self.along_path:
            return self.split(self.slowest_lane)
        times = self._on_path
        return self._whole(
            float(times.io.sum()), float(times.waiting.sum()), float(times.communication.sum())
        )

    @property
    def path_known(self) -> bool:
        """True if the log shows meetings, so that the path can change ranks."""
        return self.lanes.mpi and len(self.waits.lane) > 0

    @cached_property
    def slowest_lane(self) -> int:
        """The lane with most I/O."""
        return int(np.argmax(self.lane_times.io))

    def _whole(self, io: float, waiting: float, communication: float) -> Split:
        rest = max(self.wall - io - waiting - communication, 0.0)
        return Split(rest, communication, waiting, io, self.divided)

    @property
    def along_path(self) -> bool:
        """True if seconds can be weighted by their part of the critical path."""
        return self.exact and self.path_known

    @cached_property
    def weights(self) -> Floats:
        """Per lane, the weight of a second of its I/O: the part that lies on the critical path, if
        that is known."""
        cells = sums(*self._cells_by_lane(), self.lanes.count)
        return _part(self._on_path.io if self.along_path else self.lane_times.io, cells)

    @cached_property
    def communication_weights(self) -> Floats:
        """Per lane, the part of its communication on the critical path."""
        return _part(self._on_path.communication, self.lane_times.communication)

    @cached_property
    def compute_weights(self) -> Floats:
        """Per lane, the part of its time outside I/O and MPI on the critical path."""
        on_path = sums(self.path.lane, self.path.end - self.path.start, self.lanes.count)
        return _part(_rest(on_path, self._on_path), _rest(self.wall, self.lane_times))

    @cached_property
    def _on_path(self) -> LaneTimes:
        times = self.between(self.path.lane, self.path.start, self.path.end)
        parts = (
            sums(self.path.lane, part, self.lanes.count)
            for part in (times.io, times.waiting, times.communication)
        )
        return LaneTimes(*parts)

    def _cells_by_lane(self) -> tuple[Ints, Floats]:
        lane = self.lanes.of(self.job.records["process"])
        kept = lane >= 0
        return lane[kept], self.active_cells.sum(axis=1)[kept]


def inner_seconds(records: Table) -> Floats:
    """Return, per record, the seconds of calls on files and of MPI inside the calls of a
    library."""
    times = (records[f"inner_{part}_time"] for part in ("read", "write", "other"))
    return np.nan_to_num(sum(times, np.zeros(len(records))))


def _rest(whole: Floats | float, times: LaneTimes) -> Floats:
    """Return the time of lanes that is neither I/O nor waiting nor communication."""
    return np.maximum(whole - times.io - times.waiting - times.communication, 0.0)


def _part(part: Floats, whole: Floats) -> Floats:
    return np.minimum(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0), 1.0)
