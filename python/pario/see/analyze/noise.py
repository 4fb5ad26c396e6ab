"""A test for a difference of two sets of runs beyond the noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import Literal

#: unknown: too few runs to say; equal: the same in all runs.
Noise = Literal["unknown", "within", "beyond", "equal"]

#: The least number of runs of each side for a statement about noise.
LEAST_RUNS = 3
#: The largest probability of a difference by chance that still counts as a difference.
CHANCE = 0.1


def noise(a: Sequence[float], b: Sequence[float]) -> Noise:
    """Judge the difference of two sets of repeated measurements by the rank-sum test (Mann and
    Whitney), two-sided and exact.

    The test assumes no distribution of the values. Three runs of each side are just enough: if all
    values of one side are below those of the other, the probability by chance is one in ten.
    """
    if min(len(a), len(b)) < LEAST_RUNS:
        return _of_few(a, b)
    if len({*a, *b}) == 1:
        return "equal"
    return "beyond" if chance(a, b) <= CHANCE + 1e-9 else "within"


def _of_few(a: Sequence[float], b: Sequence[float]) -> Noise:
    """Judge fewer runs: ranges that overlap show no difference; others prove none."""
    if not a or not b:
        return "unknown"
    if len({*a, *b}) == 1:
        return "equal"
    return "within" if max(min(a), min(b)) <= min(max(a), max(b)) else "unknown"


def chance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the fraction of all assignments of the values to the sides whose sums of ranks differ
    at least as much as the actual ones."""
    ranks = _doubled_ranks([*a, *b])
    expected = len(a) * (len(a) + len(b) + 1)
    apart = abs(sum(ranks[: len(a)]) - expected)
    sums = _sums_of_subsets(ranks, len(a))
    return sum(ways for total, ways in sums.items() if abs(total - expected) >= apart) / comb(
        len(ranks), len(a)
    )


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value, from 2 on; equal values share the mean of their
    ranks."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order, 1)))}
    many = Counter(order)
    return [2 * first[value] + many[value] - 1 for value in values]


def _sums_of_subsets(numbers: Sequence[int], size: int) -> Counter[int]:
    """Return the number of subsets of ``size`` members by their sum."""
    ways: list[Counter[int]] = [Counter({0: 1})] + [Counter() for _ in range(size)]
    for number in numbers:
        for taken in range(size, 0, -1):
            for total, count in ways[taken - 1].items():
                ways[taken][total + number] += count
    return ways[size]
