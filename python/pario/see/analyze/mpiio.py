"""The figures of pario's own MPI-IO per file."""

from __future__ import annotations

from typing import Any

import numpy as np

from pario.see.analyze.model import MOST_ROWS
from pario.see.analyze.mpiio_model import MpiioPhase, MpiioRow
from pario.see.tables.model import MPIIO_LARGEST, MPIIO_PHASES, MPIIO_SUMS, Job

_WHICH = ("least", "mean", "most")


def mpiio(job: Job) -> tuple[MpiioRow, ...]:
    """Return the files by the slowest rank's time in calls, most first."""
    order = np.argsort(-job.mpiio["calls_most"], kind="stable")[:MOST_ROWS]
    return tuple(_row(job, row) for row in job.mpiio[order])


def _row(job: Job, row: Any) -> MpiioRow:
    moved, stored = (
        int(row["bytes_written"] + row["bytes_read"]),
        int(row["system_write_bytes"] + row["system_read_bytes"]),
    )
    return MpiioRow(
        path=job.paths[row["path"]],
        opens=int(row["opens"]),
        ranks=int(row["ranks"]),
        nodes=int(row["nodes"]),
        average_system_write=_ratio(int(row["system_write_bytes"]), int(row["system_writes"])),
        net=_ratio(moved, float(row["calls_most"])),
        raw=_ratio(stored, float(row["file_most"])),
        phases=tuple(
            MpiioPhase(phase, *(float(row[f"{phase}_{which}"]) for which in _WHICH))
            for phase in MPIIO_PHASES
        ),
        **{name: int(row[name]) for name in (*MPIIO_SUMS, *MPIIO_LARGEST)},
    )


def _ratio(amount: float, by: float) -> float:
    return amount / by if by > 0 else 0.0
