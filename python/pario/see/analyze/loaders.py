"""The waits of training loops for batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pario.see.analyze.model import LoaderRow
from pario.see.tables.model import Job, LoaderUse


def loaders(job: Job) -> tuple[LoaderRow, ...]:
    """Return a row for each description of loaders, over all processes, longest waits first."""
    alike: dict[tuple[str, str, int, int], list[LoaderUse]] = defaultdict(list)
    for use in job.loaders:
        if use.batches:
            alike[use.kind, use.data, use.workers, use.batch_size].append(use)
    return tuple(sorted(map(_row, alike.values()), key=lambda row: -row.waited))


def _row(uses: Sequence[LoaderUse]) -> LoaderRow:
    one = uses[0]
    waited, worked = sum(use.waited for use in uses), sum(use.worked for use in uses)
    return LoaderRow(
        loader=one.kind,
        data=one.data,
        loops=len(uses),
        workers=one.workers,
        batch_size=one.batch_size,
        batches=sum(use.batches for use in uses),
        first_seconds=sum(use.first for use in uses),
        waited=waited,
        worked=worked,
        stalled=waited / (waited + worked) if waited else 0.0,
        longest=max(use.longest for use in uses),
        samples_per_second=sum(map(_rate, uses)),
    )


def _rate(use: LoaderUse) -> float:
    seconds = use.first + use.waited + use.worked
    return use.batches * use.batch_size / seconds if seconds else 0.0
