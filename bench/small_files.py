"""Measures training from many small files: one by one, and packed into one file.

    python bench/small_files.py --directory DIR [--files 100000] [--size 10000] [--batch 32]
        [--step 0.002] [--rounds 3] [--cold]

Makes the files, packs them (`pario records pack`), and runs epochs in random order with a step
that computes `--step` seconds per batch. Ways take turns; the table shows medians. `--cold` (root)
empties the caches of the kernel before each epoch. PyTorch is skipped if it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import drop_caches, make_parser, time_call
from recording import Recorder

from pario.records import Dataset, Loader

FILES_IN_DIRECTORY = 1000
#: Starts an epoch: its number -> the sizes of its batches.
Ways = dict[str, Callable[[int], Iterator[int]]]


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--step", type=float, default=0.002)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    with (
        Recorder("small_files", arguments, directories=[arguments.directory]) as recorder,
        tempfile.TemporaryDirectory(dir=arguments.directory) as directory,
    ):
        files, packed = Path(directory) / "files", Path(directory) / "packed.prec"
        paths = make_files(files, arguments)
        seconds = time_call(partial(pack_files, files, packed))
        record_run(recorder, arguments, "pack", 1, seconds)
        print(f"packed in {seconds:.1f} s")
        measure_epochs(list_ways(paths, files, packed, arguments), arguments, recorder)
    return 0


def make_files(directory: Path, arguments: argparse.Namespace) -> list[Path]:
    content = np.random.default_rng(1).bytes(arguments.size)
    paths = [
        directory / f"{number // FILES_IN_DIRECTORY:04d}" / f"{number:07d}.bin"
        for number in range(arguments.files)
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.sync()
    return paths


def pack_files(files: Path, packed: Path) -> None:
    command = [sys.executable, "-m", "pario", "records", "pack", files, "-o", packed]
    subprocess.run(command, check=True)


def record_run(
    recorder: Recorder, arguments: argparse.Namespace, way: str, number: int, seconds: float
) -> None:
    recorder.add(
        files=arguments.files,
        file_bytes=arguments.size,
        batch=arguments.batch,
        step_seconds=arguments.step,
        cold=arguments.cold,
        way=way,
        round=number,
        seconds=seconds,
    )


class Files:
    """A minimal data set: it opens a file for each sample."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.frombuffer(bytearray(self.paths[number].read_bytes()), dtype=torch.uint8)


def list_ways(paths: list[Path], files: Path, packed: Path, arguments: argparse.Namespace) -> Ways:
    def load_with_torch(workers: int) -> Iterator[int]:
        import torch.utils.data

        samples: Any = Files(paths)
        batches = torch.utils.data.DataLoader(
            samples, arguments.batch, shuffle=True, num_workers=workers
        )
        return (len(batch) for batch in batches)

    def load_with_pario(records: Dataset, epoch: int) -> Iterator[int]:
        loader = Loader(records, arguments.batch, shuffle=True, seed=epoch)
        return (len(batch.torch() if torch else batch.array()) for batch in loader)

    singly, together = Dataset(files), Dataset(packed)
    torch = importlib.util.find_spec("torch") is not None
    ways: Ways = {}
    if torch:
        ways["files, DataLoader, num_workers=0"] = lambda _: load_with_torch(0)
        ways["files, DataLoader, num_workers=2"] = lambda _: load_with_torch(2)
    else:
        print("skipped: PyTorch is not installed", file=sys.stderr)
    return ways | {
        "files, pario.records.Loader": lambda epoch: load_with_pario(singly, epoch),
        "packed, pario.records.Loader": lambda epoch: load_with_pario(together, epoch),
    }


def measure_epochs(ways: Ways, arguments: argparse.Namespace, recorder: Recorder) -> None:
    """Runs epochs in all ways in turn, and prints the table."""
    measured: dict[str, list[float]] = {way: [] for way in ways}
    for epoch in range(arguments.rounds):
        for way, load in ways.items():
            if arguments.cold:
                drop_caches()
            measured[way].append(time_epoch(load(epoch), arguments))
            record_run(recorder, arguments, way, epoch + 1, measured[way][-1])
    steps = -(-arguments.files // arguments.batch) * arguments.step
    print("| way | epoch, s | samples/s | computing |\n|---|---|---|---|")
    for way, seconds in measured.items():
        median = statistics.median(seconds)
        print(f"| {way} | {median:.2f} | {arguments.files / median:,.0f} | {steps / median:.0%} |")


def time_epoch(batches: Iterator[int], arguments: argparse.Namespace) -> float:
    begin, samples = time.perf_counter(), 0
    for batch in batches:
        samples += batch
        time.sleep(arguments.step)
    assert samples == arguments.files
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
