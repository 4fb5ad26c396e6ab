"""Functions, communicators and events of a job from its process logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario import _native
from pario.see.tables.model import EVENT, EVENT_KINDS, FUNCTION, LAYERS, Communicator, Job
from pario.see.tables.own.blocks import EVENT_SIZE, Block
from pario.see.tables.own.schema import UNKNOWN
from pario.see.tables.own.view import View
from pario.see.tables.rows import Names, make_lookup, sort_events

_COMMUNICATION = 255  # layer of events of communication
_COUNTERS = 5  # calls, ticks, bytes, longest ticks, failed calls


def add_functions(job: Job, views: Sequence[View]) -> None:
    """Fill functions and function_names."""
    names = Names()
    tables = [_functions_of(view, block, names) for view in views for block in view.log.threads]
    job.function_names = names.list
    job.functions = np.concatenate([np.zeros(0, FUNCTION), *tables])


def _functions_of(view: View, block: Block, names: Names) -> NDArray[Any]:
    known = view.log.schema.functions
    rows = min(block.aux[2], block.available // (8 * _COUNTERS), len(known))
    counters = np.frombuffer(view.log.data, "<u8", rows * _COUNTERS, block.at).reshape(
        rows, _COUNTERS
    )
    called = np.flatnonzero(counters[:, 0]).tolist()
    table = np.zeros(len(called), FUNCTION)
    table["process"] = view.row
    table["thread"] = np.uint64(block.aux[0]).astype(np.int32)
    table["name"] = [names.number(known[i].name) for i in called]
    table["category"] = [known[i].category for i in called]
    for name, column in (("calls", 0), ("bytes", 2), ("failed", 4)):
        table[name] = _counts(view, counters[called, column], [known[i].name for i in called])
    table["seconds"], table["slowest"] = view.time.durations(counters[called][:, [1, 3]].T)
    return table


def _counts(view: View, values: NDArray[Any], functions: Sequence[str]) -> NDArray[np.int64]:
    """Return a column of counters of functions as signed numbers; damage is named after the
    functions."""
    impossible = [
        name for name, value in zip(functions, values.tolist(), strict=True) if value >> 63
    ]
    return view.counts(values, f"counters of {', '.join(impossible)}")


def add_communicators(job: Job, views: Sequence[View]) -> list[NDArray[np.int32]]:
    """Fill communicators; return for each process the communicator of each of its numbers, with -1
    as last element.

    A communicator without a common id (0: intercommunicators, and those without a blocking
    collective call) stands for one process only.
    """
    numbers: dict[tuple[int, ...], int] = {}
    tables = []
    for view in views:
        of_number: dict[int, int] = {}
        for number, communicator in _communicators(view).items():
            key = (communicator.id,) if communicator.id else (0, view.row, number)
            if key not in numbers:
                numbers[key] = len(job.communicators)
                job.communicators.append(communicator)
            of_number[number] = numbers[key]
        tables.append(make_lookup(of_number))
    return tables


def _communicators(view: View) -> dict[int, Communicator]:
    """Return the communicators of one process by its own numbers; a later note replaces an earlier
    one."""
    found = {}
    for note in view.log.notes_of("communicator"):
        try:
            size = int(note["size"])
            found[int(note["number"])] = Communicator(
                int(note["id"]), size, _ranks(str(note.get("ranks", "")), size)
            )
        except (KeyError, TypeError, ValueError):
            view.log.remarks.damages.append(f"a communicator note is damaged: {note}")
    return found


def _ranks(text: str, size: int) -> tuple[int, ...]:
    """Return world ranks from text ranges: ``0-3,8``. Raises ValueError for more than ``size``."""
    ranks: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        found = range(int(first), int(last or first) + 1)
        if len(ranks) + len(found) > size:
            raise ValueError(f"ranks {text!r}; expected {size}")
        ranks += found
    return tuple(ranks)


@dataclass(frozen=True)
class _Chunks:
    """The decodable event blocks of one process, thread tails last: offset, bytes, events,
    compressed."""

    view: View
    table: NDArray[np.uint64]

    @property
    def events(self) -> int:
        return int(self.table[:, 2].sum())


def add_events(
    job: Job,
    views: Sequence[View],
    files: Sequence[NDArray[np.int32]],
    communicators: Sequence[NDArray[np.int32]],
) -> None:
    """Fill events, sorted by start. ``files`` and ``communicators`` map the numbers of each process
    to those of the job."""
    names = Names()
    for name in job.function_names:
        names.number(name)
    chunks = [_chunks(view) for view in views]
    events = np.zeros(sum(c.events for c in chunks), EVENT)
    first, damaged = 0, False
    for process, its_files, its_communicators in zip(chunks, files, communicators, strict=True):
        rows = events[first : first + process.events]
        damaged |= _decode(
            job, process, names, np.append(its_files, np.int32(-1)), its_communicators, rows
        )
        first += len(rows)
    job.function_names = names.list
    job.events = sort_events(events[events["process"] >= 0] if damaged else events)


def _chunks(view: View) -> _Chunks:
    rows = []
    for block in view.log.chunks:
        if _native.frame_events(view.log.payload(block)) == block.count:
            rows.append((block.at, block.used, block.count, 1))
        else:
            view.log.remarks.damages.append(
                f"an event chunk at {block.at} does not hold its {block.count} events: passed over"
            )
    for block in view.log.threads:
        at = block.aux[1]
        count = min(block.count, max(block.available - at, 0) // EVENT_SIZE)
        if count:
            rows.append((block.at + at, count * EVENT_SIZE, count, 0))
    return _Chunks(view, np.array(rows, np.uint64).reshape(-1, 4))


def _decode(
    job: Job,
    chunks: _Chunks,
    names: Names,
    files: NDArray[np.int32],
    communicators: NDArray[np.int32],
    rows: NDArray[Any],
) -> bool:
    """Decode the chunks of one process into ``rows``; return True if some are damaged, and set the
    process of their rows to -1."""
    if not len(rows):
        return False
    view, time = chunks.view, chunks.view.time
    functions = _function_table(view, names)
    out = rows.view(np.uint8).reshape(len(rows), EVENT.itemsize)
    bad = _native.decode_events(
        view.log.data,
        chunks.table.ravel(),
        view.row,
        time.ticks0,
        time.seconds0,
        time.seconds_per_tick,
        functions,
        files,
        communicators,
        out,
    )
    job.processes["seen"][view.row] = np.fmax(job.processes["seen"][view.row], np.max(rows["end"]))
    ends = np.cumsum(chunks.table[:, 2]).astype(np.int64)
    for chunk in bad:
        count = int(chunks.table[chunk, 2])
        rows["process"][int(ends[chunk]) - count : int(ends[chunk])] = -1
        view.log.remarks.damages.append(f"an event chunk of {count} events is damaged: passed over")
    return bool(bad)


def _function_table(view: View, names: Names) -> NDArray[np.int32]:
    """Return name, kind, layer and 0 for each function ID; one more row for unknown IDs."""
    rows = []
    for function in [*view.log.schema.functions, UNKNOWN]:
        layer = LAYERS.index(function.category) if function.category in LAYERS else _COMMUNICATION
        op = function.op if function.category in LAYERS else "communicate"
        rows.append(
            (
                names.number(function.name),
                EVENT_KINDS.index(op if op in EVENT_KINDS else "other"),
                layer,
                0,
            )
        )
    return np.array(rows, np.int32).ravel()
