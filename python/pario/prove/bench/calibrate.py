"""What a file system can do, in the parameters of the cost model: rates and costs of requests,
files and locks.

All of it is measured from one host. ``striped(path, count)`` makes a new file in so many stripes,
or an ordinary one where there are none.
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
from pario.prove.bench.ways import Way, make_file, resident

_BIG, _SMALL = 1 << 20, 4096
_REPEAT = 3
_FILES = 50  # that are made by each thread
_THREADS = 4
_TURNS = 40  # of two that write in turn
#: Small differences of large numbers: what is below this many seconds a write is no hand-over.
_LEAST = 20e-6
#: The part of a file that may stay in memory when it is read from the device.
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
    """A value, and how it was measured."""

    value: float
    how: str


def measure(
    directory: Path, targets: int, striped: Callable[[Path, int], None], size: int, seconds: float
) -> Iterator[tuple[str, Parameter]]:
    """Names and values; what cannot be measured here is left out. Raises OSError."""
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
        if not writes and (left := _forget(one)) > _LEFT:
            how += (
                f"; {wording.share(left)} of the file stayed in memory when it was to be forgotten:"
                " the device is slower"
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
    """Bytes per second, to or from the device; 0 where that is not possible."""
    from pario import _native

    rates = []
    for _ in range(_REPEAT):
        _forget(path)
        try:
            taken, moved, _ = _native.time_way(
                os.fsencode(path), way.native, (writes, random, writes, piece, seconds)
            )
        except OSError:
            return 0.0
        rates.append(moved / taken)
    return statistics.median(rates)


def _forget(path: Path) -> float:
    """Leaves a file on its device only; the part of it that is in memory all the same."""
    with path.open("rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return resident(path)


def _of_node(
    path: Path,
    targets: int,
    striped: Callable[[Path, int], None],
    size: int,
    seconds: float,
    together: float,
) -> Iterator[tuple[str, Parameter]]:
    """What this host moves over all targets, where that is less than they could take."""
    striped(path, targets)
    make_file(path, size)
    rate = _rate(path, True, seconds)
    if rate < 0.9 * together:
        yield "node_rate", Parameter(rate, f"pieces of 1 MiB to the device, {targets} targets")


def _of_requests(path: Path, rate: float, seconds: float) -> Iterator[tuple[str, Parameter]]:
    """Small reads, many and one at a time, beside what their bytes cost."""
    deep, alone = (_median(path, way, False, True, _SMALL, seconds) for way in (_DEEP, _ALONE))
    if not alone:
        alone = _median(path, Way("pread", "pread"), False, True, _SMALL, seconds)
    occupied = max(_SMALL / deep - _SMALL / rate, 0.0) if deep else 0.0
    if occupied:
        yield (
            "request_seconds",
            Parameter(occupied, "random reads of 4 KiB, 32 under way, beside their bytes"),
        )
    waited = _SMALL / alone - _SMALL / rate - occupied
    if waited > 0:
        yield (
            "round_trip",
            Parameter(
                waited, "random reads of 4 KiB, one at a time, beside what they occupy a target"
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
        Parameter(_each_opened(paths, os.O_CREAT | os.O_WRONLY), f"{how}, made and closed"),
    )
    yield "open_seconds", Parameter(_each_opened(paths, os.O_RDONLY), f"{how}, opened and closed")


def _each_opened(paths: Sequence[Sequence[Path]], flags: int) -> float:
    """Seconds per file, as threads do it side by side."""

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
    """Two processes that write in turn: to one file, and each to its own."""
    shared, first, second = (directory / name for name in ("shared", "first", "second"))
    for path in (shared, first, second):
        striped(path, 1)
    together, apart = (
        statistics.median(_in_turn(*pair)) for pair in ((shared, shared), (first, second))
    )
    if together - apart > _LEAST:
        yield (
            "handover_seconds",
            Parameter(
                together - apart,
                "two processes of this host that write in turn, to one file and to one each",
            ),
        )


def _in_turn(first: Path, second: Path) -> list[float]:
    """Seconds of each write and the fsync that waits for it."""
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=_answer, args=(here, there, second))
    other.start()
    there.close()  # each end in one process: when one fails, the other does not wait for it
    seconds = []
    try:
        with first.open("r+b" if first.exists() else "wb", buffering=0) as file:
            for turn in range(_TURNS):
                seconds.append(_write(file.fileno(), turn * 2))
                here.send(turn)
                seconds.append(here.recv())
    except (EOFError, ConnectionError):
        raise OSError(
            errno.EIO, "the process that writes in turn has failed", str(second)
        ) from None
    finally:
        here.close()
        other.join()
    return seconds[4:]  # first use costs no hand-over, but other things


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
