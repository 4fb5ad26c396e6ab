"""The traced calls beside the kernel's counters: the part of a run's I/O that pario does not see,
and the time in which processes waited for a processor.

A difference alone proves nothing about storage: caches serve reads, and read-ahead and write-back
move more bytes than calls do. Bytes of calls must agree. Storage without calls is claimed only
where a mechanism explains it: rings, AIO contexts, major faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import numpy as np

from pario import wording
from pario.see.analyze import accounts
from pario.see.analyze.arrays import Floats, Mask, ratio, sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import KernelTotals, Unattributed

#: The verdict names unseen I/O from this part of the bytes, calls or time on ...
UNSEEN = 0.05
#: ... and from these amounts on.
LEAST_BYTES, LEAST_CALLS, LEAST_SECONDS = 4e6, 10_000, 0.05
LEAST_REQUESTS = 100  # of a ring, whose bytes only storage shows
#: Fewer unseen calls are named if they are most calls of the run and its processes waited: calls
#: that are not counted, such as fsync, may have been made beside them.
MOST_CALLS = 0.5
#: Page faults of programs and libraries at their start are not worth a word.
LEAST_FAULTS, SHORT_RUN = 16, 1.0
#: Less storage without calls and without a mechanism may be directories and inodes.
LEAST_STORAGE = 8e6
#: The verdict names waiting for processors from this part of the run on.
QUEUED = 0.1
_NS = 1e-9
_NAMED = 3  # programs that cannot be followed

RINGS, CONTEXTS = "io_uring", "Linux AIO (libaio)"
FAULTS = "page faults of mapped files"
STORAGE = "ways that pario does not see (such as io_uring, Linux AIO or mapped files)"
CHILDREN = "programs that pario cannot follow"
CALLS = (
    "calls that pario does not see (made inside libraries, as by getpwuid, or system calls that"
    " the program makes itself)"
)


def kernel_totals(facts: Facts) -> KernelTotals | None:
    """Return the kernel's counters beside the traced ones; None if the log has none."""
    own = facts.lanes.of_process >= 0
    if not accounts.is_known(facts.job, own):
        return None
    return _Reconciliation(facts, own).totals()


def unexplained_seconds(facts: Facts) -> Floats:
    """Return, per lane, the seconds outside of user code, traced calls and processor queues: page
    faults, and other work of the kernel. NaN in lanes with threads, whose times overlap, and
    without processor times."""
    if not facts.times.divided:
        return np.full(facts.ranks, np.nan)
    return _Reconciliation(facts, facts.lanes.of_process >= 0).rest_of_single_threads


def queued_io_seconds(facts: Facts) -> Floats:
    """Return, per lane, the seconds of its I/O in which it probably waited for a processor: waiting
    is divided between the calls and the program's own code as their processor time is. 0 where it
    is not known."""
    own = facts.lanes.of_process >= 0
    if not facts.times.divided:
        return np.zeros(facts.ranks)
    return _Reconciliation(facts, own).queued_io


def queue_shares(facts: Facts) -> Floats:
    """Return, per lane, the part of its life in which it waited for a processor. 0 where it is not
    known."""
    if not facts.times.divided:
        return np.zeros(facts.ranks)
    return _Reconciliation(facts, facts.lanes.of_process >= 0).queue_shares


def unseen_sentence(totals: KernelTotals | None) -> str:
    """Return the sentence that leads the verdict; empty if pario saw (nearly) all I/O."""
    return " ".join(map(_sentence, totals.unattributed)) if totals else ""


def _sentence(part: Unattributed) -> str:
    seconds = f" and up to {wording.seconds(part.seconds)}" if part.seconds >= 0.01 else ""
    ring = part.mechanism == RINGS
    amount = wording.plural(part.calls, "request" if ring else "call")
    if part.bytes:
        moved = wording.size(part.bytes)
        amount = f"{amount} (at least {moved})" if ring and part.calls else moved
    return (
        f"{amount}{seconds} of this run's I/O went through {part.mechanism}, which pario cannot"
        " attribute to files."
    )


def _is_large(part: Unattributed, moved: int, calls: int) -> bool:
    """True if a part has many of the unseen bytes, or many of the calls if no bytes are
    known."""
    if part.bytes:
        return part.bytes >= UNSEEN * moved
    return part.calls >= UNSEEN * calls and (not moved or part.mechanism == RINGS)


def queue_sentence(totals: KernelTotals | None) -> str:
    """Return a sentence on the time in which processes waited for a processor; empty if that is
    short."""
    if totals is None or totals.run_queue_share < QUEUED:
        return ""
    busy = wording.plural(totals.busy, "busy thread")
    processors = wording.plural(totals.processors, "processor")
    beside = "" if totals.busy > totals.processors else ", beside other programs"
    return (
        f"{wording.share(totals.run_queue_share)} of the run the processes waited for a processor:"
        f" {busy} on {processors}{beside}."
    )


