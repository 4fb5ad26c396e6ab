"""The ends of processes whose logs have none: killed by signals, or not known."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import Job
from pario.see.tables.own.view import View

_NAMED = 5  # processes named in a message
#: Signals by which a program asks its workers to end.
_REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def add_endings(job: Job, views: Sequence[View]) -> None:
    """Add messages about the processes that did not end by themselves.

    Each process has a view, in the same order.
    """
    signals = _signals(job, views)
    unended = np.isnan(job.processes["end"])
    unended[list(job.running)] = False
    with_parent = unended & _ended_with_parent(job)
    for number, group in _by_signal(np.flatnonzero(unended), signals).items():
        rows = [row for row in group if not (with_parent[row] and number in _REQUESTS)]
        if rows:
            job.messages.append(
                f"killed by {_signal_name(number)}: {_name_processes(job, rows)}; the counters are"
                " complete until then"
            )
    rows = [int(row) for row in np.flatnonzero(unended & ~with_parent) if row not in signals]
    if rows:
        job.messages.append(
            f"no end is known of {_name_processes(job, rows)}: killed or still running; their"
            " counters are complete until then"
        )


def _signals(job: Job, views: Sequence[View]) -> dict[int, int]:
    """The signals that killed processes, by their row, as their parents have noted them."""
    noted: dict[tuple[int, int, int], int] = {}
    for row, view in zip(job.processes, views, strict=True):
        for note in view.log.notes_of("killed"):
            child, number = note.get("pid"), note.get("signal")
            if isinstance(child, int) and isinstance(number, int):
                noted[int(row["host"]), int(row["pid"]), child] = number
    keys = [(int(row["host"]), int(row["parent"]), int(row["pid"])) for row in job.processes]
    return {at: noted[key] for at, key in enumerate(keys) if key in noted}


def _by_signal(rows: Any, signals: Mapping[int, int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for row in rows:
        if row in signals:
            groups.setdefault(signals[row], []).append(int(row))
    return groups


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _name_processes(job: Job, rows: Sequence[int]) -> str:
    names = [_name_process(job, job.processes[row]) for row in rows[:_NAMED]]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"{', '.join(names)}{more}"


def _name_process(job: Job, row: Any) -> str:
    if row["rank"] >= 0:
        return f"rank {row['rank']}"
    program = os.path.basename(job.programs[row["exe"]])  # noqa: PTH119
    return f"pid {row['pid']}{f' ({program})' if program else ''} on {job.hosts[row['host']]}"


def _ended_with_parent(job: Job) -> NDArray[np.bool_]:
    """True for processes that fork made without exec, and whose parent ended after them: workers
    that their parent ends by a signal, as multiprocessing.Pool does."""
    processes = job.processes
    ends: dict[tuple[int, int], float] = {}
    for row in processes[~np.isnan(processes["end"])]:
        key = (int(row["host"]), int(row["pid"]))
        ends[key] = max(ends.get(key, 0.0), float(row["end"]))
    parents = [ends.get((int(row["host"]), int(row["parent"])), -1.0) for row in processes]
    ranked = processes["rank"] >= 0
    return np.asarray(
        (processes["parent_image"] == 1) & ~ranked & (processes["seen"] <= np.array(parents))
    )
