"""Lanes: processes that run one after the other. In an MPI job a lane is a rank; otherwise
processes that do not overlap in time share a lane."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, sums
from pario.see.tables.model import Job


def lane_words(*, mpi: bool) -> tuple[str, str]:
    """Return the name of one lane and of several lanes."""
    return ("rank", "ranks") if mpi else ("process", "processes")


@dataclass(frozen=True)
class Lanes:
    """The lanes of a job. ``of_process[p]`` is the lane of a row of ``Job.processes``, -1 for
    helpers of the launcher, for which no lane waits."""

    of_process: Ints
    count: int
    mpi: bool

    def of(self, process: Ints) -> Ints:
        """Return the lanes of process rows; -1 for rows that sum all ranks (-1)."""
        return np.asarray(self._with_sum[process])

    def sum_processes(self, values: Floats) -> Floats:
        """Return the sums, by lane, of a value of each process; helpers of the launcher are left
        out."""
        own = self.of_process >= 0
        return sums(self.of_process[own], values[own], self.count)

    @cached_property
    def _with_sum(self) -> Ints:
        """``of_process`` with a last element for the index -1."""
        return np.append(self.of_process, -1)

    def rank(self, lane: int) -> int:
        """Return the MPI rank of a lane, -1 without MPI."""
        return int(lane) if self.mpi else -1


def find_lanes(job: Job) -> Lanes:
    """Return the ranks of an MPI job as lanes, otherwise processes packed into lanes by time."""
    ranks = job.processes["rank"]
    if len(ranks) and ranks.max() >= 0:
        return Lanes(_rank_of_each(job), int(max(job.ranks, ranks.max() + 1)), True)
    return _pack_processes(job)


def _rank_of_each(job: Job) -> Ints:
    """Return the rank of each process. A process without one belongs to the rank that had its PID
    (exec), or to its nearest ancestor with a rank."""
    processes = job.processes
    keys = list(zip(processes["host"].tolist(), processes["pid"].tolist(), strict=True))
    parents = dict(zip(keys, processes["parent"].tolist(), strict=True))
    known: dict[tuple[int, int], int] = {
        key: rank for key, rank in zip(keys, processes["rank"].tolist(), strict=True) if rank >= 0
    }

    def climb(key: tuple[int, int]) -> int:
        for _ in range(64):
            if key in known:
                return known[key]
            if key not in parents or parents[key] == key[1]:
                return -1
            key = (key[0], parents[key])
        return -1

    own = processes["rank"].tolist()
    return np.array(
        [rank if rank >= 0 else climb(key) for rank, key in zip(own, keys, strict=True)], np.int64
    )


def _pack_processes(job: Job) -> Lanes:
    processes = job.processes
    lanes = np.zeros(len(processes), np.int64)
    free: list[tuple[float, int]] = []
    count = 0
    for row in np.argsort(processes["start"], kind="stable"):
        start, end = (
            float(processes["start"][row]),
            float(np.nan_to_num(processes["end"][row], nan=processes["seen"][row])),
        )
        if free and free[0][0] <= start + 1e-6:
            lane = heapq.heappop(free)[1]
        else:
            lane, count = count, count + 1
        lanes[row] = lane
        heapq.heappush(free, (end, lane))
    return Lanes(lanes, max(count, 1), False)
