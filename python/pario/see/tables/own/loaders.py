"""The waits of training loops for batches: the last note of each loader of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pario.see.tables.model import Job, LoaderUse, TimeBins
from pario.see.tables.own.files import integer
from pario.see.tables.own.view import View


def add_loaders(job: Job, views: Sequence[View]) -> None:
    """Add to loaders."""
    for view in views:
        last = {integer(note.get("id")): note for note in view.log.notes_of("loader")}
        job.loaders += [_use(view, note) for note in last.values()]


def _use(view: View, note: dict[str, Any]) -> LoaderUse:
    timers = note.get("timers_ns")

    def seconds(name: str) -> float:
        return integer(timers.get(name)) / 1e9 if isinstance(timers, dict) else 0.0

    return LoaderUse(
        process=view.row,
        kind=str(note.get("kind", "")),
        data=str(note.get("data", "")),
        workers=integer(note.get("workers")),
        batch_size=integer(note.get("batch")),
        processors=integer(note.get("processors")),
        batches=integer(note.get("batches")),
        first=seconds("first"),
        waited=seconds("waited"),
        worked=seconds("worked"),
        longest=seconds("longest"),
        waits=_waits(view, note.get("waits")),
    )


def _waits(view: View, noted: Any) -> TimeBins | None:
    """Return the waits by intervals; None in logs without them, and for damaged ones."""
    if not isinstance(noted, dict):
        return None
    start, width = integer(noted.get("start_mono_ns")), integer(noted.get("interval_ns"))
    waited = noted.get("waited_us")
    if start <= 0 or width <= 0 or not isinstance(waited, list):
        return None
    values = tuple(max(0, integer(value)) / 1e6 for value in waited)
    return TimeBins(view.moment_of_clock(start), width / 1e9, values)
