"""Conclusions from the rates of ways, in words: the fastest way, the piece size from which a way
pays off, the cost of random order. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pario import wording
from pario.prove.bench.results import Repetitions, require_format
from pario.prove.bench.ways import CONDITIONS, FORMAT, VERSION, Condition, spoken

#: A piece is large enough if it reaches this share of the best rate.
ENOUGH = 0.9
#: The most ways that are named as not clearly slower than the fastest one.
_NAMED = 3

#: First way, second way, and the conditions under which they are compared.
_PAIRS: tuple[tuple[str, str, Callable[[Condition], bool]], ...] = (
    ("stdio", "read", lambda condition: not condition.device),
    ("stdio, 64 KiB", "stdio", lambda condition: not condition.device and not condition.random),
    (
        "stdio, 1 MiB",
        "stdio, 64 KiB",
        lambda condition: not condition.device and not condition.random,
    ),
    ("readv of 16", "read", lambda condition: not condition.device and not condition.random),
    ("mmap", "pread", lambda condition: True),
    ("mmap, advised", "mmap", lambda condition: condition.device and not condition.writes),
    ("io_uring, 32", "pread", lambda condition: condition.device),
    ("direct", "pread", lambda condition: condition.device),
    ("direct io_uring, 8", "direct", lambda condition: condition.device),
    ("direct io_uring, 32", "direct io_uring, 8", lambda condition: condition.device),
)


class Rates(Repetitions):
    """Bytes per second of one way with pieces of one size."""

    __slots__ = ()

    def beats(self, other: Rates) -> bool:
        """True if each repetition is faster than all repetitions of the other."""
        return min(self) > max(other)


@dataclass(frozen=True)
class Result:
    """All rates of a comparison of ways, by way, condition and piece."""

    pieces: tuple[int, ...]
    rates: Mapping[tuple[str, str, int], Rates] = field(default_factory=dict)

    def of(self, way: str, condition: Condition, piece: int) -> Rates | None:
        """The rates of a way; None if it could not be measured."""
        return self.rates.get((way, condition.name, piece))

    def ways(self, condition: Condition) -> list[str]:
        """The ways measured under a condition, in order."""
        return list(dict.fromkeys(way for way, name, _ in self.rates if name == condition.name))


def result_of(document: Mapping[str, Any]) -> Result:
    """Read a result from JSON. Raises ValueError for another document."""
    require_format(document, FORMAT, VERSION)
    rows = {
        (row["way"], row["condition"], row["piece"]): Rates(row["rates"])
        for row in document["rows"]
    }
    return Result(tuple(document["pieces"]), rows)


def verdicts(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Yield each measured condition with its sentences."""
    for condition in CONDITIONS:
        if result.ways(condition):
            yield (
                condition.name,
                [
                    text
                    for conclude in (_fastest, _enough, _order, _pairs)
                    for text in conclude(result, condition)
                ],
            )


def _fastest(result: Result, condition: Condition) -> Iterator[str]:
    """Yield the fastest way with the smallest pieces, and with the largest."""
    for piece in dict.fromkeys((result.pieces[0], result.pieces[-1])):
        measured = {
            way: rates
            for way in result.ways(condition)
            if (rates := result.of(way, condition, piece))
        }
        if measured:
            best = max(measured, key=lambda way: measured[way].median)
            alike = [
                way for way in measured if way != best and not measured[best].beats(measured[way])
            ]
            rate = wording.rate(measured[best].median)
            fastest = f"{spoken(best, condition.writes)} is fastest, {rate}"
            yield f"Pieces of {wording.block(piece)}: {fastest}{_rivals(alike, condition)}."


def _rivals(ways: Sequence[str], condition: Condition) -> str:
    """Describe the ways that may be as fast, some of them by name."""
    named = "; ".join(spoken(way, condition.writes) for way in ways[:_NAMED])
    more = f"; {len(ways) - _NAMED} more" if len(ways) > _NAMED else ""
    return f" (no clear difference: {named}{more})" if ways else ""


