"""The critical path: runs from the end of the job back to its start, and follows the rank that
arrived last at every meeting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Floats, Ints
from pario.see.analyze.waiting import Waits


@dataclass(frozen=True)
class Path:
    """Intervals ``[start, end)`` of lanes that together cover the wall time once, latest first."""

    lane: Ints
    start: Floats
    end: Floats


def critical_path(waits: Waits, last_lane: int, wall: float) -> Path:
    """Follow the path back from ``wall`` on ``last_lane``. Waits shorter than a millionth of the
    wall time are ignored."""
    worth = waits.seconds > 1e-6 * wall
    order = np.flatnonzero(worth)[np.lexsort((waits.start[worth], waits.lane[worth]))]
    lane, start = waits.lane[order], waits.start[order]
    bounds = np.searchsorted(lane, [np.arange(lane.max(initial=0) + 2)])[0]
    starts, to_lane, to_moment = (
        start.tolist(),
        waits.last_lane[order].tolist(),
        waits.last_start[order].tolist(),
    )
    stretches: list[tuple[int, float, float]] = []
    at, moment = last_lane, wall
    for _ in range(len(starts) + 1):
        row = _latest(start, bounds, at, moment)
        if row < 0:
            break
        begin = min(to_moment[row], moment)
        stretches.append((at, begin, moment))
        at, moment = to_lane[row], begin
    stretches.append((at, 0.0, moment))
    return Path(*(np.array(column) for column in zip(*stretches, strict=True)))


def _latest(start: Floats, bounds: Ints, lane: int, moment: float) -> int:
    """Return the last wait of ``lane`` that began before ``moment``, -1 for none."""
    if lane + 1 >= len(bounds):
        return -1
    low, high = int(bounds[lane]), int(bounds[lane + 1])
    row = low + int(np.searchsorted(start[low:high], moment, side="left")) - 1
    return row if row >= low else -1
