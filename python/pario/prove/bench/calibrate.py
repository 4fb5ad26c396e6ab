"""Measures the parameters of the cost model on a file system: rates and the costs of requests,
files and locks.

All measurements use one host. ``striped(path, count)`` creates a file with ``count`` stripes, or an
ordinary file if the file system has no stripes.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from pario import wording
from pario.copying import drop_from_cache
from pario.prove.bench.ways import Way, make_file, resident

_BIG, _SMALL = 1 << 20, 4096
_REPEAT = 3
_FILES = 50  # created by each thread
_THREADS = 4
_TURNS = 40  # writes of each of two alternating processes
#: Seconds per write. A smaller difference is noise, not the cost of a lock hand-over.
_LEAST = 20e-6
#: The share of a file that may stay in memory before a read from the device.
_LEFT = 0.01
_RATES = (
    Way("through the page cache", "pread"),
    Way("direct", "pread", direct=True),
    Way("direct io_uring", "uring", 8, direct=True),
)
_DEEP = Way("direct io_uring", "uring", 32, direct=True)
_ALONE = Way("direct", "pread", direct=True)


@dataclass(frozen=True)
class Parameter:
    """A value and a description of its measurement."""

    value: float
    how: str


def measure(
    directory: Path, targets: int, striped: Callable[[Path, int], None], size: int, seconds: float
) -> Iterator[tuple[str, Parameter]]:
    """Measure the parameters; yields name and value. Omits those that cannot be measured here.
    Raises OSError."""
    one = directory / "one"
    striped(one, 1)
    make_file(one, size)
    rates, ways = {}, ", ".join(way.name for way in _RATES)
    for name, writes in (("write_rate", True), ("read_rate", False)):
        rates[writes] = _rate(one, writes, seconds)
        how = (
            f"1 MiB at a time, {'to' if writes else 'from'} the device, one target, the fastest of"
            f" {ways}"
        )
        if not writes and (left := _drop_cache(one)) > _LEFT:
            how += (
                f"; {wording.share(left)} of the file stayed in the page cache: the device is"
                " slower"
            )
        yield name, Parameter(rates[writes], how)
    if targets > 1:
        yield from _of_node(
            directory / "all", targets, striped, size, seconds, targets * rates[True]
        )
    yield from _of_requests(one, rates[False], seconds)
    yield from _of_files(directory)
    yield from _of_locks(directory, striped)


def _rate(path: Path, writes: bool, seconds: float) -> float:
    return max(_median(path, way, writes, False, _BIG, seconds) for way in _RATES)


def _median(path: Path, way: Way, writes: bool, random: bool, piece: int, seconds: float) -> float:
    """Measure bytes per second to or from the device, the median of some repetitions; 0 if the way
    is unavailable."""
    from pario import _native

    rates = []
    for _ in range(_REPEAT):
        _drop_cache(path)
        try:
            taken, moved, _ = _native.time_way(
                os.fsencode(path), way.native, (writes, random, writes, piece, seconds)
            )
        except OSError:
            return 0.0
        rates.append(moved / taken)
    return statistics.median(rates)


def _drop_cache(path: Path) -> float:
    """Drop the cached pages of a file; returns the share of it that stays in memory anyhow."""
    with path.open("rb") as file:
        drop_from_cache(file.fileno())
    return resident(path)


def _of_node(
    path: Path,
    targets: int,
    striped: Callable[[Path, int], None],
    size: int,
    seconds: float,
    together: float,
) -> Iterator[tuple[str, Parameter]]:
    """Yield the rate of this host over all targets if it is below the sum of the targets' rates,
    ``together``."""
    striped(path, targets)
    make_file(path, size)
    rate = _rate(path, True, seconds)
    if rate < 0.9 * together:
        yield "node_rate", Parameter(rate, f"pieces of 1 MiB to the device, {targets} targets")


def _of_requests(path: Path, rate: float, seconds: float) -> Iterator[tuple[str, Parameter]]:
    """Yield the costs of small reads, 32 in flight and one at a time, beyond those of their
    bytes."""
    deep, alone = (_median(path, way, False, True, _SMALL, seconds) for way in (_DEEP, _ALONE))
    if not alone:
        alone = _median(path, Way("pread", "pread"), False, True, _SMALL, seconds)
    occupied = max(_SMALL / deep - _SMALL / rate, 0.0) if deep else 0.0
    if occupied:
        yield (
            "request_seconds",
            Parameter(
                occupied, "random reads of 4 KiB, 32 in flight, less the transfer of their bytes"
            ),
        )
    waited = _SMALL / alone - _SMALL / rate - occupied
    if waited > 0:
        yield (
            "round_trip",
            Parameter(
                waited,
                "random reads of 4 KiB, one at a time, less their transfer and time on a target",
            ),
        )


def _of_files(directory: Path) -> Iterator[tuple[str, Parameter]]:
    folder = directory / "files"
    folder.mkdir()
    paths = [
        [folder / f"{thread}-{number}" for number in range(_FILES)] for thread in range(_THREADS)
    ]
    how = f"{_THREADS} threads, {_FILES} files each"
    yield (
        "create_seconds",
        Parameter(_time_opens(paths, os.O_CREAT | os.O_WRONLY), f"{how}, created and closed"),
    )
    yield "open_seconds", Parameter(_time_opens(paths, os.O_RDONLY), f"{how}, opened and closed")


def _time_opens(paths: Sequence[Sequence[Path]], flags: int) -> float:
    """Measure the seconds per file while one thread per list of paths opens and closes them."""

    def work(mine: Sequence[Path]) -> None:
        for path in mine:
            os.close(os.open(path, flags, 0o600))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in paths]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begin) / sum(map(len, paths))


def _of_locks(
    directory: Path, striped: Callable[[Path, int], None]
) -> Iterator[tuple[str, Parameter]]:
    """Yield the cost of a lock hand-over: two processes write alternately to one file, and to one
    file each."""
    shared, first, second = (directory / name for name in ("shared", "first", "second"))
    for path in (shared, first, second):
        striped(path, 1)
    together, apart = (
        statistics.median(_time_alternating(*pair)) for pair in ((shared, shared), (first, second))
    )
    more = together - apart
    how = "two processes of this host write alternately, to one file and to one each"
    if more <= _LEAST:
        how += ": no difference"
    yield "handover_seconds", Parameter(more if more > _LEAST else 0.0, how)


def _time_alternating(first: Path, second: Path) -> list[float]:
    """Measure each write and its fsync, in seconds, while two processes write alternately."""
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=_answer, args=(here, there, second))
    other.start()
    there.close()  # each process holds only its own end, so that the death of the other is seen
    seconds = []
    try:
        with first.open("r+b" if first.exists() else "wb", buffering=0) as file:
            for turn in range(_TURNS):
                seconds.append(_write(file.fileno(), turn * 2))
                here.send(turn)
                seconds.append(here.recv())
    except (EOFError, ConnectionError):
        raise OSError(errno.EIO, "the second writing process has failed", str(second)) from None
    finally:
        here.close()
        other.join()
    return seconds[4:]  # the first writes have other costs than a hand-over


def _answer(others: Connection, mine: Connection, path: Path) -> None:
    others.close()
    with (
        suppress(EOFError, ConnectionError),
        path.open("r+b" if path.exists() else "wb", buffering=0) as file,
    ):
        while True:
            mine.send(_write(file.fileno(), mine.recv() * 2 + 1))


def _write(descriptor: int, number: int) -> float:
    begin = time.perf_counter()
    os.pwrite(descriptor, bytes(_SMALL), number * _SMALL)
    os.fsync(descriptor)
    return time.perf_counter() - begin