def _enough(result: Result, condition: Condition) -> Iterator[str]:
    """Yield the piece size from which larger pieces gain little: a good size of a buffer."""
    rates = {
        piece: found.median
        for piece in result.pieces
        if (found := result.of("read", condition, piece))
    }
    if len(rates) > 1:
        piece = next(piece for piece, rate in rates.items() if rate >= ENOUGH * max(rates.values()))
        first = min(rates)
        than = (
            f"; pieces of {wording.block(first)} reach"
            f" {wording.percent(rates[first], max(rates.values()))}"
            if piece != first
            else ""
        )
        yield (
            f"{_call(condition)} needs pieces of {wording.block(piece)} for {wording.share(ENOUGH)}"
            f" of its best rate{than}."
        )


def _call(condition: Condition) -> str:
    return "write()" if condition.writes else "read()"


def _order(result: Result, condition: Condition) -> Iterator[str]:
    if not condition.random:
        return
    ordered = Condition(condition.writes, False, condition.device)
    rates = [
        (piece, result.of("pread", condition, piece), result.of("pread", ordered, piece))
        for piece in result.pieces
    ]
    shares = {piece: here.median / there.median for piece, here, there in rates if here and there}
    free = [
        piece
        for piece in shares
        if all(shares[other] >= ENOUGH for other in shares if other >= piece)
    ]
    if not shares:
        return
    first = min(shares)
    costs = (
        f"pieces of {wording.block(first)} move at {wording.share(shares[first])} of the rate in"
        " order"
    )
    until = (
        f"; from {wording.block(free[0])} on the order does not matter"
        if free and free[0] != first
        else ""
    )
    yield (
        "The order does not matter."
        if free and free[0] == first
        else f"Out of order, {costs}{until}."
    )


def _pairs(result: Result, condition: Condition) -> Iterator[str]:
    for one, other, asked in _PAIRS:
        if asked(condition):
            pieces = [
                piece
                for piece in result.pieces
                if result.of(one, condition, piece) and result.of(other, condition, piece)
            ]
            if pieces:
                yield _compare_ways(result, condition, one, other, pieces)


def _compare_ways(
    result: Result, condition: Condition, one: str, other: str, pieces: Sequence[int]
) -> str:
    """Describe the piece sizes at which one way is clearly faster or slower than another."""

    def beats(first: str, second: str) -> list[int]:
        return [
            piece
            for piece in pieces
            if _rates(result, first, condition, piece).beats(
                _rates(result, second, condition, piece)
            )
        ]

    faster, slower = beats(one, other), beats(other, one)
    first, second = spoken(one, condition.writes), spoken(other, condition.writes)
    if not faster and not slower:
        return f"{first} and {second} do not differ clearly."
    parts = []
    rates = {
        piece: (
            _rates(result, one, condition, piece).median
            / _rates(result, other, condition, piece).median
        )
        for piece in pieces
    }
    for word, where in (("faster", faster), ("slower", slower)):
        if where:
            factors = {piece: rates[piece] for piece in where}
            most = max(factors, key=lambda piece: abs(factors[piece] - 1))
            parts.append(
                f"{word} than {second} {_range(where, pieces)} ({factors[most]:.2g} times its rate"
                f" at {wording.block(most)})"
            )
    return f"{first} is {', '.join(parts)}."


def _rates(result: Result, way: str, condition: Condition, piece: int) -> Rates:
    found = result.of(way, condition, piece)
    assert found
    return found


def _range(where: Sequence[int], pieces: Sequence[int]) -> str:
    """Describe a selection of the piece sizes."""
    if list(where) == list(pieces):
        return "at every size" if len(pieces) > 1 else f"at {wording.block(pieces[0])}"
    if list(where) == list(pieces[: len(where)]):
        return f"up to {wording.block(where[-1])}"
    if list(where) == list(pieces[-len(where) :]):
        return f"from {wording.block(where[0])} on"
    return "at " + ", ".join(map(wording.block, where))
