"""The fidelity of a replay: calls, bytes and seconds of the replay and of its run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.perform import Performance
from pario.prove.replay.script import AS_POSIX, Script
from pario.see.analyze.split import Times
from pario.see.tables.model import FILE_LAYERS, LAYERS, Job

#: The compared counters. Calls that a replay omits (script.left_out) are missing in its counts.
COUNTS = (
    "opens",
    "closes",
    "reads",
    "writes",
    "seeks",
    "stats",
    "syncs",
    "flushes",
    "truncates",
    "bytes_read",
    "bytes_written",
)


@dataclass(frozen=True)
class Row:
    """A counter of one layer in the run and in the replay."""

    layer: str
    name: str
    run: int
    replay: int


@dataclass(frozen=True)
class Fidelity:
    """The compared counters of run and replay, and the seconds in I/O calls of the process that
    spent the most in them."""

    rows: tuple[Row, ...]
    run_seconds: float
    replay_seconds: float
    run_hosts: int = 1

    @property
    def exact(self) -> bool:
        """True if calls and bytes are the same."""
        return all(row.run == row.replay for row in self.rows)


def fidelity(job: Job, script: Script, performance: Performance) -> Fidelity:
    """Compare the accesses to the script's files in the run and in the replay."""
    run, replay = Times(job), Times(performance.job)
    names = set(script.paths)
    ours = np.array([path in names for path in job.paths] or [False])[job.files["path"]]
    root = f"{performance.root}/"
    theirs = np.array([path.startswith(root) for path in performance.job.paths] or [False])[
        performance.job.files["path"]
    ]
    lowered = script.mpiio.startswith(AS_POSIX)
    rows = tuple(
        Row(
            layer,
            name,
            _count(run, ours, layer, name, lowered),
            _count(replay, theirs, layer, name, lowered),
        )
        for layer in FILE_LAYERS
        for name in COUNTS
    )
    return Fidelity(
        tuple(row for row in rows if row.run or row.replay),
        io_seconds(run, ours),
        io_seconds(replay, theirs),
        len(job.hosts),
    )


def _count(times: Times, files: NDArray[np.bool_], layer: str, name: str, lowered: bool) -> int:
    """Sum a counter over files. If MPI-IO calls were ``lowered`` to POSIX calls, those count, and
    not the MPI-IO calls; else those of MPI-IO files do not count."""
    records = times.job.records
    mpiio = np.unique(records["file"][records["layer"] == LAYERS.index("mpiio")])
    chosen = files[records["file"]] & (records["layer"] == LAYERS.index(layer))
    if layer == "mpiio" and lowered:
        return 0
    if layer == "posix" and not lowered:
        chosen &= ~np.isin(records["file"], mpiio)
    return int(records[name][chosen].sum())


def io_seconds(times: Times, files: NDArray[np.bool_]) -> float:
    """The seconds in I/O calls on files, of the lane that spent the most in them."""
    records = times.job.records
    seconds = times.cells.sum(axis=1) * files[records["file"]]
    seconds = np.where(records["layer"] < len(FILE_LAYERS), seconds, 0.0)
    lane = times.lanes.of(records["process"])
    return float(np.bincount(lane[lane >= 0], seconds[lane >= 0], minlength=1).max())
