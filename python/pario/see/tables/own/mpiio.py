"""The notes of pario's own MPI-IO on closed files: statistics, and outcomes of hints.

The lowest rank of the communicator that opened a file writes the note, over all ranks of that
communicator.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import MPIIO, MPIIO_LARGEST, MPIIO_PHASES, MPIIO_SUMS, HintOutcome, Job
from pario.see.tables.own.files import file_of, integer
from pario.see.tables.own.view import View
from pario.see.tables.rows import Names

_TEXTS = ("key", "requested", "applied", "effective", "reason")
_IN_NOTE = {"least": "min", "mean": "avg", "most": "max"}
_SECONDS = tuple(f"{phase}_{which}" for phase in MPIIO_PHASES for which in _IN_NOTE)


def add_mpiio(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Fill mpiio and audit. Paths without a row of files are added to the paths."""
    names = _names(job)
    of_path: dict[int, list[NDArray[Any]]] = defaultdict(list)
    audit: dict[HintOutcome, None] = {}
    for view, files in zip(views, of_record, strict=True):
        rows: dict[int, NDArray[Any]] = {}
        for note in view.log.notes_of("mpiio"):
            path = _path_of(job, names, view, files, note)
            file = path if path < len(job.files) else -1
            row = _row(note, path, file)
            rows[path] = _combine_openings(rows[path], row) if path in rows else row
            audit |= dict.fromkeys(outcomes(note, file, names.list[path], "mpiio"))
        for path, row in rows.items():
            of_path[path].append(row)
    job.paths = names.list
    ranks = max((integer(view.log.process.get("mpi_size")) for view in views), default=0)
    job.mpiio = np.concatenate(
        [
            np.zeros(0, MPIIO),
            *(_combine_communicators(np.concatenate(rows), ranks) for rows in of_path.values()),
        ]
    )
    job.audit = list(audit)


def _names(job: Job) -> Names:
    """Return the paths of the job, numbered like its files."""
    names = Names()
    for path in job.paths:
        names.number(path)
    return names


def _path_of(
    job: Job, names: Names, view: View, files: NDArray[np.int32], note: dict[str, Any]
) -> int:
    """Return the path of the note, by its record or by the path of the program."""
    file = file_of(files, note)
    if file >= 0:
        return int(job.files["path"][file])
    directory = str(view.log.process_note.get("cwd", ""))
    return names.number(posixpath.normpath(posixpath.join(directory, str(note.get("path", "")))))


def _row(note: dict[str, Any], path: int, file: int) -> NDArray[Any]:
    row = np.zeros(1, MPIIO)
    row["path"], row["file"], row["opens"] = path, file, 1
    row["ranks"], row["nodes"] = (
        min(integer(note.get(name)), 2**31 - 1) for name in ("ranks", "nodes")
    )
    statistics, timers = _object(note, "statistics"), _object(note, "timers_ns")
    for name in (*MPIIO_SUMS, *MPIIO_LARGEST):
        row[name] = integer(statistics.get(name))
    for phase in MPIIO_PHASES:
        for which, key in _IN_NOTE.items():
            row[f"{phase}_{which}"] = integer(_object(timers, phase).get(key)) / 1e9
    return row


def _object(note: dict[str, Any], key: str) -> dict[str, Any]:
    value = note.get(key)
    return value if isinstance(value, dict) else {}


def _combine_openings(before: NDArray[Any], row: NDArray[Any]) -> NDArray[Any]:
    """Combine two openings of a file by the same rank: times add up."""
    both = before.copy()
    for name in ("opens", *MPIIO_SUMS, *_SECONDS):
        both[name] += row[name]
    for name in ("ranks", "nodes", *MPIIO_LARGEST):
        both[name] = np.maximum(both[name], row[name])
    return both


def _combine_communicators(rows: NDArray[Any], ranks: int) -> NDArray[Any]:
    """Combine the openings of a file by several communicators: least and most times count."""
    one = rows[:1].copy()
    for name in ("opens", *MPIIO_SUMS):
        one[name] = rows[name].sum()
    for name in ("nodes", *MPIIO_LARGEST):
        one[name] = rows[name].max()
    weights = np.maximum(rows["ranks"], 1)
    for phase in MPIIO_PHASES:
        one[f"{phase}_least"], one[f"{phase}_most"] = (
            rows[f"{phase}_least"].min(),
            rows[f"{phase}_most"].max(),
        )
        one[f"{phase}_mean"] = np.average(rows[f"{phase}_mean"], weights=weights)
    for name in ("ranks", "writers"):
        one[name] = min(int(rows[name].sum()), ranks or int(rows[name].sum()))
    return one


def outcomes(note: dict[str, Any], file: int, path: str, table: str) -> Iterator[HintOutcome]:
    """Yield the outcomes of the settings in a note."""
    hints = note.get("hints")
    for hint in hints if isinstance(hints, list) else ():
        if isinstance(hint, dict) and hint.get("key"):
            yield HintOutcome(
                file, path, **{name: str(hint.get(name, "")) for name in _TEXTS}, table=table
            )
