"""The files that exist before a replay begins, with their sizes: those that existed before the
run."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.script import FileMade
from pario.see.analyze.rules.repairs import MOST_KEPT
from pario.see.tables.model import EVENT_KINDS, IN_VIEW, LAYERS, Job

_OF_DIRECTORIES = re.compile(r"mkdir(at)?|mkdtemp|rmdir")
_POSIX = LAYERS.index("posix")
_MPI_MODE_CREATE = 1  # in every MPI library
_OPEN, _READ = EVENT_KINDS.index("open"), EVENT_KINDS.index("read")
_FAILED = 1
_WRITE = EVENT_KINDS.index("write")
#: Kinds of calls that move bytes whose place in the file events do not tell.
_UNKNOWN_RANGES = tuple(EVENT_KINDS.index(kind) for kind in ("map", "async"))
#: Files up to this size, which pario may keep whole in memory, exist as a whole; of larger ones the
#: touched blocks.
LARGE, BLOCK = MOST_KEPT, 8 << 20


def find_existing_files(
    job: Job, rows: NDArray[Any], paths: dict[int, int]
) -> tuple[list[FileMade], list[int]]:
    """The files to create, and the paths that are directories. ``rows``: the played events, in
    order of time; ``paths``: the number of the path of each row of ``job.files``.
    """
    events = job.events[rows]
    events = events[(events["flags"] & _FAILED) == 0]
    files, first = np.unique(events["file"], return_index=True)
    directories = find_directories(job)
    made = list(_files(job, events, zip(files.tolist(), first.tolist(), strict=True), directories))
    return [FileMade(paths[file], size, find_pieces(events, file, size)) for file, size in made], (
        sorted(paths[file] for file in directories & paths.keys())
    )


def find_directories(job: Job) -> set[int]:
    """The rows of ``job.files`` that are directories: by their type, by calls that make or remove
    directories or open a file without a name there, or because other paths lie below them."""
    events, records = job.events, job.records
    unnamed = (events["kind"] == _OPEN) & ((events["offset"] & os.O_TMPFILE) == os.O_TMPFILE)
    named = job.select_functions(_OF_DIRECTORIES.fullmatch)[events["function"]]
    known = events["file"][(events["layer"] == _POSIX) & (events["file"] >= 0) & (unnamed | named)]
    typed = records["file"][(records["kind"] & 0o170000) == stat.S_IFDIR]
    above = set[str]()
    for path in job.paths:
        while (path := path.rpartition("/")[0]) and path not in above:
            above.add(path)
    rows = (number for number, path in enumerate(job.files["path"]) if job.paths[path] in above)
    return {*map(int, known), *map(int, typed), *rows}


def find_pieces(events: NDArray[Any], file: int, size: int) -> tuple[tuple[int, int], ...] | None:
    """The blocks of a large file that the played calls read or write, each with the next one, for
    reading ahead. None: all of it, because it is small enough for any buffer, or because the log
    does not tell the ranges."""
    if size <= LARGE:
        return None
    own = events[events["file"] == file]
    moved = own[np.isin(own["kind"], (_READ, _WRITE))]
    unknown = (moved["offset"] < 0) | (moved["count"] > 1) | ((moved["flags"] & IN_VIEW) != 0)
    library = moved["layer"] == LAYERS.index("mpiio")  # it may read between the ranges
    if (unknown | library).any() or np.isin(own["kind"], _UNKNOWN_RANGES).any():
        return None
    moved = moved[moved["length"] > 0]
    touched = np.zeros(-(-size // BLOCK) + 2, np.int64)
    blocks = len(touched) - 1
    np.add.at(touched, np.minimum(moved["offset"] // BLOCK, blocks), 1)
    ends = (moved["offset"] + moved["length"] - 1) // BLOCK + 2
    np.add.at(touched, np.minimum(ends, blocks), -1)
    edges = np.flatnonzero(np.diff(np.append(0, np.cumsum(touched)) > 0, append=False))
    pairs = edges.reshape(-1, 2) * BLOCK
    return tuple((int(a), min(int(b), size)) for a, b in pairs if a < size)


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
    """The size of each file at its first access by any process. Ranks open a file together, but one
    that asks late for its size may see bytes that others wrote meanwhile: the least size counts."""
    records = job.records
    moments = np.fmin.reduce(
        [records[name] for name in ("first_open", "first_read", "first_write")]
    )
    order = np.argsort(np.nan_to_num(moments, nan=np.inf), kind="stable")[::-1]
    found = dict(
        zip(records["file"][order].tolist(), records["size_at_open"][order].tolist(), strict=True)
    )
    for row in records[records["layer"] == LAYERS.index("mpiio")]:
        found[int(row["file"])] = min(found[int(row["file"])], int(row["size_at_open"]))
    return found


def _creates(job: Job, event: Any) -> bool:
    """True if the first call on a file may have created it."""
    if event["kind"] != _OPEN:
        return job.format == "darshan"
    mpiio = event["layer"] == LAYERS.index("mpiio")
    return bool(event["offset"] & (_MPI_MODE_CREATE if mpiio else os.O_CREAT))
