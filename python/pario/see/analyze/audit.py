"""The states of the settings of pario's own MPI-IO and of its buffers, as rows of a report."""

from __future__ import annotations

from collections import defaultdict
from typing import get_args

from pario.see.analyze.model import HintRow, HintState
from pario.see.tables.model import HintOutcome, Job

#: Parts of reasons (parallel/engine/audit.cpp, layers/buffers/audit.cpp, core/file/new_file.cpp)
#: that explain a setting without effect which is no error, and its state.
_HARMLESS: tuple[tuple[str, HintState], ...] = (
    ("a meaning here", "without meaning"),
    ("came later", "overruled"),
    ("changed after the file was opened", "overruled"),
    ("not in question", "overruled"),
    ("keeps its stripes", "overruled"),
)


def state(outcome: HintOutcome) -> HintState:
    """Return the state of a setting."""
    for text, harmless in _HARMLESS:
        if text in outcome.reason:
            return harmless
    if not outcome.applied:
        return "not taken"
    return "not in force" if outcome.reason or outcome.effective != outcome.applied else "in force"


def audit(job: Job) -> tuple[HintRow, ...]:
    """Return the settings, failed ones first; settings that differ only in their file share a
    row."""
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
