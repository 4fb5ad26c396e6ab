"""Stripes for the files of a recorded run: their expected sizes and users, and the choice by a kept
sweep of their file system, otherwise by the table in src/core/layout/policy.def."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from pario import wording
from pario.see.analyze.scope import KERNEL_PLACES
from pario.see.analyze.sweeps import Sweep, find
from pario.see.tables.model import Job

#: The least size of a file that the job only reads: the log does not show its writer.
LARGE_INPUT = 256 << 20


@dataclass(frozen=True)
class Expected:
    """The expected properties of a file before it is created."""

    size: int
    writers: int = 1  # processes that use it at the same time
    ranks: int = 0  # of the job; 0: as many as writers
    targets: int = 0  # of the file system; 0: not known
    files: int = 1  # such files in use at the same time
    mount: tuple[str, str] = ("", "")  # type and mount point of the file system; empty: not known
    stripes: int = 1  # that it has now


@dataclass(frozen=True)
class Choice:
    """The chosen stripe count and stripe size, and the reason."""

    count: int
    unit: int
    rule: str
    reason: str
    saves: float | None = None  # share of the seconds with its stripes, if a sweep measured it


def choose(expected: Expected, sweeps: Iterable[Sweep] = ()) -> Choice:
    """Choose as a sweep of the same file system with similar files found best; without one, apply
    the first row of the table that fits."""
    from pario import _native

    if expected.files == 1 and (
        sweep := find(
            sweeps, expected.mount, expected.targets, expected.size, max(expected.writers, 1)
        )
    ):
        return _choose_best(sweep, expected.stripes)

    most = 2**32 - 1
    numbers = (
        min(number, most)
        for number in (expected.writers, expected.ranks, expected.targets, expected.files)
    )
    return Choice(*_native.choose_stripes(expected.size, *numbers))


def _choose_best(sweep: Sweep, stripes: int) -> Choice:
    best, slowest = sweep.best, sweep.slowest
    reason = (
        f"pario stripe sweep measured it on {wording.date(sweep.when)} ({sweep.pattern}):"
        f" {wording.seconds(best.total)}"
    )
    if slowest != best:
        reason += (
            f", with {wording.plural(slowest.count, 'stripe')} of {wording.block(slowest.unit)}"
            f" {wording.seconds(slowest.total)}"
        )
    return Choice(best.count, best.unit, "sweep", reason, sweep.find_share_saved(stripes))


def files_of(job: Job, targets: int) -> Iterator[tuple[int, Expected]]:
    """Yield rows of ``job.files`` that the job wrote, and large ones that it read, with the
    expected properties of the next such file."""
    records = job.records[job.records["file"] >= 0]
    size = _largest(
        records["file"],
        np.max([records[name] for name in ("end_written", "end_read", "size_at_open")], axis=0),
        len(job.files),
    )
    writers, readers = (
        _users(records[records[name] > 0], len(job.files))
        for name in ("bytes_written", "bytes_read")
    )
    wanted = (writers > 0) | ((readers > 0) & (size >= LARGE_INPUT))
    wanted &= (job.files["stream"] == 0) & (job.files["folded"] == 0) & (size > 0)
    for file in map(int, np.flatnonzero(wanted)):
        wanted[file] = not job.path(file).startswith(KERNEL_PLACES)
    users = np.maximum(writers, readers)
    alone = Counter(_directory(job, int(file)) for file in np.flatnonzero(wanted & (users == 1)))
    for file in map(int, np.flatnonzero(wanted)):
        together = min(alone[_directory(job, file)], job.ranks) if users[file] == 1 else 1
        yield (
            file,
            Expected(
                int(size[file]),
                int(users[file]),
                job.ranks,
                targets,
                max(together, 1),
                _mount(job, file),
            ),
        )


def _mount(job: Job, file: int) -> tuple[str, str]:
    number = int(job.files["filesystem"][file])
    row = job.filesystems[number] if number >= 0 else None
    return ("", "") if row is None else (str(row["type"]), str(row["mount"]))


def _directory(job: Job, file: int) -> str:
    return str(PurePath(job.path(file)).parent)


def _largest(file: np.ndarray, value: np.ndarray, files: int) -> np.ndarray:
    out = np.zeros(files, np.int64)
    np.maximum.at(out, file, value)
    return out


def _users(rows: np.ndarray, files: int) -> np.ndarray:
    """Return the number of processes per file; a row that sums up processes counts all of them."""
    out = np.zeros(files, np.int64)
    single = rows[rows["process"] >= 0]
    pairs = (
        np.unique(np.stack([single["file"], single["process"]]), axis=1)
        if len(single)
        else np.zeros((2, 0), np.int64)
    )
    np.add.at(out, pairs[0], 1)
    summed = rows[rows["process"] < 0]
    np.maximum.at(out, summed["file"], summed["ranks"])
    return out
