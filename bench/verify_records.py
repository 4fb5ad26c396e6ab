"""Measures the cost of comparing checksums when records are read.

    python bench/verify_records.py --directory DIR [--size 512M] [--records 1000,100000]
        [--rounds 5]

Makes a packed file and a TFRecord file for each length of records, and reads them, from the page
cache, with and without verification, in turn: all batches of a Loader in random order, single
records, and a shuffle. The table shows medians of seconds, and of the ratios, of seconds and of
processor seconds, to reading without verification in the same round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from measuring import find_median_ratio, make_parser, sum_processor_seconds, time_call
from recording import Recorder
from records import parse_size

from pario.records import Dataset, Loader

BATCH = 64
#: Reads a file with (True) or without verification.
Way = Callable[[Path, bool], None]


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--size", default="512M", help="bytes of a file")
    parser.add_argument("--records", default="1000,100000", help="bytes of records")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| format | bytes of a record | way | verified, s | not, s | ratio | of processor |")
    print("|---|---|---|---|---|---|---|")
    with Recorder("verify_records", arguments, directories=[arguments.directory]) as recorder:
        for record in map(int, arguments.records.split(",")):
            with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
                for path in make_files(Path(directory), parse_size(arguments.size), record):
                    measure_file(path, record, arguments, recorder)
    return 0


def run_pario(*words: object) -> None:
    command = [sys.executable, "-m", "pario", "records", *map(str, words)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def make_files(directory: Path, size: int, record: int) -> list[Path]:
    raw, packed, frames = (directory / name for name in ("a.raw", "a.prec", "a.tfrecord"))
    count = size // record
    np.random.default_rng(1).integers(0, 256, count * record, dtype=np.uint8).tofile(raw)
    np.full(count, record, dtype=np.uint64).tofile(directory / "lengths")
    run_pario("index", raw, "--format", "raw", "--lengths", directory / "lengths")
    run_pario("convert", raw, "--to", "prec", "-o", packed)
    run_pario("convert", raw, "--to", "tfrecord", "-o", frames)
    run_pario("index", frames)
    return [packed, frames]


def load_batches(path: Path, verify: bool) -> None:
    for _ in Loader(Dataset(path, verify=verify), BATCH, shuffle=True, caching="page_cache"):
        pass


def read_singly(path: Path, verify: bool) -> None:
    dataset = Dataset(path, verify=verify)
    for number in range(0, len(dataset), max(1, len(dataset) // 20_000)):
        dataset[number]


def shuffle(path: Path, verify: bool) -> None:
    option = [] if verify else ["--no-verify"]
    run_pario("shuffle", path, "-o", path.with_name("out"), "--way", "memory", *option)


WAYS: dict[str, Way] = {"Loader": load_batches, "dataset[n]": read_singly, "shuffle": shuffle}


def measure_file(
    path: Path, record: int, arguments: argparse.Namespace, recorder: Recorder
) -> None:
    """Reads in all ways in turn, and prints the rows of the table."""
    for name, way in WAYS.items():
        seconds: dict[bool, list[float]] = {True: [], False: []}
        processor: dict[bool, list[float]] = {True: [], False: []}
        way(path, True)  # warms the page cache
        for number in range(1, arguments.rounds + 1):
            for verify, times in seconds.items():
                before = sum_processor_seconds()
                times.append(time_call(partial(way, path, verify)))
                processor[verify].append(sum_processor_seconds() - before)
                recorder.add(
                    format=path.suffix[1:],
                    size_bytes=parse_size(arguments.size),
                    record_bytes=record,
                    way=name,
                    verify=verify,
                    round=number,
                    seconds=times[-1],
                    processor_seconds=processor[verify][-1],
                )
        with_, without = (statistics.median(times) for times in seconds.values())
        ratios = [find_median_ratio(one[True], one[False]) for one in (seconds, processor)]
        row = (path.suffix[1:], f"{record:,}", name, f"{with_:.2f}", f"{without:.2f}")
        print(f"| {' | '.join(row)} | {ratios[0]:.2f} | {ratios[1]:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
