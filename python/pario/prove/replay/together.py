"""A run whose ranks transfer independently, as if its source made the same calls collectively:
shows the gain of that change before anybody makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.beginning import groups_of
from pario.prove.replay.collective import ALONE
from pario.prove.replay.script import MPI, Script

#: Independent blocking transfers and their collective forms.
COLLECTIVE = {
    "Write_at": "Write_at_all",
    "Read_at": "Read_at_all",
    "Write": "Write_all",
    "Read": "Read_all",
}


def make_collective(script: Script) -> Script | None:
    """Return the script with collective calls in place of independent ones, on files that several
    ranks have opened together. A rank with fewer calls than the others makes empty ones.

    None if there are no such calls, or if the ranks do not pass through the same collective calls
    in between, so that the change of the source would not be a simple one.
    """
    names = [*script.names, *(name for name in COLLECTIVE.values() if name not in script.names)]
    changed = _Change(script, names)
    if not any(len(rows) for rows in changed.independent):
        return None
    seats = changed.seats()
    return None if seats is None else replace(script, seats=seats, names=names)


class _Change:
    """The independent calls of each seat, and the group of ranks that could make them together."""

    def __init__(self, script: Script, names: list[str]) -> None:
        self._script, self._names = script, names
        self._form = np.array(
            [names.index(COLLECTIVE[name]) if name in COLLECTIVE else -1 for name in script.names]
            or [-1]
        )
        self._openers = [_openers(script, seat) for seat in script.seats]
        self.independent = [
            np.flatnonzero(
                (seat["verb"] == MPI)
                & (self._form[np.where(seat["verb"] == MPI, seat["other"], 0)] >= 0)
                & (openers >= 0)
            )
            for seat, openers in zip(script.seats, self._openers, strict=True)
        ]

    def seats(self) -> list[NDArray[Any]] | None:
        """The changed operations of all seats; None if the ranks' calls do not match."""
        runs = [list(self._runs(number)) for number in range(len(self._script.seats))]
        made: list[NDArray[Any]] = []
        for seat, of in enumerate(runs):
            added = np.zeros(len(self._script.seats[seat]), np.int64)
            for place, (key, begin, end) in enumerate(of):
                if key is None:
                    continue
                most = 0
                for rank in self._script.groups[key[0]]:
                    if place >= len(runs[rank]) or runs[rank][place][0] != key:
                        return None
                    most = max(most, runs[rank][place][2] - runs[rank][place][1])
                added[end - 1] = most - (end - begin)
            made.append(self._make_collective(seat, added))
        return made

    def _runs(self, seat: int) -> Iterator[tuple[tuple[int, ...] | None, int, int]]:
        """Yield the first and the end row of each run of independent calls on one file, with other
        calls after it. The key of a run is the group of ranks, the file's path, the collective
        form, and the number of the group's collective calls before it; None: the seat makes no such
        calls here."""
        operations = self._script.seats[seat]
        groups = groups_of(self._script, operations, np.zeros(len(operations), np.int64))
        before = {
            group: np.cumsum(groups == group) for group in {*self._openers[seat].tolist()} - {-1}
        }
        keys: list[tuple[int, ...] | None] = [None] * len(operations)
        for row in self.independent[seat].tolist():
            group = int(self._openers[seat][row])
            form = int(self._form[operations["other"][row]])
            keys[row] = (group, int(operations["path"][row]), form, int(before[group][row]))
        at = 0
        while at < len(operations):
            key, begin = keys[at], at
            while at < len(operations) and keys[at] == key and key is not None:
                at += 1
            yield key, begin, at
            while at < len(operations) and keys[at] is None:
                at += 1

    def _make_collective(self, seat: int, added: NDArray[np.int64]) -> NDArray[Any]:
        """The operations of a seat with collective calls, and with ``added`` empty calls after each
        of them."""
        operations, rows = self._script.seats[seat].copy(), self.independent[seat]
        operations["other"][rows] = self._form[operations["other"][rows]]
        source = np.repeat(np.arange(len(operations)), added + 1)
        made = operations[source]
        empty = np.flatnonzero(np.diff(source) == 0) + 1
        made["length"][empty] = made["pause"][empty] = 0
        return made


def _openers(script: Script, seat: NDArray[Any]) -> NDArray[np.int64]:
    """The group of ranks, at least two, that opened the file of each MPI-IO call; -1: no such."""
    opened: dict[int, int] = {}
    found = np.full(len(seat), -1, np.int64)
    for row in np.flatnonzero(seat["verb"] == MPI).tolist():
        slot = int(seat["slot"][row])
        if script.names[int(seat["other"][row])] == "Open":
            group = int(seat["length"][row])
            several = group != ALONE and len(script.groups[group]) > 1
            opened[slot] = group if several else -1
        found[row] = opened.get(slot, -1)
    return found
