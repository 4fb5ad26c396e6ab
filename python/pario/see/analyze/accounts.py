"""The bytes and calls of each process by the kernel and by the tracer: pure sums over the tables.

The kernel adds the counters of a child to those of the parent that waits for it, and keeps them
across exec. Bytes through splice, io_uring and Linux AIO are only in the storage counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pario.see.analyze.arrays import Floats, Mask, sums
from pario.see.tables.model import LAYERS, Job

EXEC = 3  # end_kind
#: Functions whose bytes the kernel does not count as those of read and write calls.
BESIDE_READ = ("splice_source", "libaio_read", "io_uring_read")
BESIDE_WRITTEN = ("splice", "libaio_write", "io_uring_write")
#: The largest read-ahead of a page cache that is not tuned.
READ_AHEAD = 128 << 10
PAGE = 4096
UNSEEN_BYTES = 0.01  # of the bytes of calls: fewer are as good as none
#: Reads of the kernel's counters at the end of a process, and most of their bytes.
LAST_READS, LAST_BYTES = 4, 256
MANY_MAPS = 100  # mappings of a file by a process: each lives for a short time
#: Pages of the log that the kernel may write again every few seconds, per thread.
LOG_PAGES, WRITE_BACK_SECONDS = 1 << 19, 5.0

_POSIX, _STDIO = LAYERS.index("posix"), LAYERS.index("stdio")


def find_callers(job: Job, function: str) -> Mask:
    """Return, per row of ``Job.processes``, True if the process called a function."""
    return _Tables(job).of_functions("calls", (function,)) > 0


@dataclass(frozen=True)
class Direction:
    """Amounts of one direction, per row of ``Job.processes``."""

    kernel: Floats  # bytes of calls by the kernel, without the tracer's own
    accounted: Floats  # bytes of these calls that the tables or the tracer explain
    kernel_calls: Floats
    accounted_calls: Floats
    beside: Floats  # traced bytes that the kernel counts as storage only
    storage: Floats  # bytes from or to storage by the kernel
    explained_storage: Floats  # bytes of calls, of traced requests and of mappings
    tolerance: Floats  # most further bytes of storage, by read-ahead and whole pages

    @property
    def unseen(self) -> Floats:
        """Bytes of calls that no table explains."""
        return np.maximum(self.kernel - self.accounted, 0.0)

    @property
    def unseen_calls(self) -> Floats:
        """Calls that no table explains. Where all bytes are explained, there are none: a stream
        without a buffer makes several calls beneath one of stdio, each of which moves a byte."""
        calls = np.maximum(self.kernel_calls - self.accounted_calls, 0.0)
        split = (self.unseen <= UNSEEN_BYTES * self.kernel) & (calls <= self.kernel)
        return np.where(split, 0.0, calls)

    @property
    def unseen_storage(self) -> Floats:
        """Bytes of storage that no call explains; 0 within the tolerance."""
        left = self.storage - self.explained_storage
        return np.where(left > self.tolerance, left, 0.0)


def is_known(job: Job, own: Any) -> bool:
    """Return True if the log has the kernel's counters of the processes ``own``."""
    known = job.processes["kernel_read"][own] >= 0
    return bool(len(known)) and bool(known.all())


def reading(job: Job) -> Direction:
    """Return the amounts of reads. Needs the kernel's counters."""
    tables = _Tables(job)
    rows = _column(job, "reads") - _column(job, "consecutive_reads") + _column(job, "opens")
    ahead = READ_AHEAD * tables.of_records(rows)
    return _direction(
        tables, ("kernel_read", "syscalls_read", "bytes_read", "reads"), BESIDE_READ, ahead
    )


def writing(job: Job) -> Direction:
    """Return the amounts of writes. Needs the kernel's counters."""
    tables = _Tables(job)
    alone = ("opens", "closes", "others", "truncates", "syncs", "writes")
    calls = sum((_column(job, name) for name in alone), np.zeros(len(job.records)))
    pages = 2 * PAGE * tables.of_records(calls - _column(job, "consecutive_writes"))
    times = 1 + job.wall / WRITE_BACK_SECONDS
    log = LOG_PAGES * (1 + job.processes["threads"] * times) + job.processes["event_bytes"]
    return _direction(
        tables,
        ("kernel_written", "syscalls_write", "bytes_written", "writes"),
        BESIDE_WRITTEN,
        pages + log,
    )


def mapped_by_program(job: Job) -> Floats:
    """Return the bytes that each process has mapped by calls of its own, not of the loader."""
    return _Tables(job).of_records(_column(job, "bytes_mapped"))


def _direction(
    tables: _Tables, names: tuple[str, str, str, str], beside: tuple[str, ...], tolerance: Floats
) -> Direction:
    kernel, calls, moved, count = names
    processes = tables.job.processes
    verb = kernel.removeprefix("kernel_")
    outside = [processes[f"{who}_bytes_{verb}"].astype(float) for who in ("untraced", "tracer")]
    outside_calls = [processes[f"{who}_{count}"].astype(float) for who in ("untraced", "tracer")]
    aside, aside_calls = tables.of_functions("bytes", beside), tables.of_functions("calls", beside)
    seen = tables.bytes_of_calls(moved) - aside + outside[0]
    seen_calls = tables.calls(count) - aside_calls + outside_calls[0]
    by_kernel = np.maximum(tables.without_children(kernel, seen) - outside[1], 0.0)
    storage = np.maximum(processes[f"storage_{'read' if verb == 'read' else 'write'}"], 0)
    return Direction(
        kernel=by_kernel,
        accounted=np.minimum(seen, by_kernel),
        kernel_calls=tables.without_children(calls, seen_calls) - outside_calls[1],
        accounted_calls=seen_calls,
        beside=aside,
        storage=storage.astype(float),
        explained_storage=by_kernel + aside + _sum_mapped(tables),
        tolerance=tolerance,
    )


