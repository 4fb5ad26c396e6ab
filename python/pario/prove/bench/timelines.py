"""Timelines of the ranks of a pattern: makes the panels of a picture from its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario import wording
from pario.errors import ParioError
from pario.see.analyze.lanes import find_lanes
from pario.see.analyze.spans import Kind, Panel, merge_spans
from pario.see.tables.model import EVENT_KINDS, LAYERS, Job

_MPIIO, _COMMUNICATION = LAYERS.index("mpiio"), 255
#: In drawing order: later kinds cover earlier ones.
KINDS = (
    Kind("in MPI-IO", "#d9e2ec", 1.0),
    Kind("communication", "#9aa5b1", 0.5),
    Kind("open, close, others", "#bd8a10", 0.9),
    Kind("write", "#0b5cad", 0.8),
    Kind("read", "#00846a", 0.8),
)
#: Spans with a smaller distance, as a share of the panel's seconds, are merged; of more ranks than
#: MOST_ROWS, only every n-th is shown.
_APART, MOST_ROWS = 1 / 800, 64
#: The last barriers of a rank, as indices from the end: after both transfers, before reading,
#: before writing (pario.prove.bench.worker).
_AFTER, _READING, _WRITING = -1, -2, -3


def panels_of(name: str, job: Job, directory: Path) -> list[Panel]:
    """The panels of the last write and the last read of a pattern, for files below a directory.
    Raises ParioError."""
    events = job.events
    lanes = find_lanes(job).of(events["process"])
    ours = np.array(
        [job.path(number).startswith(f"{directory}/") for number in range(len(job.files))]
        or [False]
    )
    communicates = events["layer"] == _COMMUNICATION
    shown = (lanes >= 0) & (
        communicates | ours[np.where(communicates, 0, np.maximum(events["file"], 0))]
    )
    barriers = _barriers(job, lanes)
    if len(barriers) < -_WRITING:
        raise ParioError(f"the log of {name} does not show where it begins")
    made = []
    for title, first, last in (("write", _WRITING, _READING), ("read", _READING, _AFTER)):
        begin, end = float(barriers["end"][first]), float(barriers["start"][last])
        within = np.flatnonzero(shown & (events["start"] >= begin) & (events["end"] <= end))
        within = within[events["start"][within] < _find_ends(job, lanes, begin, end)[lanes[within]]]
        seconds = max(float(events["end"][within].max(initial=begin)) - begin, 1e-6)
        made.append(
            _panel(
                f"{name}: {title}, {wording.seconds(seconds)}",
                job,
                events[within],
                lanes[within],
                begin,
                seconds,
            )
        )
    return made


def _barriers(job: Job, lanes: NDArray[Any]) -> NDArray[Any]:
    """The barriers of the first rank, in order of time."""
    found = job.events[_calls(job, "MPI_Barrier") & (lanes == 0)]
    return np.asarray(found[np.argsort(found["start"])])


def _find_ends(job: Job, lanes: NDArray[Any], begin: float, end: float) -> NDArray[Any]:
    """The time at which each rank ended its transfer and began the worker's waiting barrier."""
    events = job.events
    waits = np.flatnonzero(
        _calls(job, "MPI_Ibarrier")
        & (lanes >= 0)
        & (events["start"] >= begin)
        & (events["end"] <= end)
    )
    found = np.full(int(lanes.max(initial=0)) + 1, end)
    np.minimum.at(found, lanes[waits], events["start"][waits])
    return found


def _calls(job: Job, name: str) -> NDArray[Any]:
    is_called = job.select_functions(lambda function: function == name)[job.events["function"]]
    return np.asarray((job.events["layer"] == _COMMUNICATION) & is_called)


def _panel(
    title: str, job: Job, events: NDArray[Any], lanes: NDArray[Any], begin: float, seconds: float
) -> Panel:
    every = -(-max(job.ranks, 1) // MOST_ROWS)
    ranks = range(0, max(job.ranks, 1), every)
    kind = _kinds(events)
    rows = []
    for rank in ranks:
        of_rank = lanes == rank
        spans = {
            shown.name: merge_spans(
                events["start"][chosen] - begin,
                np.minimum(events["end"][chosen] - begin, seconds),
                seconds * _APART,
            )
            for number, shown in enumerate(KINDS)
            if np.any(chosen := of_rank & (kind == number))
        }
        rows.append(spans)
    return Panel(title, seconds, [f"rank {rank}" for rank in ranks], rows)


def _kinds(events: NDArray[Any]) -> NDArray[Any]:
    """The index in KINDS of each event."""
    names = [kind.name for kind in KINDS]
    other, write, read = (names.index(name) for name in ("open, close, others", "write", "read"))
    of_kind = np.array([{"write": write, "read": read}.get(kind, other) for kind in EVENT_KINDS])
    found = of_kind[np.minimum(events["kind"], len(of_kind) - 1)]
    found[events["layer"] == _MPIIO] = names.index("in MPI-IO")
    found[events["layer"] == _COMMUNICATION] = names.index("communication")
    return np.asarray(found)
