"""The results of a comparison of patterns: one ``Measure`` per pattern and direction, over all
repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = "pario-bench-patterns"
VERSION = 1


class Repetitions(tuple[float, ...]):
    """One figure of all repetitions, in their order."""

    __slots__ = ()

    @property
    def median(self) -> float:
        """The median; of an even number of figures the mean of the middle two."""
        return statistics.median(self)

    @property
    def spread(self) -> float:
        """(largest - smallest) / median."""
        return (max(self) - min(self)) / self.median


@dataclass(frozen=True)
class Measure:
    """One direction of one pattern. Seconds are those of the slowest rank; calls are counted over
    all ranks."""

    seconds: Repetitions
    bytes: int
    calls: int
    system_calls: int

    @property
    def rate(self) -> float:
        """Bytes per second at the median."""
        return self.bytes / self.seconds.median


@dataclass(frozen=True)
class Row:
    """The measurements of one pattern."""

    pattern: str
    write: Measure
    read: Measure


def require_format(document: Mapping[str, Any], form: str, version: int) -> None:
    """Raises ValueError if a result in JSON has another format or version."""
    if document.get("format") != form or document.get("version") != version:
        raise ValueError(
            f"no result of {form.replace('-', ' ')} (format {form!r}, version {version} expected)"
        )


def rows_of(document: Mapping[str, Any]) -> list[Row]:
    """The rows of a result in JSON. Raises ValueError for another document."""
    require_format(document, FORMAT, VERSION)
    return [
        Row(name, _measure(row["write"]), _measure(row["read"]))
        for name, row in document["patterns"].items()
    ]


def _measure(row: Mapping[str, Any]) -> Measure:
    return Measure(Repetitions(row["seconds"]), row["bytes"], row["calls"], row["system_calls"])


def best(rows: Iterable[Row], direction: str) -> Row:
    """The row with the highest rate in a direction."""
    return max(rows, key=lambda row: getattr(row, direction).rate)
