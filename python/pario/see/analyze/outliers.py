"""Single calls that take far longer than the others of their kind: from events, otherwise from the
longest call of each row of counters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario.see.analyze.arrays import Ints, columns
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Outlier
from pario.see.tables.model import EVENT_KINDS, FILE_LAYERS, LAYERS

#: An outlier takes at least so many seconds, and so many times the median of its kind.
LEAST_SECONDS, LEAST_FACTOR = 0.01, 20.0
#: Fewer calls have no usual duration.
ENOUGH_CALLS = 8
#: More outliers than this part of a kind, and more than ``FEW``, are a habit, not an exception.
RARE, FEW = 0.01, 3
MOST = 10

_KINDS = tuple(EVENT_KINDS.index(kind) for kind in ("read", "write", "open", "close", "sync"))
_HAS_OUTLIERS = np.isin(np.arange(len(EVENT_KINDS)), _KINDS)
_COLLECTIVE, _FAILED = 8, 1


def outliers(facts: Facts) -> tuple[Outlier, ...]:
    """Return the outliers that take longest, at most ``MOST``."""
    found = _from_events(facts) if facts.times.exact else _from_counters(facts)
    outer: list[Outlier] = []
    for outlier in sorted(found, key=lambda outlier: -outlier.seconds):
        if not any(_is_inside(outlier, other) for other in outer):
            outer.append(outlier)
    return tuple(outer[:MOST])


def _is_inside(call: Outlier, other: Outlier) -> bool:
    """Return True if a call was made by another one, of a higher layer."""
    same = (call.file, call.lane) == (other.file, other.lane)
    return same and other.start <= call.start <= other.start + other.seconds


def _from_events(facts: Facts) -> Iterator[Outlier]:
    rows = facts.times.io_events
    rows = rows[facts.job.events["layer"][rows] < len(FILE_LAYERS)]
    names = ("kind", "count", "flags", "duration", "function", "length")
    kind, count, flags, duration, function, length = columns(facts.job.events, rows, *names)
    if duration.max(initial=0.0) < LEAST_SECONDS:
        return
    own = np.flatnonzero(
        _HAS_OUTLIERS[kind] & (count == 1) & ((flags & (_COLLECTIVE | _FAILED)) == 0)
    )
    rows, duration = rows[own], duration[own]
    for members in _kinds_of_calls(kind[own], function[own], length[own]):
        seconds = duration[members]
        if seconds.max(initial=0.0) < LEAST_SECONDS:
            continue
        usual = float(np.median(seconds))
        slow = members[seconds >= max(LEAST_SECONDS, LEAST_FACTOR * usual)]
        if len(members) >= ENOUGH_CALLS and len(slow) <= max(FEW, RARE * len(members)):
            yield from (_of_event(facts, int(rows[at]), usual, len(members)) for at in slow)


def _kinds_of_calls(kind: Ints, function: Ints, length: Ints) -> Iterator[Ints]:
    """Yield the positions of comparable calls: of one function, and of one magnitude of bytes."""
    sized = (kind == _KINDS[0]) | (kind == _KINDS[1])
    magnitude = np.where(sized, np.frexp(np.maximum(length, 1))[1], 0)
    key = (function.astype(np.int32) << 8) + magnitude
    order = np.argsort(key, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _of_event(facts: Facts, row: int, usual: float, calls: int) -> Outlier:
    event = facts.job.events[row]
    lane = int(facts.lanes.of(event["process"][None])[0])
    return Outlier(
        function=facts.job.function_names[event["function"]],
        file=facts.path(event["file"]),
        lane=lane,
        rank=facts.lanes.rank(lane),
        start=float(event["start"]),
        seconds=float(event["duration"]),
        usual=usual,
        calls=calls,
    )


def _from_counters(facts: Facts) -> Iterator[Outlier]:
    """Yield rows whose longest read or write is an outlier among the calls of the row."""
    for word in ("read", "write"):
        longest, calls = facts.column(f"slowest_{word}_time"), facts.column(f"{word}s")
        rest = facts.column(f"{word}_time") - longest
        usual = np.maximum(rest, 0.0) / np.maximum(calls - 1, 1)
        alone = facts.column(f"collective_{word}s") == 0
        enough = facts.stored & alone & (calls >= ENOUGH_CALLS)
        slow = enough & (longest >= LEAST_SECONDS) & (longest >= LEAST_FACTOR * usual)
        if slow.sum() > max(FEW, RARE * enough.sum()):
            continue
        for row in np.flatnonzero(slow):
            layer = LAYERS[facts.records["layer"][row]]
            yield Outlier(
                function=f"{'MPI-IO ' if layer == 'mpiio' else ''}{word}",
                file=facts.path(facts.file[row]),
                lane=int(facts.lane[row]),
                rank=facts.lanes.rank(int(facts.lane[row])),
                start=float("nan"),
                seconds=float(longest[row]),
                usual=float(usual[row]),
                calls=int(calls[row]),
            )
