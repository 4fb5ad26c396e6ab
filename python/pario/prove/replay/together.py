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
from pario.prove.replay.script import MPI, OPERATION, Script

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
        parts = [list(self._parts(number)) for number in range(len(self._script.seats))]
        made: list[NDArray[Any]] = []
        keys = [[key for key, _, _ in of] for of in parts]
        for seat, of in enumerate(parts):
            operations: list[NDArray[Any]] = []
            for place, (key, calls, rest) in enumerate(of):
                if key is not None:
                    ranks = self._script.groups[key[0]]
                    if any(place >= len(keys[rank]) or keys[rank][place] != key for rank in ranks):
                        return None
                    most = max(len(parts[rank][place][1]) for rank in ranks)
                    calls = self._extend(calls, most)
                operations += [calls, rest]
            made.append(np.concatenate(operations) if operations else self._script.seats[seat][:0])
        return made

    def _parts(
        self, seat: int
    ) -> Iterator[tuple[tuple[int, ...] | None, NDArray[Any], NDArray[Any]]]:
        """Yield runs of independent calls on one file with the calls that follow them. The key of a
        run is the group of ranks, the file's path, the collective form, and the number of the
        group's collective calls before it; None: the seat makes no such calls here."""
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
            calls = operations[begin:at].copy()
            if key is not None:
                calls["other"] = key[2]
            begin = at
            while at < len(operations) and keys[at] is None:
                at += 1
            yield key, calls, operations[begin:at]

    @staticmethod
    def _extend(calls: NDArray[Any], most: int) -> NDArray[Any]:
        """Add empty calls at the end of the last one."""
        empty = np.repeat(calls[-1:], most - len(calls))
        empty["length"] = empty["pause"] = 0
        return np.concatenate([calls, empty]).astype(OPERATION, copy=False)


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
