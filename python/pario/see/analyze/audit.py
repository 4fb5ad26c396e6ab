"""What became of the settings that pario's own MPI-IO and its buffers were given: states, and the
rows of a report."""

from __future__ import annotations

from collections import defaultdict
from typing import get_args

from pario.see.analyze.model import HintRow, HintState
from pario.see.tables.model import HintOutcome, Job

#: Reasons (parallel/engine/audit.cpp, layers/buffers/audit.cpp, core/file/new_file.cpp) of settings
#: that are in order although they are not in force.
_HARMLESS: tuple[tuple[str, HintState], ...] = (
    ("a meaning here", "without meaning"),
    ("came later", "overruled"),
    ("changed after the file was opened", "overruled"),
    ("not in question", "overruled"),
    ("keeps its stripes", "overruled"),
)


def state(outcome: HintOutcome) -> HintState:
    """What became of a hint, in a word or two."""
    for text, harmless in _HARMLESS:
        if text in outcome.reason:
            return harmless
    if not outcome.applied:
        return "not taken"
    return "not in force" if outcome.reason or outcome.effective != outcome.applied else "in force"


def audit(job: Job) -> tuple[HintRow, ...]:
    """The hints, what went wrong first; those that differ in nothing but their file are one row."""
    alike: dict[tuple[str, str, str, str, str, HintState, str], list[str]] = defaultdict(list)
    for it in job.audit:
        alike[
            it.key, it.requested, it.applied, it.effective, it.reason, state(it), it.table
        ].append(it.path)
    rows = [
        HintRow(*what[:6], files=tuple(paths[:10]), file_count=len(paths), table=what[6])
        for what, paths in alike.items()
    ]
    order = get_args(HintState)
    return tuple(sorted(rows, key=lambda row: order.index(row.state)))
