"""The runs at a path: one, or repetitions of one."""

from __future__ import annotations

import re
from pathlib import Path

from pario.see.tables.errors import ReadError

_LOGS = ("*.plog", "*.darshan")


def runs_at(path: Path) -> list[Path]:
    """Return the runs: a log or a directory with logs is one run, a directory of such directories
    holds repetitions.

    Raises ReadError if there is neither.
    """
    expected = "a directory that pario run left, one with repetitions of a run, or a Darshan log"
    if not path.exists():
        raise ReadError(path, "no such file or directory", expected)
    if not path.is_dir() or _has_logs(path):
        return [path]
    runs = [entry for entry in path.iterdir() if entry.is_dir() and _has_logs(entry)]
    if not runs:
        raise ReadError(path, "a directory without logs", expected)
    return sorted(runs, key=_in_order)


def _has_logs(directory: Path) -> bool:
    return any(next(directory.glob(pattern), None) for pattern in _LOGS)


def _in_order(path: Path) -> list[tuple[int, str]]:
    """Sort numbers in names as numbers: 2 before 10."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)
    ]
