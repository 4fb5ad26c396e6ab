"""The limits of a test, and the text of a test that exceeds them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pario import wording
from pario.cli.numbers import size
from pario.cli.threshold import Threshold, threshold
from pario.see.analyze.usage import BYTES, NAMES, Usage

#: The seconds, or the share of the test's time, that I/O and that findings may cost.
COSTS = {"io": "I/O", "lost": "findings"}
#: The keyword that selects files.
FILES_OF = "of"
#: Columns of the text of a failure.
WIDTH = 100


@dataclass(frozen=True)
class Limits:
    """The most that a test may do, by name."""

    counts: Mapping[str, int]
    costs: Mapping[str, Threshold]
    of: str = "*"  # files whose calls count, as patterns in pario.toml


@dataclass(frozen=True)
class Excess:
    """An exceeded limit: its name, and the value and the limit as text."""

    name: str
    value: str
    limit: str
    worst: str = ""  # "log.txt 10,000"
    place: str = ""


def parse_limits(arguments: Collection[Any], keywords: Mapping[str, Any]) -> Limits:
    """Return the limits of a marker. Raises ValueError with the wrong argument and the expected
    ones."""
    names = [*NAMES, *COSTS]
    wrong = [repr(value) for value in arguments]
    wrong += [name for name in keywords if name not in (*names, FILES_OF)]
    if wrong or not any(name in names for name in keywords):
        found = ", ".join(wrong) or "no limit"
        raise ValueError(f"limit_io: {found}; expected limits by name: {', '.join(names)}")
    try:
        return Limits(
            {name: _whole(name, keywords[name]) for name in NAMES if name in keywords},
            {name: threshold(str(keywords[name])) for name in COSTS if name in keywords},
            str(keywords.get(FILES_OF, "*")),
        )
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"limit_io: {error}") from error


def _whole(name: str, value: Any) -> int:
    if isinstance(value, str) and name in BYTES:
        return size(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise argparse.ArgumentTypeError(f"{name}={value!r}; expected a whole number from 0 on")
    return value


def excess(
    limits: Limits, used: Mapping[str, Usage], costs: Mapping[str, float], wall: float
) -> list[Excess]:
    """Return the exceeded limits: of the counts ``used``, and of the seconds in ``costs``."""
    found = [
        _of_count(used[name], limit)
        for name, limit in limits.counts.items()
        if used[name].total > limit
    ]
    return found + [
        Excess(name, f"{wording.seconds(costs[name])} of {wording.seconds(wall)}", str(limit))
        for name, limit in limits.costs.items()
        if limit.is_exceeded(costs[name], wall)
    ]


def _of_count(used: Usage, limit: int) -> Excess:
    worst = f"{Path(used.worst).name} {_count(used.name, used.most)}"
    return Excess(
        used.name, _count(used.name, used.total), _count(used.name, limit), worst, used.place
    )


def _count(name: str, value: int) -> str:
    return wording.exact_size(value) if name in BYTES else f"{value:,}"


def describe(found: Collection[Excess], used: Collection[Usage], advice: str, logs: Path) -> str:
    """Return the text of the failure: exceeded limits, all counts, ``advice`` and the command that
    shows the report of ``logs``."""
    return "\n".join(_lines(found, used, advice, logs))


def _lines(
    found: Collection[Excess], used: Collection[Usage], advice: str, logs: Path
) -> Iterator[str]:
    yield "The test exceeds its limits of I/O."
    for one in found:
        place = f", at {one.place}" if one.place else ""
        most = f" (most: {one.worst}{place})" if one.worst else ""
        yield f"  {one.name}: {one.value}, limit {one.limit}{most}"
    counts = [f"{one.name} {_count(one.name, one.total)}" for one in used if one.total]
    yield textwrap.fill(f"It made: {', '.join(counts)}.", WIDTH, subsequent_indent="  ")
    yield advice
    yield f"The report: pario report {logs}"
