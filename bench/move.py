"""Measures `pario pack` of many small files beside `tar --zstd` with one thread of zstd.

    python bench/move.py --directory DIR [--files 100000] [--size 4096] [--rounds 5]

Files are packed, unpacked, and single members are read out of the shards. They lie in directories
of 1,000; half of their bytes are random and half repeat. They are in the page cache, so that
nothing waits for a disk (--cold empties it before each measurement; root). Ways take turns. The
output shows medians of seconds, of processor seconds of all processes, which other work disturbs
less, and of the ratios to tar in the same round. Nothing is removed before the end: for some
minutes ext4 does not reuse the inodes of removed files, and scans them when it allocates new ones.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measuring import (
    drop_caches,
    find_median_ratio,
    make_parser,
    sum_processor_seconds,
    time_call,
)
from recording import Recorder

from pario.machine import count_processors
from pario.move.archive import Archive, pack

FILES_IN_DIRECTORY = 1000
READS, OPENINGS = 1000, 20
#: Each way, and the one that it is compared with.
RIVALS = {"tar -c": "tar -c", "pack": "tar -c", "tar -x": "tar -x", "unpack": "tar -x"}


def make_tree(root: Path, files: int, size: int) -> None:
    chance = random.Random(1)
    for number in range(files):
        directory = root / f"{number // FILES_IN_DIRECTORY:05d}"
        if number % FILES_IN_DIRECTORY == 0:
            directory.mkdir(parents=True)
        content = chance.randbytes(size // 2) + b"%08d" % number * (size // 16)
        (directory / f"{number:07d}.dat").write_bytes(content)


@dataclass(frozen=True)
class Cost:
    """Seconds by the wall clock, and seconds of all processors."""

    wall: float
    processor: float


def measure_cost(work: Callable[[], object], cold: bool) -> Cost:
    if cold:
        drop_caches()
    before = sum_processor_seconds()
    wall = time_call(work)
    return Cost(wall, sum_processor_seconds() - before)


def run_tar(*words: str | Path) -> None:
    environment = {**os.environ, "ZSTD_NBTHREADS": "1"}
    subprocess.run(["tar", "--zstd", *words], check=True, env=environment)


def unpack(shards: Path, output: Path) -> None:
    Archive(shards).unpack(output)


def measure_round(place: Path, tree: Path, level: int, cold: bool) -> dict[str, Cost]:
    """Packs and unpacks once in each way, into a new place."""
    for name in ("", "by_tar"):
        (place / name).mkdir()
    packed, shards = place / "tree.tar.zst", place / "shards"
    works = {
        "tar -c": partial(run_tar, "-cf", packed, "-C", tree, "."),
        "pack": partial(pack, tree, shards, level=level, shards=count_processors()),
        "tar -x": partial(run_tar, "-xf", packed, "-C", place / "by_tar"),
        "unpack": partial(unpack, shards, place / "by_pario"),
    }
    return {way: measure_cost(work, cold) for way, work in works.items()}


def time_random_reads(archive: Archive, files: int) -> Iterator[float]:
    """Reads members at random, most of them from other frames than the last one."""
    chance = random.Random(3)
    for number in (chance.randrange(files) for _ in range(READS)):
        name = f"{number // FILES_IN_DIRECTORY:05d}/{number:07d}.dat"
        yield time_call(partial(archive.read, name))


def print_costs(rounds: list[dict[str, Cost]]) -> None:
    for way, other in RIVALS.items():
        wall, processor, tar_wall, tar_processor = (
            [getattr(costs[name], kind) for costs in rounds]
            for name in (way, other)
            for kind in ("wall", "processor")
        )
        print(
            f"{way:8} {statistics.median(wall):7.2f} s "
            f"{statistics.median(processor):7.2f} s of processors   "
            f"{find_median_ratio(tar_wall, wall):5.2f} times as fast, "
            f"{find_median_ratio(tar_processor, processor):5.2f} times as cheap"
        )


def describe_contents(place: Path, tree: Path) -> str:
    """Compares the unpacked files with the originals; returns this and the sizes of archives."""
    difference = subprocess.run(["diff", "-r", tree, place / "by_pario"], check=False)
    paths = (place / "tree.tar.zst", *sorted((place / "shards").glob("*.zst")))
    packed, *shards = (f"{path.stat().st_size:,}" for path in paths)
    state = "DIFFERENT" if difference.returncode else "identical"
    return f"contents {state}; tar {packed} B, shards {', '.join(shards)} B"


def measure(place: Path, arguments: argparse.Namespace, recorder: Recorder) -> None:
    """Measures and prints everything."""

    def add(way: str, number: int, seconds: float, processor: float | None = None) -> None:
        recorder.add(
            files=arguments.files,
            file_bytes=arguments.size,
            level=arguments.level,
            cold=arguments.cold,
            way=way,
            round=number,
            seconds=seconds,
            processor_seconds=processor,
        )

    tree, rounds = place / "tree", []
    make_tree(tree, arguments.files, arguments.size)
    os.sync()
    for number in range(1, arguments.rounds + 1):
        last = place / str(number)
        rounds.append(measure_round(last, tree, arguments.level, arguments.cold))
        for way, cost in rounds[-1].items():
            add(way, number, cost.wall, cost.processor)
    print_costs(rounds)
    print(describe_contents(last, tree))
    reads = list(time_random_reads(Archive(last / "shards"), arguments.files))
    member = f"00000/{min(500, arguments.files - 1):07d}.dat"
    openings = [time_call(lambda: Archive(last / "shards").read(member)) for _ in range(OPENINGS)]
    for way, times in (("read a member", reads), ("open and read a member", openings)):
        for number, seconds in enumerate(times, 1):
            add(way, number, seconds)
    worst, fresh = sorted(reads)[int(0.99 * READS)], statistics.median(openings)
    print(
        f"one member: median {1e3 * statistics.median(reads):.3f} ms, 99 % {1e3 * worst:.3f} ms; "
        f"with opening: {1e3 * fresh:.3f} ms"
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="drop the page cache before each")
    parser.add_argument("--level", type=int, default=3)
    arguments = parser.parse_args()
    with Recorder("move", arguments, directories=[arguments.directory]) as recorder:
        place = arguments.directory / f"pario-move-{os.getpid()}"
        place.mkdir()
        try:
            measure(place, arguments, recorder)
        finally:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