@dataclass
class _Reconciliation:
    """The comparison of one job; arrays have a value per row of ``Job.processes``."""

    facts: Facts
    own: Mask

    def totals(self) -> KernelTotals:
        """Return the result."""
        processes, read, written = self.facts.job.processes, self._read, self._written

        def total(values: Floats) -> int:
            return int(values[self.own].sum())

        return KernelTotals(
            read=total(read.kernel),
            written=total(written.kernel),
            read_accounted=total(read.accounted),
            written_accounted=total(written.accounted),
            storage_read=total(read.storage),
            storage_written=total(written.storage),
            major_faults=total(processes["major_faults"]),
            block_io_seconds=self._sum_known("block_io_delay"),
            run_queue_seconds=self._sum_known("run_queue_delay"),
            run_queue_share=self._run_queue_share(),
            busy=self._count_busy(),
            processors=int(processes["processors"][self.own].max(initial=0)),
            unattributed=tuple(self._find_unattributed()),
        )

    @cached_property
    def _read(self) -> accounts.Direction:
        return accounts.reading(self.facts.job)

    @cached_property
    def _written(self) -> accounts.Direction:
        return accounts.writing(self.facts.job)

    def _sum_known(self, name: str) -> float | None:
        values = self.facts.job.processes[name][self.own]
        return None if (values < 0).any() else float(values.sum()) * _NS

    # --- unseen I/O

    def _find_unattributed(self) -> Iterator[Unattributed]:
        parts = [part for part in self._parts() if part.bytes or part.calls]
        moved = sum(part.bytes for part in parts)
        calls = sum(part.calls for part in parts)
        if self._is_much(moved, calls):
            for part in sorted(parts, key=lambda part: -part.bytes):
                if _is_large(part, moved, calls):
                    yield part

    def _is_much(self, moved: int, calls: int) -> bool:
        directions = (self._read, self._written)
        whole = sum(float((d.kernel + d.beside)[self.own].sum()) for d in directions)
        unseen_storage = sum(float(d.unseen_storage[self.own].sum()) for d in directions)
        every = sum(float(d.kernel_calls[self.own].sum()) for d in directions)
        much = moved > max(LEAST_BYTES, UNSEEN * (whole + unseen_storage))
        requests = float(self._ring_requests[self.own].sum())
        return (
            much
            or calls > max(LEAST_CALLS, UNSEEN * every)
            or requests >= max(LEAST_REQUESTS, UNSEEN * every)
            or self._waits_beside_unseen(every)
        )

    def _waits_beside_unseen(self, every: float) -> bool:
        """True if the processes made most of their calls themselves, and waited for something: for
        a device, after which a process waits for a processor, too."""
        alone = self._sure & ~self._with_untraced_children
        calls = float((self._read.unseen_calls + self._written.unseen_calls)[alone].sum())
        waited = float((self._waited_seconds + self._queued).max(initial=0.0))
        return calls >= max(LEAST_REQUESTS, MOST_CALLS * every) and waited >= max(
            LEAST_SECONDS, UNSEEN * self.facts.wall
        )

    @property
    def _sure(self) -> Mask:
        """Characters through the streams of popen are not counted."""
        return np.asarray(self.own & ~accounts.find_callers(self.facts.job, "popen"))

    @cached_property
    def _ring_requests(self) -> Floats:
        return self._fact("uring_unattributed")

    def _parts(self) -> Iterator[Unattributed]:
        """Yield the unseen I/O by mechanism."""
        storage = self._read.unseen_storage + self._written.unseen_storage
        rings, contexts = (self._fact(name) for name in ("uring_rings", "aio_contexts"))
        faults = self.facts.job.processes["major_faults"] >= LEAST_FAULTS
        maps = accounts.mapped_by_program(self.facts.job) >= 0.5 * storage
        with_rings = self.own & (rings > 0) & ((storage > 0) | (self._ring_requests > 0))
        yield self._part(RINGS, with_rings, storage, self._ring_requests)
        left = self.own & (storage > 0) & ~with_rings
        for mechanism, mask in (
            (CONTEXTS, contexts > 0),
            (FAULTS, maps | (faults & self._may_be_faults())),
        ):
            yield self._part(mechanism, left & mask, storage, np.zeros(len(storage)))
            left &= ~mask
        left &= ~faults & (storage >= LEAST_STORAGE)
        yield self._part(STORAGE, left, storage, np.zeros(len(storage)))
        moved = self._read.unseen + self._written.unseen
        calls = self._read.unseen_calls + self._written.unseen_calls
        children = self._with_untraced_children
        yield self._part(self._name_children(), self._sure & children, moved, calls)
        yield self._part(CALLS, self._sure & ~children, moved, calls)

    @cached_property
    def _with_untraced_children(self) -> Mask:
        """True for processes that started programs which pario cannot follow: by exec in a child,
        too."""
        processes = self.facts.job.processes
        found = np.zeros(len(processes), bool)
        rows = [part.process for part in self.facts.job.unseen if part.process >= 0]
        found[rows] = True
        for row in processes[rows][processes["end_kind"][rows] == accounts.EXEC]:
            found |= (processes["pid"] == row["parent"]) & (processes["host"] == row["host"])
        return found

    def _name_children(self) -> str:
        """Return the words for programs that pario cannot follow, with some names."""
        programs = (part.program for part in self.facts.job.unseen if part.process >= 0)
        names = list(dict.fromkeys(PurePath(program).name for program in programs if program))
        more = ", ..." if len(names) > _NAMED else ""
        return f"{CHILDREN} ({', '.join(names[:_NAMED])}{more})" if names else CHILDREN

    def _part(self, mechanism: str, mask: Mask, moved: Floats, calls: Floats) -> Unattributed:
        lanes = np.unique(self.facts.lanes.of_process[mask & (moved > 0)])
        seconds = float(self._unexplained_seconds[lanes].max(initial=0.0))
        return Unattributed(
            mechanism, int(moved[mask].sum()), int(calls[mask].sum()), round(seconds, 6)
        )

    def _fact(self, name: str) -> Floats:
        """Return a column of the processes; zeros in logs without it."""
        processes = self.facts.job.processes
        known = name in (processes.dtype.names or ())
        return np.asarray(processes[name] if known else np.zeros(len(processes)), np.float64)

    def _may_be_faults(self) -> Mask:
        """True for processes in lanes whose unexplained time can be that of page faults."""
        wall = self.facts.wall
        least = max(LEAST_SECONDS, UNSEEN * wall) if wall >= SHORT_RUN else wall
        return np.asarray(self._waited_seconds[self.facts.lanes.of_process] >= least)

    # --- time, by lane

    def _by_lane(self, values: Floats) -> Floats:
        return self.facts.lanes.sum_processes(values)

    @cached_property
    def _lived(self) -> Floats:
        return np.minimum(self._by_lane(accounts.image_seconds(self.facts.job)), self.facts.wall)

    @cached_property
    def _explained_seconds(self) -> Floats:
        """Seconds in user code, in traced calls, and on the run queue."""
        times, processes = self.facts.times.lane_times, self.facts.job.processes
        user = self._by_lane(np.nan_to_num(processes["cpu_user"]))
        return user + times.io + times.waiting + times.communication + self._queued

    @property
    def _unexplained_seconds(self) -> Floats:
        """Most seconds of untraced I/O; 0 in lanes with threads, whose times overlap."""
        return np.nan_to_num(self.rest_of_single_threads)

    @cached_property
    def rest_of_single_threads(self) -> Floats:
        """Seconds that nothing explains; NaN in lanes with threads."""
        rest = np.maximum(self._lived - self._explained_seconds, 0.0)
        threads = self._by_lane((self.facts.job.processes["threads"] > 1).astype(float))
        return np.where(threads > 0, np.nan, rest)

    @cached_property
    def _waited_seconds(self) -> Floats:
        """Most seconds of waiting for devices outside of traced calls."""
        processes = self.facts.job.processes
        if self._sum_known("block_io_delay") is not None:
            delay = self._by_lane(processes["block_io_delay"] * _NS)
            return np.maximum(delay - self.facts.times.lane_times.io, 0.0)
        system = self._by_lane(np.nan_to_num(processes["cpu_system"]))
        return np.maximum(self._lived - self._explained_seconds - system, 0.0)

    @cached_property
    def _runnable(self) -> Floats:
        """Seconds in which the threads ran or could have run."""
        processes = self.facts.job.processes
        used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
        return self._by_lane(used + self._delay)

    @cached_property
    def _delay(self) -> Floats:
        return np.asarray(np.maximum(self.facts.job.processes["run_queue_delay"], 0) * _NS)

    @cached_property
    def _queued(self) -> Floats:
        """Seconds on the run queue of the mean busy thread."""
        threads = np.maximum(self._runnable / np.maximum(self._lived, 1e-9), 1.0)
        return np.minimum(self._by_lane(self._delay) / threads, self._lived)

    @cached_property
    def queued_io(self) -> Floats:
        """Seconds of I/O on the run queue."""
        processes, io = self.facts.job.processes, self.facts.times.lane_times.io
        user, system = (
            self._by_lane(np.nan_to_num(processes[f"cpu_{part}"])) for part in ("user", "system")
        )
        used = np.maximum(user + system, 1e-9)
        # Streams copy and format bytes in user code.
        rows = self.facts.stdio & (self.facts.lane >= 0)
        streams = sums(self.facts.lane[rows], self.facts.cells[rows].sum(axis=1), self.facts.ranks)
        of_io = np.minimum(np.minimum(system + streams, used), io)
        return np.minimum(self._queued * of_io / used, io)

    @property
    def queue_shares(self) -> Floats:
        """Parts of the lives of lanes on the run queue."""
        return ratio(self._queued, self._lived)

    def _run_queue_share(self) -> float:
        return float(self._queued.max(initial=0.0)) / self.facts.wall

    def _count_busy(self) -> int:
        """Return the mean number of runnable threads of the run."""
        return max(round(float(self._runnable.sum()) / self.facts.wall), 1)
