"""The files that exist before a replay begins, with their sizes: those that existed before the
run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.script import FileMade
from pario.see.tables.model import EVENT_KINDS, LAYERS, Job

_MPI_MODE_CREATE = 1  # in every MPI library
_OPEN, _READ = EVENT_KINDS.index("open"), EVENT_KINDS.index("read")
_FAILED = 1


def find_existing_files(
    job: Job, rows: NDArray[Any], paths: dict[int, int]
) -> tuple[list[FileMade], list[int]]:
    """The files to create, and the paths that are directories. ``rows``: the played events, in
    order of time; ``paths``: the number of the path of each row of ``job.files``.
    """
    events = job.events[rows]
    events = events[(events["flags"] & _FAILED) == 0]
    files, first = np.unique(events["file"], return_index=True)
    directories = {
        int(file) for file in job.records["file"][(job.records["kind"] & 0o170000) == stat.S_IFDIR]
    }
    made = list(_files(job, events, zip(files.tolist(), first.tolist(), strict=True), directories))
    return [FileMade(paths[file], size) for file, size in made], sorted(
        paths[file] for file in directories & paths.keys()
    )


def _files(
    job: Job, events: NDArray[Any], firsts: Iterable[tuple[int, int]], directories: set[int]
) -> Iterator[tuple[int, int]]:
    sizes = sizes_at_first(job)
    reads = events[events["kind"] == _READ]
    ends = np.zeros(len(job.files), np.int64)
    np.maximum.at(ends, reads["file"], reads["offset"] + reads["length"])
    for file, first in firsts:
        if file in directories:
            continue
        size = (
            sizes.get(file, 0)
            if job.format == "pario"
            else int(ends[file])
            if events["kind"][first] == _READ
            else 0
        )
        if size > 0 or not _creates(job, events[first]):
            yield file, size


def sizes_at_first(job: Job) -> dict[int, int]:
    """The size of each file at its first access by any process."""
    records = job.records
    moments = np.fmin.reduce(
        [records[name] for name in ("first_open", "first_read", "first_write")]
    )
    order = np.argsort(np.nan_to_num(moments, nan=np.inf), kind="stable")
    return {
        int(file): int(size)
        for file, size in zip(
            records["file"][order[::-1]], records["size_at_open"][order[::-1]], strict=True
        )
    }


def _creates(job: Job, event: Any) -> bool:
    """True if the first call on a file may have created it."""
    if event["kind"] != _OPEN:
        return job.format == "darshan"
    mpiio = event["layer"] == LAYERS.index("mpiio")
    return bool(event["offset"] & (_MPI_MODE_CREATE if mpiio else os.O_CREAT))
