"""Stored results of benchmarks, in a folder per file system, and the changes since an earlier
result."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pario.prove.bench import results, s3d_table, verdicts, ways
from pario.publishing import keep_file

#: For each measured quantity one rate (or other figure of which more is better) per repetition.
Series = dict[str, list[float]]


@dataclass(frozen=True)
class Kind:
    """A kind of result: the settings that comparable results share, and the function that reads its
    figures."""

    settings: tuple[str, ...]
    series: Callable[[Mapping[str, Any]], Series]


def _of_patterns(document: Mapping[str, Any]) -> Series:
    rows = results.rows_of(document)
    both = [
        (f"{row.pattern}, {direction}", getattr(row, direction))
        for row in rows
        for direction in ("write", "read")
    ]
    return {
        name: [measure.bytes / seconds for seconds in measure.seconds] for name, measure in both
    }


def _of_ways(document: Mapping[str, Any]) -> Series:
    rates = verdicts.result_of(document).rates
    return {
        f"{condition}, pieces of {piece}: {way}": list(found)
        for (way, condition, piece), found in rates.items()
    }


def _of_s3d(document: Mapping[str, Any]) -> Series:
    rows = s3d_table.rows_of(document)
    return {row.way: [row.bytes / seconds for seconds in row.seconds] for row in rows}


KINDS = {
    results.FORMAT: Kind(
        ("ranks", "shape", "groups", "mpi", "stripes", "sync", "mpiio"), _of_patterns
    ),
    ways.FORMAT: Kind(("size", "pieces", "seconds"), _of_ways),
    s3d_table.FORMAT: Kind(("ranks", "grid", "mpi", "mpiio"), _of_s3d),
}


def keep(folder: Path, document: Mapping[str, Any]) -> Path:
    """Add a result to the history of a file system in ``folder``; returns its path. Raises
    ParioError."""
    moment = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(moment // 10**9))
    path = (
        folder
        / f"{document['format'].removeprefix('pario-bench-')}-{stamp}.{moment % 10**9:09}.json"
    )
    keep_file(path, json.dumps(document, indent=1) + "\n")
    return path


def read(path: Path) -> dict[str, Any]:
    """Read a result. Raises OSError, or ValueError or KeyError for a file that is no result."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") not in KINDS:
        raise ValueError(f"no result of pario bench (format {', '.join(KINDS)} expected)")
    series_of(document)
    return document


def series_of(document: Mapping[str, Any]) -> Series:
    """The figures of a result."""
    return KINDS[document["format"]].series(document)


def last(folder: Path, like: Mapping[str, Any]) -> tuple[Path, dict[str, Any]] | None:
    """The newest result in ``folder`` with the settings of ``like``; damaged files are skipped."""
    name = f"{like['format'].removeprefix('pario-bench-')}-*.json"
    for path in sorted(folder.glob(name), reverse=True):
        try:
            document = read(path)
        except (OSError, ValueError, KeyError):
            continue
        if not different(document, like):
            return path, document
    return None


def different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Settings in which two results differ."""
    if one["format"] != other["format"]:
        return ["format"]
    return [
        key
        for key in KINDS[one["format"]].settings
        if _plain(one.get(key)) != _plain(other.get(key))
    ]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Change:
    """The change of a figure since an earlier result. ``clear``: all repetitions are faster, or all
    slower, than all earlier ones."""

    name: str
    factor: float
    clear: bool


def changes(before: Series, now: Series) -> Iterator[Change]:
    """Compare the figures that both results have."""
    for name, values in now.items():
        if earlier := before.get(name):
            yield Change(
                name,
                statistics.median(values) / statistics.median(earlier),
                _apart(earlier, values),
            )


def _apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """True if both have more than one repetition and their ranges do not touch."""
    return min(len(one), len(other)) > 1 and (min(one) > max(other) or max(one) < min(other))
