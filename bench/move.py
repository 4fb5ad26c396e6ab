"""Many small files packed and unpacked by `pario pack` beside `tar --zstd` (one thread of zstd), and one member read out of the shards.

    python bench/move.py --directory DIR [--files 100000] [--size 4096] [--rounds 5]

Files are in directories of 1,000, half of their bytes random and half repeated; they are in the page cache, in which case neither waits for
a disk. Ways take turns; quoted are medians of seconds and of the ratio to tar in the same round.
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
        (directory / f"{number:07d}.dat").write_bytes(chance.randbytes(size // 2) + b"%08d" % number * (size // 16))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def tar(*words: str | Path) -> None:
    subprocess.run(["tar", "--zstd", *words], check=True, env={**os.environ, "ZSTD_NBTHREADS": "1"})


def one_round(place: Path, level: int) -> dict[str, float]:
    tree, shards = place / "tree", place / "shards"
    times = {
        "tar -c": seconds(lambda: tar("-cf", place / "tree.tar.zst", "-C", tree, ".")),
        "pack": seconds(lambda: pack(tree, shards, level=level, shards=threads())),
    }
    (place / "by_tar").mkdir()
    times["tar -x"] = seconds(lambda: tar("-xf", place / "tree.tar.zst", "-C", place / "by_tar"))
    times["unpack"] = seconds(lambda: Archive(shards).unpack(place / "by_pario"))
    return times


def random_reads(archive: Archive, files: int) -> list[float]:
    """Milliseconds of each, of members that the last did not touch."""
    chance = random.Random(3)
    names = [f"{number // FILES_IN_DIRECTORY:05d}/{number:07d}.dat" for number in (chance.randrange(files) for _ in range(READS))]
    return sorted(1e3 * seconds(lambda name=name: archive.read(name)) for name in names)


def clean(place: Path) -> None:
    for name in ("by_tar", "by_pario", "shards"):
        shutil.rmtree(place / name, ignore_errors=True)
    (place / "tree.tar.zst").unlink(missing_ok=True)


def measure(place: Path, arguments: argparse.Namespace) -> None:
    make_tree(place / "tree", arguments.files, arguments.size)
    rounds = []
    for _ in range(arguments.rounds):
        clean(place)
        rounds.append(one_round(place, arguments.level))
    for way, other in (("tar -c", ""), ("pack", "tar -c"), ("tar -x", ""), ("unpack", "tar -x")):
        ratio = statistics.median(times[other] / times[way] for times in rounds) if other else 1.0
        print(f"{way:8} {statistics.median(times[way] for times in rounds):7.2f} s   {ratio:5.2f} times as fast")
    same = subprocess.run(["diff", "-r", place / "tree", place / "by_pario"], check=False).returncode == 0
    sizes = [path.stat().st_size for path in (place / "tree.tar.zst", *sorted((place / "shards").glob("*.zst")))]
    print(f"contents {'identical' if same else 'DIFFERENT'}; tar {sizes[0]:,} B, shards {', '.join(f'{size:,}' for size in sizes[1:])} B")
    reads = random_reads(Archive(place / "shards"), arguments.files)
    fresh = 1e3 * statistics.median(seconds(lambda: Archive(place / "shards").read("00000/0000500.dat")) for _ in range(20))
    print(f"one member: median {statistics.median(reads):.3f} ms, 99 % {reads[int(0.99 * READS)]:.3f} ms; with opening: {fresh:.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
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
