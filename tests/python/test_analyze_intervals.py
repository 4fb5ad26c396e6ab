"""Interval sets and spreading, checked against brute force on random intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pario.see.analyze.intervals import Intervals, IntervalSet, spread_weights

interval = st.tuples(st.integers(0, 90), st.integers(0, 20), st.integers(0, 2))


def of(rows: list[tuple[int, int, int]]) -> Intervals:
    start, length, lane = (
        (np.array(column, float) for column in zip(*rows, strict=True))
        if rows
        else (np.zeros(0),) * 3
    )
    return Intervals(start, start + length, lane.astype(np.int64))


def cells_covered(rows: list[tuple[int, int, int]], lane: int, a: int, b: int) -> int:
    covered = {
        second
        for start, length, own in rows
        if own == lane
        for second in range(start, start + length)
    }
    return sum(a <= second < b for second in covered)


@given(st.lists(interval, max_size=30), st.integers(0, 2), st.integers(0, 50), st.integers(0, 60))
def test_measure_counts_overlapping_intervals_once(
    rows: list[tuple[int, int, int]], lane: int, a: int, length: int
) -> None:
    measured = IntervalSet(of(rows), 120.0).measure(lane, float(a), float(a + length))
    assert measured == pytest.approx(cells_covered(rows, lane, a, a + length))


@given(st.lists(interval, max_size=30))
def test_runs_are_disjoint_and_cover_the_same_points_as_the_intervals(
    rows: list[tuple[int, int, int]],
) -> None:
    start, end, lane = IntervalSet(of(rows), 120.0).runs()
    assert (start[1:] > end[:-1] - 1e-9)[lane[1:] == lane[:-1]].all()
    assert (end - start).sum() == pytest.approx(
        sum(cells_covered(rows, own, 0, 120) for own in range(3))
    )


@given(st.lists(interval, max_size=30))
def test_spreading_keeps_the_sum(rows: list[tuple[int, int, int]]) -> None:
    weight = np.arange(1.0, len(rows) + 1)
    binned = spread_weights(of(rows), weight, np.linspace(0, 120, 13), 3)
    assert binned.sum() == pytest.approx(weight.sum(), rel=1e-4)
    assert binned.shape == (3, 12)


def test_spreading_puts_weight_where_the_interval_lies() -> None:
    binned = spread_weights(
        of([(10, 20, 1)]), np.array([4.0]), np.array([0.0, 20.0, 30.0, 40.0]), 2
    )
    assert binned == pytest.approx(np.array([[0, 0, 0], [2, 2, 0]]))
