"""The accesses to the file of a checkpoint, counted in the log of a run that wrote it once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pario.prove.bench.s3d_table import UNIT
from pario.see.tables import read
from pario.see.tables.model import EVENT_KINDS, LAYERS


def counts(log: Path, name: str) -> dict[str, int]:
    """Count over all ranks, for the file ``name``: system calls, bytes, and writes that do not
    begin at a multiple of ``UNIT``."""
    job = read([log])
    (file,) = [number for number in range(len(job.files)) if Path(job.path(number)).name == name]
    rows = job.records[
        (job.records["file"] == file) & (job.records["layer"] == LAYERS.index("posix"))
    ]
    totals = {
        key: int(rows[counter].sum())
        for key, counter in (
            ("writes", "writes"),
            ("reads", "reads"),
            ("written", "bytes_written"),
            ("read", "bytes_read"),
        )
    }
    return {**totals, "unaligned": _count_unaligned(job.events, file)}


def _count_unaligned(events: Any, file: int) -> int:
    posix = (events["file"] == file) & (events["layer"] == LAYERS.index("posix"))
    writes = events[posix & (events["kind"] == EVENT_KINDS.index("write"))]
    return int(np.count_nonzero(writes["offset"] % UNIT))
