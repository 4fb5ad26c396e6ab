"""Synthetic jobs for tests: ``make_job`` and functions that add rows to it.

Everything broadcasts: ``process`` may be one number or a sequence, every value a number or an array
of that length, so that a thousand ranks or a million events are one call. Names of counters are
those of ``pario.see.tables.model.RECORD``:

    job = make_job(ranks=4, wall=10.0) add_record(job, 0, "/scratch/out.dat", writes=1000,
    bytes_written=512_000, write_time=2.0, write_sizes={512: 1000}) add_record(job, range(4),
    "/scratch/in.dat", reads=[10, 10, 10, 40], read_time=[1.0, 1.1, 0.9, 4.0]) add_events(job, 0,
    "/scratch/out.dat", "write", start=np.arange(1000) * 0.01, duration=0.002, length=512)
    add_function(job, range(4), "MPI_Barrier", "collective", calls=10, seconds=1.5)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pario.see.tables.model import (
    EVENT,
    EVENT_KINDS,
    FILESYSTEM,
    FUNCTION,
    LAYERS,
    SIZE_BINS,
    Communicator,
    Hint,
    Job,
    Layout,
)
from pario.see.tables.rows import new_files, new_processes, new_records

#: Every member of ``Job.has``.
ALL_KNOWN = frozenset(
    "posix stdio mpiio mpi sync events sizes sampled alignment per_rank streams layout hints"
    " threads meta_split cpu".split()
)


def make_job(
    ranks: int = 4,
    wall: float = 10.0,
    hosts: int = 1,
    mpi: bool | None = None,
    has: Iterable[str] = ALL_KNOWN,
    **facts: Any,
) -> Job:
    """Makes a job of ``ranks`` processes that start at 0, end at ``wall`` and do no I/O. ``mpi``
    defaults to ``ranks > 1``; without it the processes are plain ones (rank -1). ``facts`` go to
    the Job (``command=...``, ``exit_status=...``).
    """
    mpi = ranks > 1 if mpi is None else mpi
    processes = new_processes(ranks)
    numbers = np.arange(ranks)
    processes["rank"] = numbers if mpi else -1
    processes["host"] = numbers * hosts // max(ranks, 1)
    processes["pid"] = 1000 + numbers
    processes["parent"] = 999
    processes["end"] = processes["seen"] = wall
    processes["end_kind"] = 1
    processes["threads"] = 1
    processes["mpi_start"] = 0.0 if mpi else np.nan
    processes["mpi_end"] = wall if mpi else np.nan
    defaults: dict[str, Any] = {
        "command": "./app",
        "start": 1.7e9,
        "exit_status": 0,
        "mpi_library": "MPICH 5.0.2" if mpi else "",
    }
    return Job(
        source="run.pario",
        format="pario",
        wall=wall,
        ranks=ranks if mpi else 1,
        has=set(has),
        hosts=[f"node{i}" for i in range(hosts)],
        programs=["/home/user/app"],
        processes=processes,
        communicators=[Communicator(0, ranks, tuple(range(ranks)))] if mpi else [],
        **(defaults | facts),
    )


def join(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``np.concatenate`` of tables of one type, which compares neither types nor names of
    columns."""
    joined = np.empty(len(table) + len(rows), table.dtype)
    joined[: len(table)], joined[len(table) :] = table, rows
    return joined


def add_filesystem(
    job: Job, mount: str, type: str = "ext4", block_size: int = 4096, network: bool = False
) -> int:
    """Adds a file system; files added later below ``mount`` belong to it. Returns its row."""
    row = np.zeros(1, FILESYSTEM)
    row["type"], row["mount"], row["block_size"], row["network"] = type, mount, block_size, network
    row["host"] = -1  # the same for all hosts
    job.filesystems = join(job.filesystems, row)
    return len(job.filesystems) - 1


def file_row(job: Job, path: str, **fields: Any) -> int:
    """Returns the row of ``path`` in ``job.files`` and adds it if it is new. ``fields``: folded,
    stream, filesystem, layout."""
    if path in job.paths:
        number = job.paths.index(path)
    else:
        number = len(job.paths)
        job.paths.append(path)
        row = new_files(1)
        row["path"] = number
        row["filesystem"] = _filesystem_of(job, path)
        job.files = join(job.files, row)
    for name, value in fields.items():
        job.files[name][number] = value
    return number


def _filesystem_of(job: Job, path: str) -> int:
    mounts = [
        (len(str(mount)), i)
        for i, mount in enumerate(job.filesystems["mount"])
        if path.startswith(str(mount))
    ]
    return max(mounts)[1] if mounts else -1


