"""The order of processes: barriers at collective communication, and processes that began after
others had ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import Job

_COLLECTIVE, _FAILED, _COMMUNICATION = 8, 1, 255
_COLLECTIVES = re.compile(
    r"MPI_(Barrier|Bcast|(All)?[Rr]educe|Scan|Exscan|Reduce_scatter(_block)?"
    r"|All(gather|toall)[vw]?|(Gather|Scatter)v?)(_c)?"
)


def find_barriers(
    job: Job, lane_of: NDArray[Any], ranks: int, played: NDArray[Any]
) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    """Yield the ranks of each relevant call of collective communication, and the rows of its
    events. ``played``: start times of I/O, ascending. Of calls without I/O between them, only the
    first and the last are relevant: the computation between them does not affect I/O.
    """
    events = job.events
    blocking = job.select_functions(_COLLECTIVES.fullmatch)
    chosen = (
        (events["layer"] == _COMMUNICATION)
        & ((events["flags"] & (_COLLECTIVE | _FAILED)) == _COLLECTIVE)
        & (events["count"] == 1)
    )
    rows = np.flatnonzero(chosen)
    rows = rows[
        blocking[events["function"][rows]] & (lane_of[rows] >= 0) & (events["file"][rows] >= 0)
    ]
    key = np.stack([events["file"][rows].astype(np.int64), events["offset"][rows]])
    order = np.lexsort((events["start"][rows], key[1], key[0]))
    rows, key = rows[order], key[:, order]
    cuts = np.flatnonzero(np.any(np.diff(key, axis=1) != 0, axis=0)) + 1
    calls = [part for part in np.split(rows, cuts) if len(part)]
    runs: dict[tuple[int, int], list[NDArray[Any]]] = {}
    for call in sorted(calls, key=lambda part: float(events["start"][part[-1]])):
        communicator = job.communicators[int(events["file"][call[0]])]
        if len(call) < 2 or len(call) != communicator.size:
            continue
        before = int(np.searchsorted(played, events["start"][call[-1]]))
        runs.setdefault((int(events["file"][call[0]]), before), []).append(call)
    for (number, _), run in runs.items():
        for call in run[:1] + run[1:][-1:]:
            yield job.communicators[number].ranks or tuple(range(ranks)), call


def waits(job: Job, processes: NDArray[Any], lane: NDArray[Any]) -> dict[int, list[int]]:
    """For each process, list the processes of other lanes that had ended before it began."""
    start, end = (
        job.processes["start"],
        np.where(np.isnan(job.processes["end"]), job.processes["seen"], job.processes["end"]),
    )
    found = {}
    for process in processes.tolist():
        ended = processes[(end[processes] <= start[process]) & (lane[processes] != lane[process])]
        if len(ended):
            found[process] = ended.tolist()
    return found
