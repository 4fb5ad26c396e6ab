"""Measures the Loader beside other loaders of records: cold and warm, in order and at random.

    python bench/loader.py [--directory DIR] [--records N] [--size BYTES] [--batch N] [--seconds S]
        [--rivals [NAME ...]] [--quality]

Each way loads for `--seconds` after its first batch, in turn with the others and in a process of
its own, from one file of records of one size; a way that fails or does not end is named and left
out. The page cache is emptied of the file before (cold) or filled with it (warm). Beside them:
`fio` with O_DIRECT at depth 8, as the limit, and with `--rivals` the installed loaders of
`loader_rivals.py`, each from as many records in its own format. Processor time includes that of
workers. `--quality` prints the randomness of orders instead (docs/training.md); nothing is timed or
recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from loader_rivals import Rival, make_data_sets
from measuring import make_parser, measure_or_name, sum_processor_seconds
from recording import Recorder

from pario._native import RecordOrder
from pario.records import Dataset, Loader

#: Seconds in which a way must have loaded its first batch and ended.
PATIENCE = 60.0
HEADER = """\
| state | order | | samples/s | of fio | first batch, ms | us CPU per sample |
|---|---|---|---|---|---|---|"""


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rivals", nargs="*", metavar="NAME", help="parts of their names (default: all)"
    )
    parser.add_argument("--quality", action="store_true", help="print the randomness of orders")
    arguments = parser.parse_args()
    if arguments.quality:
        print_quality()
        return 0
    with (
        Recorder("loader", arguments, directories=[arguments.directory]) as recorder,
        tempfile.TemporaryDirectory(dir=arguments.directory) as directory,
    ):
        path, rivals = Path(directory) / "own" / "records", {}
        path.parent.mkdir()
        make_records(path, arguments.records, arguments.size)
        if arguments.rivals is not None:
            rivals = make_data_sets(arguments.rivals, Path(directory), arguments)
        os.sync()
        ways = list_ways(path, rivals, arguments)
        print(HEADER)
        for cold in (True, False):
            for shuffle in (False, True):
                measure_ways(ways, path, cold, shuffle, arguments, recorder)
    return 0


def make_records(path: Path, records: int, size: int) -> None:
    block = np.random.default_rng(1).bytes(size)
    with path.open("wb") as out:
        for _ in range(records):
            out.write(block)
        os.fsync(out.fileno())


def drop_files(directory: Path) -> None:
    """Empties the page cache of the files of a directory."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_files(directory: Path) -> None:
    """Fills the page cache with the files of a directory."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(8 << 20):
                    pass


def load_with_pario(
    path: Path, arguments: argparse.Namespace, caching: str, shuffle: bool
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


@dataclass(frozen=True)
class Speed:
    """A measurement of one way: samples per second, seconds to the first batch, processor time."""

    samples: float
    first: float = float("nan")
    processor: float = float("nan")  # seconds per sample


def measure_speed(start: Callable[[bool], Iterator[int]], shuffle: bool, seconds: float) -> Speed:
    """Loads for so many seconds after the first batch."""
    before = sum_processor_seconds()
    begin = time.perf_counter()
    batches = start(shuffle)
    size = next(batches)
    first, samples = time.perf_counter() - begin, 0
    while time.perf_counter() - begin < first + seconds:
        samples += next(batches)
    elapsed = time.perf_counter() - begin - first
    batches.close()  # type: ignore[attr-defined]
    return Speed(samples / elapsed, first, (sum_processor_seconds() - before) / (size + samples))


def measure_limit(path: Path, arguments: argparse.Namespace, shuffle: bool) -> Speed:
    """Runs fio with blocks of a record, rounded up to a multiple of 4 KiB for O_DIRECT."""
    if not shutil.which("fio"):
        return Speed(float("nan"))
    size = (arguments.size + 4095) // 4096 * 4096
    command = ["fio", "--name=limit", f"--filename={path}", f"--bs={size}", "--direct=1"]
    command += ["--ioengine=libaio", "--iodepth=8", "--readonly", "--output-format=json"]
    command += [f"--rw={'randread' if shuffle else 'read'}", "--time_based"]
    command += [f"--runtime={arguments.seconds}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Speed(float(json.loads(done.stdout)["jobs"][0]["read"]["iops"]))


Ways = dict[str, tuple[Path, Callable[[bool], Iterator[int]]]]  # files, and a loader of them


def list_ways(path: Path, rivals: dict[Path, Rival], arguments: argparse.Namespace) -> Ways:
    ways: Ways = {
        f"pario, {title}": (path.parent, partial(load_with_pario, path, arguments, caching))
        for title, caching in (("direct", "direct"), ("page cache", "page_cache"))
    }
    for place, rival in rivals.items():
        ways[rival.name] = (place, partial(rival.load, place, arguments))
    return ways


def measure_ways(
    ways: Ways,
    path: Path,
    cold: bool,
    shuffle: bool,
    arguments: argparse.Namespace,
    recorder: Recorder,
) -> None:
    """Measures all ways in turn, and prints their rows. A way without a result is removed."""
    state, order = "cold" if cold else "warm", "random" if shuffle else "in order"
    measured: dict[str, list[Speed]] = {way: [] for way in ("fio", *ways)}
    for number in range(1, arguments.rounds + 1):
        speeds = {"fio": measure_limit(path, arguments, shuffle)}
        for way, (place, start) in list(ways.items()):
            (drop_files if cold else read_files)(place)
            load = partial(measure_speed, start, shuffle, arguments.seconds)
            if speed := measure_or_name(way, load, arguments.seconds + PATIENCE):
                speeds[way] = speed
            else:
                del ways[way]
        for way, speed in speeds.items():
            measured[way].append(speed)
            recorder.add(
                state=state,
                order=order,
                sample_bytes=arguments.size,
                samples=arguments.records,
                batch=arguments.batch,
                way=way,
                round=number,
                samples_per_second=speed.samples,
                first_batch_seconds=speed.first,
                processor_seconds_per_sample=speed.processor,
            )
    limits = [speed.samples for speed in measured.pop("fio")]
    for way, found in measured.items():
        if not found:
            continue
        samples = [speed.samples for speed in found]
        share = statistics.median(one / limit for one, limit in zip(samples, limits, strict=False))
        first = 1e3 * statistics.median(speed.first for speed in found)
        processor = 1e6 * statistics.median(speed.processor for speed in found)
        cells = [state, order, way, f"{statistics.median(samples):,.0f}", f"{share:.2f}"]
        print(f"| {' | '.join(cells)} | {first:.1f} | {processor:.0f} |", flush=True)


RECORDS, CLASSES, BATCH = 256_000, 100, 32


def print_quality() -> None:
    """Prints the deviation of the shares of classes in batches, over that of independent draws."""
    chance = np.random.default_rng(1)
    ideal = find_deviation(chance.integers(0, CLASSES, RECORDS))
    orders = {
        "as they lie": ("as they lie", 1, 0, 1, 1),
        "`shuffle=True`": ("shuffled", 1, 0, 1, 1),
        "`blocks=(1024, 64)`": ("blocks", 1, 0, 1024, 64),
        "`blocks=(1024, 16)`": ("blocks", 1, 0, 1024, 16),
        "`blocks=(256, 16)`": ("blocks", 1, 0, 256, 16),
    }
    print("| order | deviation |\n|---|---|")
    for name, order in orders.items():
        counts, none = np.array([RECORDS], dtype=np.uint64), np.empty(0, dtype=np.uint64)
        records = RecordOrder(order, counts, none).numbers(0, RECORDS).astype(np.int64)
        print(f"| {name} | {find_deviation(records * CLASSES // RECORDS) / ideal:.2f} |")


def find_deviation(classes: np.ndarray) -> float:
    """Returns the root mean square deviation of the shares of classes in batches."""
    batches = classes.reshape(-1, BATCH)
    shares = np.stack([np.bincount(batch, minlength=CLASSES) for batch in batches]) / BATCH
    return float(np.sqrt(((shares - 1 / CLASSES) ** 2).mean()))


if __name__ == "__main__":
    sys.exit(main())
