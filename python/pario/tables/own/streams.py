"""What became of the buffers that were asked for: a note for each outcome, which the rows of files name by its number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pario.tables.model import HintOutcome, Job
from pario.tables.own.mpiio import outcomes
from pario.tables.own.view import View


def add_streams(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Adds to audit; each outcome of a file once, however many processes had it."""
    found: dict[HintOutcome, None] = {}
    for view, files in zip(views, of_record, strict=True):
        if "stream" not in view.log.schema.units:
            continue
        notes = {note.get("id"): note for note in view.log.notes_of("stream")}
        numbers = view.log.records["stream"]
        for record in np.flatnonzero((numbers != 0) & (files >= 0)):
            file = int(files[record])
            found |= dict.fromkeys(outcomes(notes.get(int(numbers[record]), {}), file, job.path(file), "streams"))
    job.audit += found
