"""The beginning of a run, for replays whose time is limited: the first calls of each process, cut
where no rank waits for a call that another one no longer makes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.collective import ALONE
from pario.prove.replay.script import BARRIER, MPI, Script
from pario.see.tables.model import EVENT_KINDS, Job

_WRITE, _READ, _RESIZE = (EVENT_KINDS.index(kind) for kind in ("write", "read", "truncate"))
#: Bytes of a block of a file system, the least that a write takes from its space.
_BLOCK = 4096
#: Calls on an open file that are collective over the ranks that opened it, beside transfers.
_TOGETHER = ("Open", "Close", "Set_view", "Set_size", "Preallocate", "Sync")


@dataclass(frozen=True)
class Beginning:
    """The limits of a beginning. It ends as soon as one of them is reached."""

    seconds: float = inf  # in played calls, of the process that spends most in them
    size: float = inf  # bytes that all processes read, and that their files take


def count_space(job: Job, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the bytes that each event takes from the space of a file system, at most: a small
    write takes a block if it is the first one there, a preallocation its length."""
    events = job.events[rows]
    length, offset = np.maximum(events["length"], 0), events["offset"]
    writes = events["kind"] == _WRITE
    taken = np.where(writes | (events["kind"] == _RESIZE), length, 0).astype(np.float64)
    small = np.flatnonzero(writes & (length > 0) & (length < _BLOCK) & (offset >= 0))
    taken[small] = 0
    ends = (offset[small], offset[small] + length[small] - 1)
    blocks = _find_first(events["file"][small], *(end // _BLOCK for end in ends))
    np.add.at(taken, small[blocks], _BLOCK)
    sizes = np.flatnonzero(job.select_functions("MPI_File_preallocate".__eq__)[events["function"]])
    first = sizes[_find_first(events["file"][sizes], offset[sizes])]
    taken[first] = np.maximum(offset[first], 0)
    return taken


def _find_first(files: NDArray[Any], *places: NDArray[Any]) -> NDArray[np.int64]:
    """Return the first row of each place in each file; one for each of them."""
    numbers = [place * (files.max(initial=0) + 1) + files for place in places]
    first = np.unique(np.stack(numbers, axis=1), return_index=True)[1]
    return np.asarray(first // len(places))


def end_of_beginning(
    events: NDArray[Any], lanes: NDArray[Any], space: NDArray[Any], beginning: Beginning
) -> float:
    """Return the start time of the last event of a beginning. ``events``: the played ones, in
    order of time; ``lanes``: their processes; ``space``: of :func:`count_space`."""
    if not len(events):
        return inf
    seconds = np.maximum(events["end"] - events["start"], 0.0)
    over = np.zeros(len(events), bool)
    for lane in np.unique(lanes):
        mine = np.flatnonzero(lanes == lane)
        over[mine] = np.cumsum(seconds[mine]) > beginning.seconds
    reads = np.where(events["kind"] == _READ, events["length"], 0)
    over |= np.cumsum(reads + space) > beginning.size
    first = np.flatnonzero(over)
    return float(events["start"][first[0]]) if len(first) else inf


def cut(
    script: Script, operations: NDArray[Any], lanes: NDArray[Any], kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return ``kept`` without the operations for which a rank would wait in vain: each group of
    ranks makes the same number of collective calls.

    ``operations`` are sorted by lane and time, and ``kept`` selects the first ones of each lane.
    """
    kept = kept.copy()
    groups = groups_of(script, operations, lanes)
    calls = {number: np.flatnonzero(groups == number) for number in range(len(script.groups))}
    changed = True
    while changed:
        changed = False
        for number, ranks in enumerate(script.groups):
            mine = [calls[number][lanes[calls[number]] == rank] for rank in ranks]
            least = min((int(kept[rows].sum()) for rows in mine), default=0)
            for rank, rows in zip(ranks, mine, strict=True):
                if kept[rows].sum() > least:
                    end = int(np.searchsorted(lanes, rank, "right"))
                    kept[rows[least] : end] = False
                    changed = True
    return kept


def groups_of(script: Script, operations: NDArray[Any], lanes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the group of ranks that make each operation together; -1: its process
    makes it alone. ``operations`` are sorted by lane and time."""
    groups = np.full(len(operations), -1, np.int64)
    barriers = operations["verb"] == BARRIER
    groups[barriers] = operations["path"][barriers]
    rows = np.flatnonzero(operations["verb"] == MPI)
    if not len(rows):
        return groups
    names = np.array(script.names)[operations["other"][rows]]
    key = lanes[rows].astype(np.int64) << 32 | operations["slot"][rows]
    order = np.argsort(key, kind="stable")
    rows, names, key = rows[order], names[order], key[order]
    opens = names == "Open"
    # The last open of the same slot: the slots' calls are consecutive and begin with an open.
    last = np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))
    opened = operations["length"][rows][last]
    known = opens[last] & (key[last] == key) & (opened != ALONE)
    together = np.isin(names, _TOGETHER)
    for mark in ("_all", "_ordered"):
        together |= np.char.find(names, mark) >= 0
    groups[rows] = np.where(known & together, opened, -1)
    return groups
