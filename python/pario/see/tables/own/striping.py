"""The outcome of requested stripes of the files that the program created."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import HintOutcome, Job
from pario.see.tables.own.files import notes_on_files
from pario.see.tables.own.mpiio import outcomes
from pario.see.tables.own.view import View


def add_striping(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Add to audit; each outcome of a file once for all processes."""
    found: dict[HintOutcome, None] = {}
    for _, file, note in notes_on_files(views, of_record, "striping"):
        path = job.path(file) if file >= 0 else str(note.get("path", ""))
        found |= dict.fromkeys(outcomes(note, file, path, "striping"))
    job.audit += found
