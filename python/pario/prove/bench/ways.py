"""A comparison of the calls that move bytes of a file (``pario bench api``).

One thread, timed natively (src/instruments/ways). A condition is a direction (read or write), an
order (sequential or random) and a medium (memory or device). Each repetition measures all ways
under all conditions.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pario.copying import drop_from_cache
from pario.progress import Show, silent

FORMAT = "pario-bench-api"
VERSION = 1
PIECES = (512, 4096, 65536, 1 << 20)
#: The least pieces in a file: enough for a readv and for the deepest io_uring queue.
LEAST_PIECES = 32
_BLOCK = 8 << 20


@dataclass(frozen=True)
class Way:
    """A way of moving pieces; the fields after the name are those of
    src/instruments/ways/ways.hpp."""

    name: str
    call: str
    at_a_time: int = 1
    buffer: int = 0
    direct: bool = False
    advised: bool = False

    @property
    def native(self) -> tuple[str, int, int, bool, bool]:
        """The arguments of the native function."""
        return (self.call, self.at_a_time, self.buffer, self.direct, self.advised)


#: Named by the reading call; ``spoken`` returns the name of the writing one.
WAYS = (
    Way("read", "read"),
    Way("pread", "pread"),
    Way("readv of 16", "readv", 16),
    Way("stdio", "stdio"),
    Way("stdio, 64 KiB", "stdio", buffer=1 << 16),
    Way("stdio, 1 MiB", "stdio", buffer=1 << 20),
    Way("mmap", "mmap"),
    Way("mmap, advised", "mmap", advised=True),
    Way("io_uring, 1", "uring"),
    Way("io_uring, 8", "uring", 8),
    Way("io_uring, 32", "uring", 32),
    Way("direct", "pread", direct=True),
    Way("direct io_uring, 8", "uring", 8, direct=True),
    Way("direct io_uring, 32", "uring", 32, direct=True),
)


def spoken(way: str, writes: bool) -> str:
    """The name of a way in one direction: ``pwrite`` for ``pread`` if it writes."""
    return way.replace("read", "write") if writes else way


@dataclass(frozen=True)
class Condition:
    """The conditions of a measurement. ``device``: the page cache is empty before reading, and all
    bytes are on the device after writing."""

    writes: bool
    random: bool
    device: bool

    @property
    def name(self) -> str:
        """The name in results and headings."""
        verb = "write" if self.writes else "read"
        where = (
            ("to the device" if self.writes else "from the device")
            if self.device
            else ("to memory" if self.writes else "from memory")
        )
        return f"{verb} {'at random' if self.random else 'in order'} {where}"

    def suits(self, way: Way) -> bool:
        """True if a way can run: direct I/O always uses the device."""
        return self.device or not way.direct


CONDITIONS = tuple(
    Condition(writes, random, device)
    for writes in (False, True)
    for device in (False, True)
    for random in (False, True)
)


@dataclass(frozen=True)
class Request:
    """The request for a comparison. ``seconds``: the most time for one measurement."""

    directory: Path
    size: int = 256 << 20
    pieces: tuple[int, ...] = PIECES
    repeat: int = 3
    seconds: float = 0.05


@dataclass
class _Bench:
    """The measurement in progress and its results."""

    request: Request
    rates: dict[tuple[str, str, int], list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # failed measurements and their errors
    left: float = 0.0  # the largest share of a file that stayed in memory before a device read

    def path(self, condition: Condition) -> Path:
        return self.request.directory / ("written" if condition.writes else "read")

    def once(self, way: Way, condition: Condition, piece: int) -> None:
        """Add one measurement, or the error that prevents it."""
        from pario import _native

        path = self.path(condition)
        self._prepare(path, condition)
        work = (
            condition.writes,
            condition.random,
            condition.writes and condition.device,
            piece,
            self.request.seconds,
        )
        try:
            seconds, moved, wrong = _native.time_way(os.fsencode(path), way.native, work)
        except OSError as error:
            self.missing[f"{way.name}, {condition.name}, pieces of {piece}"] = errno.errorcode.get(
                error.errno or 0, str(error)
            )
            return
        if wrong:
            raise OSError(
                errno.EIO, f"{way.name}: {wrong} pieces of {piece} bytes were wrong", str(path)
            )
        self.rates.setdefault((way.name, condition.name, piece), []).append(moved / seconds)

    def _prepare(self, path: Path, condition: Condition) -> None:
        """Clean the file's pages, then load all of them into memory, or drop them."""
        with path.open("rb", buffering=0) as file:
            os.fdatasync(file.fileno())
            if condition.device:
                drop_from_cache(file.fileno())
            elif resident(path) < 1:
                memory = bytearray(_BLOCK)
                while file.readinto(memory):
                    pass
        if condition.device and not condition.writes:
            self.left = max(self.left, resident(path))


def resident(path: Path) -> float:
    """The share of a file that is in memory; 0 if the file system cannot map files."""
    from pario import _native

    try:
        return _native.resident(os.fsencode(path))
    except OSError:
        return 0.0


def make_file(path: Path, size: int) -> None:
    """Write a file in which each word of eight bytes is its own offset."""
    with path.open("wb", buffering=0) as file:
        for begin in range(0, size, _BLOCK):
            rest = np.arange(begin, min(begin + _BLOCK, size), 8, dtype=np.uint64).data.cast("B")
            while rest:
                rest = rest[file.write(rest) :]
        os.fdatasync(file.fileno())


def measure(request: Request, show: Show = silent) -> dict[str, Any]:
    """Measure all ways; returns the result for JSON. Raises OSError; ways that are unavailable here
    are listed as missing."""
    bench = _Bench(request)
    for condition in CONDITIONS[:: len(CONDITIONS) // 2]:
        make_file(bench.path(condition), request.size)
    turns = list(_turns(request))
    for number, (way, condition, piece) in enumerate(turns):
        show(number, len(turns))
        bench.once(way, condition, piece)
    return _document(bench)


def _turns(request: Request) -> Iterator[tuple[Way, Condition, int]]:
    for _ in range(request.repeat):
        for condition in CONDITIONS:
            for piece in request.pieces:
                for way in WAYS:
                    if condition.suits(way):
                        yield way, condition, piece


def _document(bench: _Bench) -> dict[str, Any]:
    request = bench.request
    rows = [
        {"way": way, "condition": condition, "piece": piece, "rates": rates}
        for (way, condition, piece), rates in bench.rates.items()
    ]
    about = {"size": request.size, "pieces": list(request.pieces), "seconds": request.seconds}
    return {
        "format": FORMAT,
        "version": VERSION,
        "when": time.time(),
        **about,
        "left_in_memory": bench.left,
        "missing": bench.missing,
        "rows": rows,
    }
