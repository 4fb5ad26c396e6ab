"""The results of a comparison of patterns: one ``Measure`` per pattern and direction, over all
repetitions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = "pario-bench-patterns"
VERSION = 1


@dataclass(frozen=True)
class Measure:
    """One direction of one pattern. Seconds are those of the slowest rank, one per repetition;
    calls are counted over all ranks."""

    seconds: tuple[float, ...]
    bytes: int
    calls: int
    system_calls: int

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        """Bytes per second at the median."""
        return self.bytes / self.median

    @property
    def spread(self) -> float:
        """(slowest - fastest) / median of the repetitions."""
        return (max(self.seconds) - min(self.seconds)) / self.median


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
    return Measure(tuple(row["seconds"]), row["bytes"], row["calls"], row["system_calls"])


def best(rows: Iterable[Row], direction: str) -> Row:
    """The row with the highest rate in a direction."""
    return max(rows, key=lambda row: getattr(row, direction).rate)