def set_layout(
    job: Job, path: str, stripe_size: int, targets: Iterable[int], kind: str = "lustre"
) -> None:
    """Gives ``path`` a striped layout on ``targets``."""
    numbers = tuple(targets)
    job.layouts.append(Layout(kind, stripe_size, len(numbers), numbers))
    file_row(job, path, layout=len(job.layouts) - 1)


def add_record(
    job: Job,
    process: int | Iterable[int],
    path: str | Sequence[str],
    layer: str = "posix",
    **counters: Any,
) -> None:
    """Adds one row per process, for each file. ``read_sizes``/``write_sizes`` may be a mapping
    {bytes: calls}; of several files, counters may be arrays by file and process.
    ``process=-1``: the sum over the ranks of a shared file."""
    processes = np.atleast_1d(np.asarray(process if isinstance(process, int) else list(process)))
    files = [file_row(job, one) for one in ([path] if isinstance(path, str) else path)]
    rows = new_records(len(files) * len(processes))
    rows["process"] = np.tile(processes, len(files))
    rows["file"] = np.repeat(files, len(processes))
    rows["layer"] = LAYERS.index(layer)
    for name, value in counters.items():
        rows[name] = _histogram(value) if isinstance(value, Mapping) else value
    job.records = join(job.records, rows)


def _histogram(calls_by_size: Mapping[int, int]) -> np.ndarray:
    bins = np.zeros(len(SIZE_BINS) + 1, "i8")
    for size, calls in calls_by_size.items():
        bins[np.searchsorted(SIZE_BINS, size)] += calls
    return bins


def add_events(
    job: Job,
    process: int | Iterable[int],
    path: str | Sequence[str],
    kind: str = "write",
    *,
    start: Any = 0.0,
    duration: Any = 0.001,
    offset: Any = -1,
    length: Any = 0,
    layer: str = "posix",
    function: str | None = None,
    **fields: Any,
) -> None:
    """Adds events on a file; kind ``communicate`` is an MPI call, whose ``path`` is ignored and
    whose ``file=0`` is MPI_COMM_WORLD. Arrays broadcast against each other and ``process``; several
    paths are one for each event. Events stay sorted by start.
    """
    communicate = kind == "communicate"
    processes = np.asarray(process if isinstance(process, int) else list(process))
    arrays = np.broadcast_arrays(processes, start, duration, offset, length)
    rows = np.zeros(arrays[0].size, EVENT)
    for name, values in zip(
        ("process", "start", "duration", "offset", "length"), arrays, strict=True
    ):
        rows[name] = np.ravel(values)
    rows["kind"] = EVENT_KINDS.index(kind)
    rows["layer"] = 255 if communicate else LAYERS.index(layer)
    paths = [path] if isinstance(path, str) else path
    rows["file"] = 0 if communicate else [file_row(job, one) for one in paths]
    rows["function"] = _function_number(job, function or ("MPI_Barrier" if communicate else kind))
    rows["count"] = 1
    rows["end"] = rows["start"] + rows["duration"]
    for name, value in fields.items():
        rows[name] = value
    events = join(job.events, rows)
    job.events = events[np.argsort(events["start"], kind="stable")]


def add_function(
    job: Job,
    process: int | Iterable[int],
    name: str,
    category: str,
    *,
    calls: Any = 1,
    seconds: Any = 0.0,
    thread: int = -1,
    **fields: Any,
) -> None:
    """Adds a row of function counters per process. Fields: bytes, slowest, failed."""
    processes = np.atleast_1d(np.asarray(process if isinstance(process, int) else list(process)))
    rows = np.zeros(len(processes), FUNCTION)
    rows["process"], rows["thread"], rows["category"] = processes, thread, category
    rows["name"] = _function_number(job, name)
    rows["calls"], rows["seconds"] = calls, seconds
    rows["slowest"] = np.asarray(seconds) / np.maximum(calls, 1)
    for field, value in fields.items():
        rows[field] = value
    job.functions = join(job.functions, rows)


def _function_number(job: Job, name: str) -> int:
    if name not in job.function_names:
        job.function_names.append(name)
    return job.function_names.index(name)


def add_hint(
    job: Job, path: str, key: str, value: str, when: str = "effective", process: int = 0
) -> None:
    """Adds an MPI-IO hint of one file."""
    job.hints.append(Hint(file_row(job, path), process, key, value, when))  # type: ignore[arg-type]
