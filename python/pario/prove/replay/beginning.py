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
from pario.see.tables.model import EVENT_KINDS

_WRITE, _READ = EVENT_KINDS.index("write"), EVENT_KINDS.index("read")
#: Calls on an open file that are collective over the ranks that opened it, beside transfers.
_TOGETHER = ("Open", "Close", "Set_view", "Set_size", "Preallocate", "Sync")


@dataclass(frozen=True)
class Beginning:
    """The limits of a beginning. It ends as soon as one of them is reached."""

    seconds: float = inf  # in played calls, of the process that spends most in them
    size: float = inf  # bytes that all processes read and write


def end_of_beginning(events: NDArray[Any], lanes: NDArray[Any], beginning: Beginning) -> float:
    """Return the start time of the last event of a beginning. ``events``: the played ones, in
    order of time; ``lanes``: their processes."""
    if not len(events):
        return inf
    seconds = np.maximum(events["end"] - events["start"], 0.0)
    over = np.zeros(len(events), bool)
    for lane in np.unique(lanes):
        mine = np.flatnonzero(lanes == lane)
        over[mine] = np.cumsum(seconds[mine]) > beginning.seconds
    moved = np.isin(events["kind"], (_READ, _WRITE))
    over |= np.cumsum(np.where(moved, events["length"], 0).astype(np.float64)) > beginning.size
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
