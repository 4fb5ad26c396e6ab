"""What became of the stripes that settings ask for, of the files that the program created."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pario.tables.model import HintOutcome, Job
from pario.tables.own.files import file_of
from pario.tables.own.mpiio import outcomes
from pario.tables.own.view import View


def add_striping(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Adds to audit; each outcome of a file once, however many processes had it."""
    found: dict[HintOutcome, None] = {}
    for view, files in zip(views, of_record, strict=True):
        for note in view.log.notes_of("striping"):
            file = file_of(files, note)
            found |= dict.fromkeys(outcomes(note, file, job.path(file) if file >= 0 else str(note.get("path", "")), "striping"))
    job.audit += found
