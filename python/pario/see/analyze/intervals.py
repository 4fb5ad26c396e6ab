"""Sets of time intervals of many lanes at once: union, measure, coverage of bins. Vectorised, and
independent of I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, order_by_group


@dataclass(frozen=True)
class Intervals:
    """Half-open intervals, each belonging to a lane (0, 1, 2 ...)."""

    start: Floats
    end: Floats
    lane: Ints

    def __len__(self) -> int:
        return len(self.start)

    def __add__(self, other: Intervals) -> Intervals:
        return Intervals(
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            np.concatenate([self.lane, other.lane]),
        )


def nothing() -> Intervals:
    """Return the empty set of intervals."""
    return Intervals(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))


class IntervalSet:
    """The union of intervals in each lane, which measures its part of ``[a, b)``."""

    def __init__(self, intervals: Intervals, horizon: float) -> None:
        self._period = horizon + 1.0
        clipped = np.clip(intervals.start, 0.0, horizon), np.clip(intervals.end, 0.0, horizon)
        order = order_by_group(intervals.lane, clipped[0])
        start, end = (times + intervals.lane * self._period for times in clipped)
        start, reach = start[order], np.maximum.accumulate(end[order])
        first = np.ones(len(start), bool)
        first[1:] = start[1:] > reach[:-1]
        self._start = start[first]
        self._end = (
            reach[np.append(np.flatnonzero(first)[1:] - 1, len(reach) - 1)] if len(reach) else reach
        )
        self._covered = np.append(0.0, np.cumsum(self._end - self._start))

    def measure(self, lane: Ints | int, a: Floats | float, b: Floats | float) -> Floats:
        """Return the covered seconds of ``[a, b)`` in ``lane``; all arguments broadcast."""
        shift = np.asarray(lane) * self._period
        return np.maximum(
            self._before(np.asarray(b) + shift) - self._before(np.asarray(a) + shift), 0.0
        )

    def _before(self, moment: Floats) -> Floats:
        index = np.searchsorted(self._start, moment, side="right")
        covered = self._covered[index]
        if not len(self._end):
            return covered
        inside = np.where(index > 0, np.maximum(self._end[index - 1] - moment, 0.0), 0.0)
        return np.asarray(covered - inside)

    def runs(self) -> tuple[Floats, Floats, Ints]:
        """Return starts, ends and lanes of the disjoint runs, sorted by lane and start."""
        lane = np.floor(self._start / self._period).astype(np.int64)
        return self._start - lane * self._period, self._end - lane * self._period, lane


def spread_weights(intervals: Intervals, weight: Floats, edges: Floats, lanes: int) -> Floats:
    """Distribute each interval's weight evenly over its length; return the sums per lane and bin as
    an array ``[lanes, len(edges) - 1]``."""
    if not len(intervals) or not lanes:
        return np.zeros((lanes, len(edges) - 1))
    period = float(edges[-1]) + 1.0
    start = np.clip(intervals.start, edges[0], edges[-1])
    length = np.maximum(np.clip(intervals.end, edges[0], edges[-1]) - start, 1e-7)
    rate = weight / length
    shift = intervals.lane * period
    moments = (np.arange(lanes)[:, None] * period + edges[None, :]).ravel()
    ramps = _ramp(start + shift, rate, moments) - _ramp(start + length + shift, rate, moments)
    return np.maximum(np.diff(ramps.reshape(lanes, len(edges)), axis=1), 0.0)


def _ramp(begin: Floats, rate: Floats, moments: Floats) -> Floats:
    order = np.argsort(begin, kind="stable")
    begin, rate = begin[order], rate[order]
    rates = np.append(0.0, np.cumsum(rate))
    offsets = np.append(0.0, np.cumsum(rate * begin))
    index = np.searchsorted(begin, moments, side="right")
    return np.asarray(rates[index] * moments - offsets[index])
