"""Synthetic jobs whose time is lost between layers, in a directory, or by the order of calls."""

from __future__ import annotations

import numpy as np

from pario.see.tables.model import Job
from pario.see.tables.rows import new_records
from tests.python.jobs import add_function, add_hint, add_record, file_row

MIB = 1 << 20


def mpi_writes(made: Job, calls: int, size: int, seconds: float, **facts: float) -> None:
    """Rank 0's collective writes through MPI-IO; ``facts``: of the POSIX calls below."""
    add_record(
        made,
        0,
        "/scratch/m",
        "mpiio",
        writes=calls,
        collective_writes=calls,
        bytes_written=calls * size,
        write_time=seconds,
    )
    below = {"writes": calls, "nested_writes": calls, "bytes_written": calls * size} | facts
    add_record(made, 0, "/scratch/m", **below)


def tiny_buffer(made: Job, size: int) -> None:
    rounds = 100 * MIB // size
    below = {"writes": rounds, "nested_writes": rounds}
    mpi_writes(made, 100, MIB, 20.0, nested_write_time=15.0, write_time=15.0, **below)
    add_hint(made, "/scratch/m", "cb_buffer_size", str(size))


def write_ordered(made: Job, calls: int) -> None:
    mpi_writes(made, calls, 80_000 // calls, 10.0, nested_write_time=6.0, write_time=6.0)
    add_function(
        made, 0, "MPI_File_write_ordered", "mpiio", calls=calls, seconds=10.0, bytes=80_000
    )


def tiny_calls(made: Job, calls: int, collective: bool) -> None:
    own = {"writes": calls, "bytes_written": 80_000, "write_time": 10.0}
    together = {"collective_writes": calls} if collective else {}
    add_record(made, 0, "/scratch/m", "mpiio", **own, **together)


def amplify(made: Job, moved: int) -> None:
    add_record(
        made,
        0,
        "/scratch/m",
        "mpiio",
        reads=40,
        bytes_read=4 * MIB,
        read_time=10.0,
        end_read=400 * MIB,
    )
    below = {"reads": 40, "nested_reads": 40, "bytes_read": moved}
    add_record(made, 0, "/scratch/m", read_time=9.0, nested_read_time=9.0, **below)


def ask_names(made: Job, names: int) -> None:
    for number in range(names):
        file_row(made, f"/scratch/q/{number}")
    rows = new_records(names)
    rows["file"], rows["stats"], rows["stat_time"] = np.arange(names), 1, 0.002
    made.records = rows


def read_backwards(made: Job, forward: int) -> None:
    add_record(
        made,
        0,
        "/scratch/f",
        reads=10_000,
        forward_reads=forward,
        strided_reads=9_998,
        bytes_read=10_000 * 4096,
        end_read=10_000 * 4096,
        read_time=20.0,
        seeks=10_000,
        seek_time=0.5,
    )


def copy(made: Job, calls: int) -> None:
    size = 40 * MIB
    source = {"reads": calls, "bytes_read": size, "read_time": 5.0, "end_read": size}
    target = {"writes": calls, "bytes_written": size, "write_time": 5.0}
    add_record(made, 0, "/scratch/a", copies=calls, **source)
    add_record(made, 0, "/scratch/b", copies=calls, **target)


def lock(made: Job, seconds: float = 30.0) -> None:
    """Two ranks that wait for each other's lock of a file."""
    add_record(made, [0, 1], "/scratch/log", opens=1, writes=100, locks=100, lock_time=seconds)
