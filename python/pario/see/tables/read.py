"""The entry of all readers: detects the kind of log and calls its reader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pario.paths import local_path
from pario.see.tables import darshan
from pario.see.tables.errors import ReadError
from pario.see.tables.model import Job
from pario.see.tables.own import read_job
from pario.see.tables.own.blocks import is_log
from pario.see.tables.own.running import is_launcher_running

_EXPECTED = (
    "run.pario directories, process logs of pario (*.plog), or Darshan logs of one job (*.darshan)"
)


def read(
    paths: Sequence[str | os.PathLike[str]], *, apart: bool = True, most_events: int | None = None
) -> Job:
    """Return the job with logs at ``paths``: directories of ``pario run`` (hosts may have their
    own), process logs, or Darshan logs.

    ``apart``: a process of its own reads Darshan logs; otherwise this process does, and some
    damaged logs end it. ``most_events``: if pario's own logs have more events, none is read
    (``Job.events_left_out``), and the time does not grow with their number; by default, none is
    read if they need more than half of the free memory.

    Raises ReadError with the path, its contents and the expected contents.
    """
    if not paths:
        raise ReadError("no path", "nothing", _EXPECTED)
    places = [local_path(path) for path in paths]
    for path in places:
        if not path.exists():
            raise ReadError(path, "no such file or directory", _EXPECTED)
    logs = [log for path in places for log in _logs_at(path)]
    own = [log.suffix == ".plog" or is_log(log) for log in logs]
    if all(own):
        directories = [path for path in places if path.is_dir()]
        launchers = [found for path in directories for found in path.glob("launcher.*.json")]
        descriptions = [path / "job.json" for path in directories]
        return read_job(_source(places), logs, descriptions, launchers, most_events)
    if any(own):
        raise ReadError(
            logs[own.index(False)], "a log of another tool among pario's", "logs of one kind"
        )
    return (darshan.read_job if apart else darshan.collect)(_source(places), logs)


def is_recording(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Tell whether a launcher still records a run into one of the directories, as far as this host
    can tell."""
    return any(is_launcher_running(local_path(path) / "job.json") for path in paths)


def _source(paths: Sequence[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _logs_at(path: Path) -> Sequence[Path]:
    """Return the file itself, or the logs in a directory."""
    if not path.is_dir():
        return [path]
    logs = sorted(path.glob("*.plog")) or sorted(path.glob("*.darshan"))
    if not logs:
        raise ReadError(
            path,
            "a directory without logs",
            f"{_EXPECTED}; pario survey searches directories for logs",
        )
    return logs
