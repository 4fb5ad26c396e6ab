"""The outcome of requested buffers: a note for each outcome, to which the rows of files refer by
number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import HintOutcome, Job
from pario.see.tables.own.mpiio import outcomes
from pario.see.tables.own.view import View


def add_streams(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Add to audit; each outcome of a file once for all processes."""
    found: dict[HintOutcome, None] = {}
    for view, files in zip(views, of_record, strict=True):
        if "stream" not in view.log.schema.units:
            continue
        notes = {note.get("id"): note for note in view.log.notes_of("stream")}
        numbers = view.log.records["stream"]
        for record in np.flatnonzero((numbers != 0) & (files >= 0)):
            file = int(files[record])
            found |= dict.fromkeys(
                outcomes(notes.get(int(numbers[record]), {}), file, job.path(file), "streams")
            )
    job.audit += found
