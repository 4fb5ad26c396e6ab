"""Whether two sets of runs differ by more than runs differ anyhow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import Literal

#: unknown: too few runs to say; equal: the same in all runs.
Noise = Literal["unknown", "within", "beyond", "equal"]

#: Runs of each side with which noise can be told.
LEAST_RUNS = 3
#: How often chance alone may produce a difference that is called one.
CHANCE = 0.1


def noise(a: Sequence[float], b: Sequence[float]) -> Noise:
    """Judges the difference of two sets of repeated measurements by the rank-sum test (Mann and
    Whitney), two-sided and exact.

    Nothing is assumed of how the values are distributed. Three runs of each side can just be told
    apart: where each of one side is below each of the other, chance does that in one of ten cases.
    """
    if min(len(a), len(b)) < LEAST_RUNS:
        return "equal" if a and b and len({*a, *b}) == 1 else "unknown"
    if len({*a, *b}) == 1:
        return "equal"
    return "beyond" if chance(a, b) <= CHANCE + 1e-9 else "within"


def chance(a: Sequence[float], b: Sequence[float]) -> float:
    """The part of all ways to deal the values to the sides in which the sums of ranks are as far
    apart as they are, or farther."""
    ranks = _doubled_ranks([*a, *b])
    expected = len(a) * (len(a) + len(b) + 1)
    apart = abs(sum(ranks[: len(a)]) - expected)
    sums = _sums_of_subsets(ranks, len(a))
    return sum(ways for total, ways in sums.items() if abs(total - expected) >= apart) / comb(
        len(ranks), len(a)
    )


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value, from 2 on; equal values share the middle of their ranks."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order, 1)))}
    many = Counter(order)
    return [2 * first[value] + many[value] - 1 for value in values]


def _sums_of_subsets(numbers: Sequence[int], size: int) -> Counter[int]:
    """How many subsets of ``size`` members have each sum."""
    ways: list[Counter[int]] = [Counter({0: 1})] + [Counter() for _ in range(size)]
    for number in numbers:
        for taken in range(size, 0, -1):
            for total, count in ways[taken - 1].items():
                ways[taken][total + number] += count
    return ways[size]
