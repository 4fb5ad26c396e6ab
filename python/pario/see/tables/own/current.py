"""The calls that threads had not finished: of processes that run, hang or were killed."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import COLLECTIVE, LAYERS, CurrentCall, Job
from pario.see.tables.own.blocks import Block
from pario.see.tables.own.schema import UNKNOWN, Function
from pario.see.tables.own.view import View

#: A row of a thread block, directly before its event tail.
_ROW = np.dtype(
    [
        *((name, "<u8") for name in ("start", "offset", "length")),
        *(("file", "<u4"), ("function", "<u2"), ("flags", "u1"), ("unused", "u1")),
        ("path", "S224"),
    ]
)
_NAMED = 128  # flag: the row has a path
_UNKNOWN = 2**64 - 1
_STAT_SECONDS = 0.5  # a file system may hang


def add_current(
    job: Job,
    views: Sequence[View],
    files: Sequence[NDArray[np.int32]],
    communicators: Sequence[NDArray[np.int32]],
) -> None:
    """Fill current, by process, thread and nesting. ``files`` and ``communicators`` map the numbers
    of each process to those of the job."""
    for view, its_files, its_communicators in zip(views, files, communicators, strict=True):
        if view.log.process["end"]:
            continue
        for block in view.log.threads:
            rows = _read_rows(view, block)
            job.current += _calls(job, view, int(block.aux[0]), rows, its_files, its_communicators)


def _read_rows(view: View, block: Block) -> NDArray[Any]:
    """Return the rows in use. The thread may be running: only a call that lasts is read twice
    alike."""
    number = view.log.schema.calls_in_progress
    at = block.aux[1] - number * _ROW.itemsize
    if number == 0 or at < 0 or block.aux[1] > block.available:
        return np.zeros(0, _ROW)
    shown = np.frombuffer(view.log.data, _ROW, number, block.at + at)
    first, second = shown.copy(), shown.copy()
    same = np.array([a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True)])
    stable: NDArray[Any] = first[same & (first["start"] != 0)]
    return stable


def _calls(
    job: Job,
    view: View,
    thread: int,
    rows: NDArray[Any],
    files: NDArray[np.int32],
    communicators: NDArray[np.int32],
) -> Iterator[CurrentCall]:
    """Yield the calls of one thread, outermost first; MPI_Finalize, which shows two rows, once."""
    functions = view.log.schema.functions
    before = -1
    for depth, row in enumerate(rows):
        number = int(row["function"])
        if number == before:
            continue
        before = number
        function = functions[number] if number < len(functions) else UNKNOWN
        file, communicator = _places(view, function, row, files, communicators)
        path = _path(job, view, function, row, file)
        offset = int(row["offset"])
        yield CurrentCall(
            process=view.row,
            thread=thread,
            depth=depth,
            function=function.name,
            category=function.category,
            op=function.op,
            path=path,
            file=file,
            fifo=_is_fifo(job, view, file, path),
            start=view.time.moment(int(row["start"])),
            offset=offset if offset < _UNKNOWN >> 1 else -1,
            length=int(row["length"]),
            communicator=communicator,
            collective=bool(int(row["flags"]) & COLLECTIVE),
        )


def _places(
    view: View,
    function: Function,
    row: Any,
    files: NDArray[np.int32],
    communicators: NDArray[np.int32],
) -> tuple[int, int]:
    """Return the file and the communicator of a call; -1: none. The field ``file`` of calls without
    a file, and of openings by MPI, is a communicator."""
    number = int(row["file"])
    if function.category not in LAYERS or (function.category, function.op) == ("mpiio", "open"):
        return -1, _element(communicators, number)
    if number >= len(files):
        return -1, -1
    of_file = 0
    if function.category == "mpiio" and "communicator" in (view.log.records.dtype.names or ()):
        of_file = int(view.log.records["communicator"][number])
    return int(files[number]), _element(communicators, of_file) if of_file else -1


def _element(numbers: NDArray[np.int32], index: int) -> int:
    return int(numbers[min(index, len(numbers) - 1)])


def _path(job: Job, view: View, function: Function, row: Any, file: int) -> str:
    """Return the path of a call; a relative name is completed, unless it has its own directory."""
    if not int(row["flags"]) & _NAMED:
        return job.path(file) if file >= 0 else ""
    name = bytes(row["path"]).decode("utf-8", "backslashreplace")
    if function.name.removesuffix("64").endswith("at") and function.name != "stat":
        return name
    directory = str(view.log.process_note.get("cwd", ""))
    return os.path.normpath(Path(directory) / name) if directory else name


def _is_fifo(job: Job, view: View, file: int, path: str) -> bool:
    """Tell whether a file is a pipe. A file that is about to be opened is examined if its process
    runs on this host."""
    if file >= 0:
        own = job.records[(job.records["file"] == file) & (job.records["process"] == view.row)]
        return bool(np.any(own["kind"] == stat.S_IFIFO))
    if not path.startswith("/") or view.row not in job.running:
        return False
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(_mode_of(path)), daemon=True)
    thread.start()
    thread.join(_STAT_SECONDS)
    return bool(found) and stat.S_ISFIFO(found[0])


def _mode_of(path: str) -> int:
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0
