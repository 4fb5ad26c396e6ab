"""Many small files: trained from one by one, and packed into one file.

Usage: small_files.py --directory DIR [--files 100000] [--size 10000] [--batch 32] [--step 0.002] [--rounds 3] [--cold]

Makes the files, packs them (`pario records pack`), and runs epochs in random order with a step that computes `--step` seconds per batch.
Ways take turns; quoted are medians. `--cold` (root) empties the caches of the kernel before each epoch. PyTorch is left out where it is not
installed.
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
from pathlib import Path
from typing import Any

import numpy as np

from pario.records import Dataset, Loader

IN_A_DIRECTORY = 1000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", required=True)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--step", type=float, default=0.002)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        files, packed = Path(directory) / "files", Path(directory) / "packed.prec"
        paths = make(files, arguments)
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pario", "records", "pack", files, "-o", packed], check=True
        )
        print(f"packed in {time.perf_counter() - begin:.1f} s")
        print_epochs(ways(paths, files, packed, arguments), arguments)
    return 0


def make(directory: Path, arguments: argparse.Namespace) -> list[Path]:
    content = np.random.default_rng(1).bytes(arguments.size)
    paths = [
        directory / f"{number // IN_A_DIRECTORY:04d}" / f"{number:07d}.bin"
        for number in range(arguments.files)
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    os.sync()
    return paths


class Files:
    """The data set that people write first."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.frombuffer(bytearray(self.paths[number].read_bytes()), dtype=torch.uint8)


def ways(
    paths: list[Path], files: Path, packed: Path, arguments: argparse.Namespace
) -> dict[str, Callable[[int], Iterator[int]]]:
    """What loads an epoch: sizes of its batches."""

    def by_torch(workers: int) -> Iterator[int]:
        import torch.utils.data

        batches = torch.utils.data.DataLoader(
            Files(paths), arguments.batch, shuffle=True, num_workers=workers
        )  # type: ignore[arg-type]
        return (len(batch) for batch in batches)

    def by_pario(records: Dataset, epoch: int) -> Iterator[int]:
        loader = Loader(records, arguments.batch, shuffle=True, seed=epoch)
        return (len(batch.torch() if torch else batch.array()) for batch in loader)

    singly, together = Dataset(files), Dataset(packed)
    torch = importlib.util.find_spec("torch") is not None
    found: dict[str, Callable[[int], Iterator[int]]] = {}
    if torch:
        found["files, DataLoader, num_workers=0"] = lambda _: by_torch(0)
        found["files, DataLoader, num_workers=2"] = lambda _: by_torch(2)
    else:
        print("PyTorch is not installed: left out", file=sys.stderr)
    return found | {
        "files, pario.records.Loader": lambda epoch: by_pario(singly, epoch),
        "packed, pario.records.Loader": lambda epoch: by_pario(together, epoch),
    }


def print_epochs(
    loads: dict[str, Callable[[int], Iterator[int]]], arguments: argparse.Namespace
) -> None:
    measured: dict[str, list[float]] = {name: [] for name in loads}
    for epoch in range(arguments.rounds):
        for name, load in loads.items():
            if arguments.cold:
                os.sync()
                Path("/proc/sys/vm/drop_caches").write_text("3")
            measured[name].append(seconds_of(load(epoch), arguments))
    steps = -(-arguments.files // arguments.batch) * arguments.step
    print("| way | epoch, s | samples/s | computing |\n|---|---|---|---|")
    for name, seconds in measured.items():
        median = statistics.median(seconds)
        print(f"| {name} | {median:.2f} | {arguments.files / median:,.0f} | {steps / median:.0%} |")


def seconds_of(batches: Iterator[int], arguments: argparse.Namespace) -> float:
    begin, samples = time.perf_counter(), 0
    for batch in batches:
        samples += batch
        time.sleep(arguments.step)
    assert samples == arguments.files
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
