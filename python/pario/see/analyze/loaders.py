"""The waits of training loops for batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from pario.see.analyze.intervals import Intervals, spread_weights
from pario.see.analyze.model import LoaderRow
from pario.see.analyze.timeline import BINS
from pario.see.tables.model import Job, LoaderUse


def loaders(job: Job) -> tuple[LoaderRow, ...]:
    """Return a row for each description of loaders, over all processes, longest waits first."""
    alike: dict[tuple[str, str, int, int], list[LoaderUse]] = defaultdict(list)
    for use in job.loaders:
        if use.batches:
            alike[use.kind, use.data, use.workers, use.batch_size].append(use)
    rows = (_row(uses, job.wall) for uses in alike.values())
    return tuple(sorted(rows, key=lambda row: -row.waited))


def _row(uses: Sequence[LoaderUse], wall: float) -> LoaderRow:
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
        wait_share=_wait_share(uses, wall),
    )


def _wait_share(uses: Sequence[LoaderUse], wall: float) -> tuple[float, ...]:
    """Return the waiting part of the loops in each bin of the timeline."""
    known = [use.waits for use in uses if use.waits and use.waits.values]
    if not known or wall <= 0:
        return ()
    starts = [waits.start + waits.width * np.arange(len(waits.values)) for waits in known]
    ends = [start + waits.width for start, waits in zip(starts, known, strict=True)]
    start = np.concatenate(starts)
    spans = Intervals(start, np.concatenate(ends), np.zeros(len(start), np.int64))
    seconds = np.concatenate([np.asarray(waits.values) for waits in known])
    edges = np.linspace(0.0, wall, BINS + 1)
    share = spread_weights(spans, seconds, edges, 1)[0] / (np.diff(edges) * len(known))
    return tuple(np.clip(share, 0.0, 1.0).round(4).tolist())


def _rate(use: LoaderUse) -> float:
    seconds = use.first + use.waited + use.worked
    return use.batches * use.batch_size / seconds if seconds else 0.0
