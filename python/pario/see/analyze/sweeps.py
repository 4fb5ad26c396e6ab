"""Kept sweeps of stripes: the seconds that ``pario stripe sweep`` measured on a file system, which
decide the stripes of similar files."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pario import state
from pario.documents import Format
from pario.errors import ParioError

FORMAT = Format("pario-stripe-sweep", "a sweep", 1)
#: The largest number of processes in the native core, and of characters in its variables.
_MOST, _ROOM = 2**32 - 1, 1023
#: Stripes that take at most this share more than the best are as good; the fewest of them count.
ALIKE = 0.05


@dataclass(frozen=True)
class Point:
    """One stripe count and stripe size: the seconds of each repetition, by phase (``write``,
    ``read``, or ``replay`` for a log), and the model's prediction of them."""

    count: int
    unit: int
    seconds: Mapping[str, tuple[float, ...]]
    predicted: Mapping[str, float]

    @property
    def total(self) -> float:
        """The sum of the medians of all phases."""
        return sum(map(statistics.median, self.seconds.values()))


@dataclass(frozen=True)
class Sweep:
    """The points of one file system and one pattern: a file of ``size`` bytes that ``writers``
    processes use."""

    type: str  # of the file system, as in the table of mounts
    mount: str
    kind: str  # of src/core/layout/layout.def
    targets: int  # 0: unknown
    writers: int
    size: int
    pattern: str  # in words
    when: float  # seconds since the epoch
    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point with the fewest stripes among those as fast as the fastest."""
        least = min(point.total for point in self.points)
        alike = [point for point in self.points if point.total <= (1 + ALIKE) * least]
        return min(alike, key=lambda point: (point.count, point.total))

    @property
    def slowest(self) -> Point:
        """The point with most seconds."""
        return max(self.points, key=lambda point: point.total)

    def find_share_saved(self, count: int) -> float | None:
        """Return the share of the seconds with ``count`` stripes that the best stripes save; None
        if that count was not measured."""
        now = min((point.total for point in self.points if point.count == count), default=0.0)
        return 1 - self.best.total / now if now else None

    def distance(self, size: int, writers: int) -> float:
        """The difference from other files, as the logarithm of a factor; infinite if the sweep says
        nothing about them (src/core/layout/policy.hpp)."""
        from pario import _native

        return _native.compare_with_measured(
            self.size, min(self.writers, _MOST), size, min(writers, _MOST)
        )


def find(
    sweeps: Iterable[Sweep], mount: tuple[str, str], targets: int, size: int, writers: int
) -> Sweep | None:
    """Find the sweep that decides for a file, the nearest and newest one; None without any.
    ``mount``: type and mount point of its file system; ``targets`` 0: unknown."""
    fitting = [
        (sweep.distance(size, writers), -sweep.when, sweep)
        for sweep in sweeps
        if (sweep.type, sweep.mount) == mount and (not targets or sweep.targets == targets)
    ]
    best = min(fitting, key=lambda row: row[:2], default=None)
    return best[2] if best and best[0] < math.inf else None


def load_sweeps() -> list[Sweep]:
    """All kept sweeps; damaged files are skipped."""
    found = []
    for path in sorted(state.folder("stripes").glob("*.json")):
        with suppress(ParioError):
            found.append(FORMAT.read(path, _parse))
    return [sweep for sweep in found if sweep is not None]


def describe_for_library(sweeps: Iterable[Sweep]) -> str:
    """Return the best stripes of shared files as the preloaded library reads them
    (PARIO_STRIPE_SWEEPS), the newest sweeps first, as many as it takes."""
    text = ""
    for sweep in sorted(sweeps, key=lambda sweep: -sweep.when):
        best = sweep.best
        one = f"{sweep.size}:{sweep.writers}:{best.count}:{best.unit}={sweep.mount}"
        longer = f"{text},{one}" if text else one
        # The library does not know how many files of one process there are at a time.
        if sweep.writers > 1 and "," not in sweep.mount and len(os.fsencode(longer)) <= _ROOM:
            text = longer
    return text


def keep(sweep: Sweep, filesystem: str) -> Path:
    """Keep a sweep in place of the last one of the same pattern; returns its path. Raises
    ParioError. ``filesystem``: the name of the file system (:func:`pario.state.name_of`)."""
    path = state.folder("stripes") / f"{filesystem}-{sweep.writers}x{sweep.size}.json"
    FORMAT.write(path, asdict(sweep))
    return path


def document(sweep: Sweep) -> dict[str, Any]:
    """The sweep as JSON."""
    return FORMAT.document(asdict(sweep))


def _parse(fields: dict[str, Any]) -> Sweep:
    """Make a sweep of its fields. Raises ValueError, KeyError or TypeError."""
    points = tuple(
        Point(
            int(point["count"]),
            int(point["unit"]),
            {name: tuple(map(float, values)) for name, values in point["seconds"].items()},
            {name: float(value) for name, value in point["predicted"].items()},
        )
        for point in fields.pop("points")
    )
    sweep = Sweep(**fields, points=points)
    if not points or sweep.size < 1 or sweep.writers < 1 or not all(p.seconds for p in points):
        raise ValueError("no measured point")
    return sweep