def _column(job: Job, name: str) -> Floats:
    return np.asarray(job.records[name], np.float64)


def _sum_mapped(tables: _Tables) -> Floats:
    """Return the bytes of mappings that are attributed to files: those seen resident, and all of
    short-lived mappings, which end before they are looked at."""
    job = tables.job
    resident, mapped = _column(job, "bytes_resident"), _column(job, "bytes_mapped")
    brief = _column(job, "maps") >= MANY_MAPS
    return tables.of_records(np.where(brief, np.maximum(resident, mapped), resident))


class _Tables:
    """The tables of a job, summed by process."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._count = len(job.processes)

    def of_records(self, values: Floats) -> Floats:
        """Return sums over the rows of files."""
        rows = self.job.records["process"] >= 0
        return sums(self.job.records["process"][rows], values[rows], self._count)

    def of_functions(self, column: str, names: tuple[str, ...]) -> Floats:
        """Return sums over the rows of some functions."""
        functions = self.job.functions
        rows = functions[self.job.select_functions(names.__contains__)[functions["name"]]]
        return sums(rows["process"], rows[column], self._count)

    def bytes_of_calls(self, name: str) -> Floats:
        """Return the bytes of the system calls beneath the traced calls of POSIX and stdio."""
        records, layer = self.job.records, self.job.records["layer"]
        moved = np.where(layer <= _STDIO, _column(self.job, name), 0.0)
        verb = "read" if name == "bytes_read" else "write"
        moved += _column(self.job, f"system_{verb}_bytes") - _column(
            self.job, f"buffered_{verb}_bytes"
        )
        if verb == "read":  # each change of position reads a buffer again
            refills = sum(
                (2 * records["seeks"], records["opens"], records["flushes"], records["switches"]),
                np.zeros(len(records)),
            )
            moved += np.where(
                layer == _STDIO, refills * np.maximum(records["buffer_size"], PAGE), 0
            )
        return self.of_records(moved)

    def calls(self, name: str) -> Floats:
        """Return the most system calls beneath the traced calls of POSIX and stdio."""
        records = self.job.records
        layer = records["layer"]
        calls = np.where(layer <= _STDIO, _column(self.job, name), 0.0)
        calls += _column(self.job, f"system_{name}")
        others = sum((records[n] for n in ("seeks", "opens", "closes", "flushes", "failed")), 0)
        return self.of_records(calls + np.where(layer <= _STDIO, others, 0))

    def without_children(self, name: str, seen: Floats) -> Floats:
        """Return a counter of /proc/PID/io since the tracer's start, without the children that the
        process has waited for. ``seen``: the traced part of it."""
        processes = self.job.processes
        total, before = (processes[n].astype(float) for n in (name, f"{name}_before"))
        own, late = total - before, self._last_reads(name)
        for first, last in self._chains():
            parent = self._waiting_parent(first, last)
            if parent >= 0:
                own[parent] -= max(total[last], before[last] + seen[last]) + late[last]
        return np.asarray(np.maximum(own, 0.0))

    def _last_reads(self, name: str) -> Floats:
        """Return the tracer's reads at the end of each process that its own counter lacks, because
        they are those of this counter; only its parent's has them."""
        counts = {"kernel_read": ("tracer_bytes_read", LAST_BYTES)}
        counts["syscalls_read"] = "tracer_reads", LAST_READS
        tracer, most = counts.get(name, ("tracer_writes", 0))
        return np.asarray(np.minimum(self.job.processes[tracer], most), np.float64)

    def _chains(self) -> list[tuple[int, int]]:
        """Return the first and the last image of each process."""
        processes, chains = self.job.processes, []
        first = previous = -1
        for row in np.lexsort((processes["start"], processes["pid"], processes["host"])).tolist():
            if previous < 0 or not _continues(processes[previous], processes[row]):
                if previous >= 0:
                    chains.append((first, previous))
                first = row
            previous = row
        return [*chains, (first, previous)] if previous >= 0 else chains

    def _waiting_parent(self, first: int, last: int) -> int:
        """Return the image that has probably waited for a process: that of its parent, or one with
        untraced children, of which its parent may be one. -1: none."""
        child, ended = self.job.processes[first], self._ends[last]
        starts = self.job.processes["start"]
        images = self._images.get((int(child["host"]), int(child["parent"])))
        if images is None:
            images = [row for row in self._with_untraced_children if starts[row] <= child["start"]]
        lived = (row for row in images if row != last and starts[row] <= ended <= self._ends[row])
        return next(lived, -1)

    @cached_property
    def _ends(self) -> Floats:
        ends = self.job.processes["end"]
        return np.asarray(np.where(np.isnan(ends), self.job.processes["seen"], ends))

    @cached_property
    def _with_untraced_children(self) -> list[int]:
        return [part.process for part in self.job.unseen if part.process >= 0]

    @cached_property
    def _images(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for row, image in enumerate(self.job.processes):
            found.setdefault((int(image["host"]), int(image["pid"])), []).append(row)
        return found


def _continues(before: Any, image: Any) -> bool:
    """Return True if an image follows another one in the same process."""
    same = before["host"] == image["host"] and before["pid"] == image["pid"]
    return bool(same and before["end_kind"] == EXEC)


def image_seconds(job: Job) -> Floats:
    """Return the seconds that each image lived."""
    processes = job.processes
    ends = np.where(np.isnan(processes["end"]), processes["seen"], processes["end"])
    return np.asarray(np.maximum(ends - processes["start"], 0.0))
