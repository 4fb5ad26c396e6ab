"""The happens-before order of writes of different lanes, from matched calls.

Pure: knows lanes, points in program order and bytes, but no log. Every lane has *steps* in program
order. A *meeting* orders all steps before it on one of its lanes before all steps after it on the
others. A *message* orders the steps before its send before the steps after its receive. A
*channel* stands for messages that the log cannot match: a receive may have got any send that began
before the receive ended, so that it is ordered after all of them. That may hide an unordered pair,
but never invents one.

Writes of one byte are unordered if and only if two *consecutive* ones are, in any order of
processing that respects the order. So each byte needs only its last write, and memory grows with
the writes of one epoch, not with their pairs.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pario.see.analyze.arrays import Ints

Kind = Literal["write", "meet", "send", "receive", "publish", "acquire"]


@dataclass(frozen=True)
class Step:
    """One step of a lane. ``key``: number of the meeting or message; of a write its file.

    ``publish`` and ``acquire`` are a send and a receive of the channel.
    """

    lane: int
    time: float
    kind: Kind
    key: int = -1
    begin: int = 0  # bytes [begin, end) of a write
    end: int = 0
    write: int = -1  # the number of a write


@dataclass(frozen=True)
class Overlap:
    """Bytes ``[begin, end)`` of a file that two unordered writes write."""

    file: int
    begin: int
    end: int
    first: int  # numbers of the writes
    second: int


@dataclass
class _LastWrites:
    """The last write of each byte of a file: disjoint ranges, sorted by begin."""

    begins: list[int] = field(default_factory=list)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)  # end, lane, stamp, write

    def replace(self, begin: int, end: int, lane: int, stamp: int, write: int) -> list[_Range]:
        """Make a write the last one of its bytes; return the ranges that it replaces."""
        low = max(bisect_right(self.begins, begin) - 1, 0)
        high = bisect_left(self.begins, end)
        replaced, starts, rows = [], [], []
        for start, row in zip(self.begins[low:high], self.rows[low:high], strict=True):
            if row[0] <= begin:
                starts.append(start)
                rows.append(row)
                continue
            replaced.append((max(start, begin), min(row[0], end), *row[1:]))
            if start < begin:
                starts.append(start)
                rows.append((begin, *row[1:]))
        tail = [(self.rows[at], at) for at in range(low, high) if self.rows[at][0] > end]
        starts.append(begin)
        rows.append((end, lane, stamp, write))
        if tail:
            starts.append(end)
            rows.append(tail[-1][0])
        self.begins[low:high], self.rows[low:high] = starts, rows
        return replaced


_Range = tuple[int, int, int, int, int]  # begin, end, lane, stamp, write


class _Clocks:
    """Vector clocks. ``known[a, b]``: how many steps of lane ``b``, counted at its outgoing points,
    are before the present of lane ``a``."""

    def __init__(self, lanes: int) -> None:
        self.known = np.zeros((lanes, lanes), np.int64)
        self.channel = np.zeros(lanes, np.int64)

    def advance(self, lane: int) -> Ints:
        """Count an outgoing point of a lane; return the clock that it passes on."""
        self.known[lane, lane] += 1
        return np.array(self.known[lane])

    def learn(self, lane: int, clock: Ints) -> None:
        """Order the present of a lane after a clock."""
        np.maximum(self.known[lane], clock, out=self.known[lane])

    def is_before(self, lane: int, stamp: int, present: int) -> bool:
        """Tell whether the step of ``lane`` with that stamp is before the present of another."""
        return lane == present or bool(self.known[present, lane] > stamp)


class Order:
    """Walks through the steps of all lanes in an order that respects happens-before."""

    def __init__(self, steps: Iterable[Step], lanes: int) -> None:
        self._queues: list[deque[Step]] = [deque() for _ in range(lanes)]
        self._members: dict[int, int] = {}
        self._senders: set[int] = set()
        for step in steps:
            self._queues[step.lane].append(step)
            if step.kind == "meet":
                self._members[step.key] = self._members.get(step.key, 0) + 1
            if step.kind == "send":
                self._senders.add(step.key)
        self._clocks = _Clocks(lanes)
        self._waiting: dict[int, list[int]] = {}  # meeting: lanes that have arrived
        self._sent: dict[int, Ints] = {}
        self._receivers: dict[int, int] = {}  # message: lane that waits for it
        self._files: dict[int, _LastWrites] = {}
        self._ready: list[tuple[float, int]] = []

    def overlaps(self) -> list[Overlap]:
        """Return overlapping unordered writes: for each byte that has any, at least one pair. May
        be called once."""
        found: list[Overlap] = []
        for lane in range(len(self._queues)):
            self._push(lane)
        while self._ready or self._release():
            if self._ready:  # a released lane may have no further step
                _, lane = heapq.heappop(self._ready)
                found += self._take(self._queues[lane][0])
        return found

    def _push(self, lane: int) -> None:
        if self._queues[lane]:
            heapq.heappush(self._ready, (self._queues[lane][0].time, lane))

    def _next(self, lane: int) -> None:
        self._queues[lane].popleft()
        self._push(lane)

    def _take(self, step: Step) -> list[Overlap]:
        lane, clocks = step.lane, self._clocks
        if step.kind == "meet":
            self._arrive(step)
            return []
        if step.kind == "receive" and step.key in self._senders and step.key not in self._sent:
            self._receivers[step.key] = lane
            return []
        overlaps = self._write(step) if step.kind == "write" else []
        if step.kind == "send":
            self._sent[step.key] = clocks.advance(lane)
            if step.key in self._receivers:
                self._push(self._receivers.pop(step.key))
        elif step.kind == "receive" and step.key in self._sent:
            clocks.learn(lane, self._sent.pop(step.key))
        elif step.kind == "publish":
            np.maximum(clocks.channel, clocks.advance(lane), out=clocks.channel)
        elif step.kind == "acquire":
            clocks.learn(lane, clocks.channel)
        self._next(lane)
        return overlaps

    def _arrive(self, step: Step) -> None:
        arrived = self._waiting.setdefault(step.key, [])
        arrived.append(step.lane)
        if len(arrived) == self._members[step.key]:
            self._leave(step.key)

    def _leave(self, key: int) -> None:
        lanes = self._waiting.pop(key)
        joint = np.maximum.reduce([self._clocks.advance(lane) for lane in lanes])
        for lane in lanes:
            self._clocks.learn(lane, joint)
            self._next(lane)

    def _release(self) -> bool:
        """Release lanes that wait for each other in a circle, which only a log with gaps or wrong
        matches has; they count as ordered with all. Return False if none waits."""
        if self._waiting:
            self._leave(min(self._waiting))
            return True
        if self._receivers:
            key = min(self._receivers)
            lane = self._receivers.pop(key)
            self._clocks.learn(lane, self._clocks.known.max(axis=0))
            self._next(lane)
            return True
        return False

    def _write(self, step: Step) -> list[Overlap]:
        last = self._files.setdefault(step.key, _LastWrites())
        stamp = int(self._clocks.known[step.lane, step.lane])
        replaced = last.replace(step.begin, step.end, step.lane, stamp, step.write)
        return [
            Overlap(step.key, begin, end, write, step.write)
            for begin, end, lane, earlier, write in replaced
            if not self._clocks.is_before(lane, earlier, step.lane)
        ]


def unordered_overlaps(steps: Sequence[Step], lanes: int) -> list[Overlap]:
    """Return overlapping unordered writes of different lanes. ``steps`` are in program order within
    each lane."""
    return Order(steps, lanes).overlaps()
