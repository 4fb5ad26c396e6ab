"""Seconds of lanes and processes by the sums of counters, without events. Pure functions of the
tables of a job."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, Mask, Table, sums
from pario.see.analyze.lanes import Lanes
from pario.see.tables.model import Job

COMMUNICATION_CATEGORIES = ("p2p", "wait", "collective", "rma")
#: Functions that wait for other processes without MPI, or for users: poll, recv, reads of pipes.
PEERS = "peers"


def io_seconds(job: Job, lanes: Lanes, cells: Floats) -> Floats:
    """Return the seconds of I/O per lane; of a process those of its busiest thread. ``cells``: the
    seconds of each record by kind of call."""
    records, count = job.records, lanes.count
    rows = (
        cells.sum(axis=1) * _thread_share(job)[records["process"]] if len(records) else np.zeros(0)
    )
    lane = lanes.of(records["process"])
    io = sums(lane[lane >= 0], rows[lane >= 0], count)
    for row in np.flatnonzero(records["process"] < 0):
        io += share_of_ranks(records[row], float(cells[row].sum()), count)
    return io


def find_barriers(job: Job) -> Mask:
    """Return True for the functions that are blocking collectives without bytes: all their time is
    waiting."""
    return job.select_functions(lambda name: name.startswith("MPI_Barrier"))


def communication_seconds(job: Job, lanes: Lanes) -> tuple[Floats, Floats]:
    """Return, per lane, the seconds in communication, and those of them in barriers."""
    functions = job.functions
    lane = lanes.of(functions["process"])
    talk = np.isin(functions["category"], COMMUNICATION_CATEGORIES) & (lane >= 0)
    barrier = talk & find_barriers(job)[functions["name"]] if len(functions) else talk
    return (
        sums(lane[talk], functions["seconds"][talk], lanes.count),
        sums(lane[barrier], functions["seconds"][barrier], lanes.count),
    )


def peer_seconds(job: Job) -> Floats:
    """Return the seconds per process in calls that wait for other processes, in its busiest
    thread."""
    functions, count = job.functions, len(job.processes)
    rows = functions[(functions["category"] == PEERS) & (functions["thread"] >= 0)]
    if not len(rows):
        return np.zeros(count)
    largest = _sum_by_thread(rows).max(axis=1)
    return np.pad(largest, (0, count - len(largest)))


def stream_seconds(job: Job) -> Floats:
    """Return the seconds per process in reads and writes of standard streams that are no files."""
    records = job.records
    rows = records[(job.files["stream"] != 0)[records["file"]] & (records["process"] >= 0)]
    moved = np.nan_to_num(rows["read_time"] + rows["write_time"])
    return sums(rows["process"], moved, len(job.processes))


def _thread_share(job: Job) -> Floats:
    """Return, per process, the busiest thread's part of its I/O seconds, because threads do I/O at
    the same time."""
    functions = job.functions
    share = np.ones(max(len(job.processes), 1))
    rows = functions[
        np.isin(functions["category"], ("posix", "stdio", "mpiio")) & (functions["thread"] >= 0)
    ]
    if not len(rows):
        return share
    threads = _sum_by_thread(rows)
    total, largest = threads.sum(axis=1), threads.max(axis=1)
    share[: len(total)] = np.divide(largest, total, out=np.ones_like(total), where=total > 0)
    return share


def _sum_by_thread(rows: Table) -> Floats:
    """Return the seconds of functions, a row per process and a column per thread."""
    threads = int(rows["thread"].max()) + 1
    seconds = sums(rows["process"].astype(np.int64) * threads + rows["thread"], rows["seconds"], 0)
    return np.pad(seconds, (0, -len(seconds) % threads)).reshape(-1, threads)


def share_of_ranks(record: np.void, seconds: float, ranks: int) -> Floats:
    """Distribute a sum over all ranks: the slowest and the fastest rank get their own times if the
    log has these, the other ranks equal parts of the rest."""
    share = np.full(ranks, seconds / max(int(record["ranks"]), ranks, 1))
    slowest, fastest = int(record["slowest_rank"]), int(record["fastest_rank"])
    if 0 <= slowest < ranks and record["slowest_rank_time"] == record["slowest_rank_time"]:
        own = min(float(record["slowest_rank_time"]), seconds)
        share[:] = (seconds - own) / max(ranks - 1, 1)
        share[slowest] = own
        if 0 <= fastest < ranks and fastest != slowest:
            share[fastest] = min(float(record["fastest_rank_time"]), share[fastest])
    return share
