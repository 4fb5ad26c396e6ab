"""Many small files packed and unpacked by `pario pack` beside `tar --zstd` (one thread of zstd), and one member read out of the shards.

    python bench/move.py --directory DIR [--files 100000] [--size 4096] [--rounds 5]

Files are in directories of 1,000, half of their bytes random and half repeated; they are in the page cache, in which case neither waits for
a disk (--cold: they are not, which needs root). Ways take turns; quoted are medians of seconds, of processor seconds of all processes,
which other work disturbs less, and of the ratios to tar in the same round. Nothing is removed before the end: for some minutes ext4 does
not use the inodes of removed files again, and looks at each of them when it makes new ones.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pario.archive import Archive, pack, threads

FILES_IN_DIRECTORY = 1000
READS = 1000


def make_tree(root: Path, files: int, size: int) -> None:
    chance = random.Random(1)
    for number in range(files):
        directory = root / f"{number // FILES_IN_DIRECTORY:05d}"
        if number % FILES_IN_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"{number:07d}.dat").write_bytes(
            chance.randbytes(size // 2) + b"%08d" % number * (size // 16)
        )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds() -> float:
    """Of this process and its children."""
    return sum(os.times()[:4])


def drop_caches() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


@dataclass(frozen=True)
class Cost:
    wall: float
    processor: float


def cost(work: Callable[[], object], cold: bool) -> Cost:
    if cold:
        drop_caches()
    before = processor_seconds()
    wall = seconds(work)
    return Cost(wall, processor_seconds() - before)


def tar(*words: str | Path) -> None:
    subprocess.run(["tar", "--zstd", *words], check=True, env={**os.environ, "ZSTD_NBTHREADS": "1"})


def unpack(shards: Path, output: Path) -> None:
    Archive(shards).unpack(output)


def one_round(place: Path, tree: Path, level: int, cold: bool) -> dict[str, Cost]:
    """Into a new place."""
    for name in ("", "by_tar"):
        (place / name).mkdir()
    packed, shards = place / "tree.tar.zst", place / "shards"
    return {
        "tar -c": cost(partial(tar, "-cf", packed, "-C", tree, "."), cold),
        "pack": cost(partial(pack, tree, shards, level=level, shards=threads()), cold),
        "tar -x": cost(partial(tar, "-xf", packed, "-C", place / "by_tar"), cold),
        "unpack": cost(partial(unpack, shards, place / "by_pario"), cold),
    }


def random_reads(archive: Archive, files: int) -> list[float]:
    """Milliseconds of each, of members that the last did not touch."""
    chance = random.Random(3)
    names = [
        f"{number // FILES_IN_DIRECTORY:05d}/{number:07d}.dat"
        for number in (chance.randrange(files) for _ in range(READS))
    ]
    return sorted(1e3 * seconds(partial(archive.read, name)) for name in names)


def print_costs(rounds: list[dict[str, Cost]]) -> None:
    for way, other in (("tar -c", ""), ("pack", "tar -c"), ("tar -x", ""), ("unpack", "tar -x")):
        costs = [costs[way] for costs in rounds]
        ratios = [
            (costs[other].wall / costs[way].wall, costs[other].processor / costs[way].processor)
            for costs in rounds
            if other
        ]
        wall, processor = (
            (statistics.median(ratio) for ratio in zip(*ratios, strict=True))
            if ratios
            else (1.0, 1.0)
        )
        seconds_each = f"{statistics.median(c.wall for c in costs):7.2f} s {statistics.median(c.processor for c in costs):7.2f} s of processors"
        print(
            f"{way:8} {seconds_each}   {wall:5.2f} times as fast, {processor:5.2f} times as cheap"
        )


def measure(place: Path, arguments: argparse.Namespace) -> None:
    tree = place / "tree"
    make_tree(tree, arguments.files, arguments.size)
    os.sync()
    places = [place / str(number) for number in range(arguments.rounds)]
    print_costs([one_round(each, tree, arguments.level, arguments.cold) for each in places])
    last = places[-1]
    same = subprocess.run(["diff", "-r", tree, last / "by_pario"], check=False).returncode == 0
    sizes = [
        path.stat().st_size
        for path in (last / "tree.tar.zst", *sorted((last / "shards").glob("*.zst")))
    ]
    print(
        f"contents {'identical' if same else 'DIFFERENT'}; tar {sizes[0]:,} B, shards {', '.join(f'{size:,}' for size in sizes[1:])} B"
    )
    reads = random_reads(Archive(last / "shards"), arguments.files)
    fresh = 1e3 * statistics.median(
        seconds(lambda: Archive(last / "shards").read("00000/0000500.dat")) for _ in range(20)
    )
    print(
        f"one member: median {statistics.median(reads):.3f} ms, 99 % {reads[int(0.99 * READS)]:.3f} ms; with opening: {fresh:.3f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="drop the page cache before each")
    parser.add_argument("--level", type=int, default=3)
    arguments = parser.parse_args()
    place = arguments.directory / f"pario-move-{os.getpid()}"
    place.mkdir()
    try:
        measure(place, arguments)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
