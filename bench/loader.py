"""The Loader beside what else loads records: cold and warm, in order and at random.

Usage: loader.py [--directory DIR] [--records N] [--size BYTES] [--batch N] [--seconds S] [--rivals [NAME ...]] [--quality]

Loads for `--seconds` each, in turns, from one file of records of one size, with the page cache emptied of it before (cold) or filled
(warm). Beside: `fio` with O_DIRECT at depth 8 (the limit) and, with `--rivals`, those of `loader_rivals.py` that are installed, each from
as many records in its own format.
Processor time is that of the process and its workers. `--quality` prints how random orders are instead (docs/training.md).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from loader_rivals import Rival, made

from pario._native import RecordOrder
from pario.records import Dataset, Loader


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rivals",
        nargs="*",
        metavar="NAME",
        help="those whose names hold one of these; without names all",
    )
    parser.add_argument("--quality", action="store_true", help="how random the orders are")
    arguments = parser.parse_args()
    if arguments.quality:
        print_quality()
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        path = Path(directory) / "own" / "records"
        path.parent.mkdir()
        make(path, arguments.records, arguments.size)
        rivals = (
            {} if arguments.rivals is None else made(arguments.rivals, Path(directory), arguments)
        )
        os.sync()
        print_speed(path, rivals, arguments)
    return 0


def make(path: Path, records: int, size: int) -> None:
    block = np.random.default_rng(1).bytes(size)
    with path.open("wb") as out:
        for _ in range(records):
            out.write(block)
        os.fsync(out.fileno())


def drop(directory: Path) -> None:
    """What the page cache holds of its files."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill(directory: Path) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(8 << 20):
                    pass


def by_pario(
    path: Path, arguments: argparse.Namespace, shuffle: bool, caching: str
) -> Iterator[int]:
    loader = Loader(
        Dataset(path, format="fixed", size=arguments.size),
        arguments.batch,
        shuffle=shuffle,
        seed=1,
        caching=caching,
    )
    for batch in loader.forever():
        yield len(batch)


def rate(batches: Iterator[int], seconds: float) -> tuple[float, float, float]:
    """Samples per second, seconds to the first batch, microseconds of processor time per sample."""
    before = processor_seconds()
    begin = time.perf_counter()
    samples, first = next(batches), time.perf_counter() - begin
    while time.perf_counter() - begin < seconds:
        samples += next(batches)
    elapsed = time.perf_counter() - begin
    batches.close()  # type: ignore[attr-defined]
    return samples / elapsed, first, (processor_seconds() - before) / samples * 1e6


def processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def by_fio(path: Path, arguments: argparse.Namespace, shuffle: bool) -> float:
    """Samples per second; blocks are records, rounded up to what O_DIRECT takes."""
    size = (arguments.size + 4095) // 4096 * 4096
    command = [
        "fio",
        "--name=limit",
        f"--filename={path}",
        f"--bs={size}",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=8",
        "--readonly",
    ]
    command += [
        f"--rw={'randread' if shuffle else 'read'}",
        f"--runtime={arguments.seconds}",
        "--time_based",
        "--output-format=json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def print_speed(path: Path, rivals: dict[Path, Rival], arguments: argparse.Namespace) -> None:
    ways: dict[str, tuple[Path, Callable[[bool], Iterator[int]]]] = {
        "pario, direct": (
            path.parent,
            lambda shuffle: by_pario(path, arguments, shuffle, "direct"),
        ),
        "pario, page cache": (
            path.parent,
            lambda shuffle: by_pario(path, arguments, shuffle, "page_cache"),
        ),
    }
    for place, rival in rivals.items():
        ways[rival.name] = (place, partial(rival.load, place, arguments))
    print(
        "| state | order | | samples/s | of fio | first batch, ms | us CPU per sample |\n|---|---|---|---|---|---|---|"
    )
    for cold in (True, False):
        for shuffle in (False, True):
            measured: dict[str, list[tuple[float, float, float, float]]] = {way: [] for way in ways}
            for _ in range(arguments.rounds):
                limit = by_fio(path, arguments, shuffle) if shutil.which("fio") else float("nan")
                for way, (place, start) in ways.items():
                    (drop if cold else fill)(place)
                    speed, first, processor = rate(start(shuffle), arguments.seconds)
                    measured[way].append((speed, speed / limit, first * 1e3, processor))
            for way, rows in measured.items():
                speed, of_limit, first, processor = (
                    statistics.median(column) for column in zip(*rows, strict=True)
                )
                print(
                    f"| {'cold' if cold else 'warm'} | {'random' if shuffle else 'in order'} | {way} | {speed:,.0f} | {of_limit:.2f} | "
                    f"{first:.1f} | {processor:.0f} |",
                    flush=True,
                )


RECORDS, CLASSES, BATCH = 256_000, 100, 32


def print_quality() -> None:
    """Shares of classes in batches: their root mean square deviation over that of independent draws."""
    chance = np.random.default_rng(1)
    ideal = deviation(chance.integers(0, CLASSES, RECORDS))
    orders = {
        "as they lie": ("as they lie", 1, 0, 1, 1),
        "`shuffle=True`": ("shuffled", 1, 0, 1, 1),
        "`blocks=(1024, 64)`": ("blocks", 1, 0, 1024, 64),
        "`blocks=(1024, 16)`": ("blocks", 1, 0, 1024, 16),
        "`blocks=(256, 16)`": ("blocks", 1, 0, 256, 16),
    }
    print("| order | deviation |\n|---|---|")
    for name, order in orders.items():
        records = (
            RecordOrder(order, np.array([RECORDS], dtype=np.uint64), np.empty(0, dtype=np.uint64))
            .numbers(0, RECORDS)
            .astype(np.int64)
        )
        print(f"| {name} | {deviation(records * CLASSES // RECORDS) / ideal:.2f} |")


def deviation(classes: np.ndarray) -> float:
    batches = classes.reshape(-1, BATCH)
    shares = np.stack([np.bincount(batch, minlength=CLASSES) for batch in batches]) / BATCH
    return float(np.sqrt(((shares - 1 / CLASSES) ** 2).mean()))


if __name__ == "__main__":
    sys.exit(main())
