"""pario.checkpoint beside raw writes of a file per process, and h5py by one rank; the same bytes in turn, medians of ratios.

    python bench/checkpoint.py [--ranks 4] [--megabytes 256] [--runs 5] [--files 1,node,rank] [--directory DIRECTORY]
        [--launcher 'mpiexec -n {ranks}']

Prints a table in Markdown: for slabs and 3-D blocks, seconds and MB/s of each way of saving, and its share of the raw writes' rate; how
long save_async keeps the program, beside a copy of its memory; the same for loading. Then the overhead of a thousand small arrays.
`files=N`: checkpoints of so many files, as Writer(files=N) makes them.
On a striped file system that is slow on purpose: `pario lab up LAB; pario stripe set --count 8 LAB`, then `--directory LAB`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Bench:
    """One rank of the measurement."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from mpi4py import MPI

        from pario import checkpoint

        self.comm, self.durable = MPI.COMM_WORLD, not arguments.no_sync
        self.place = Path(arguments.directory)
        options: dict[str, Any] = {"keep": 1, "durable": self.durable}
        edge = round((arguments.megabytes * 1e6 / 8) ** (1 / 3))
        self.shape = (edge - edge % self.comm.size, edge, edge)
        self.writers = {
            number: checkpoint.Writer(
                self.comm,
                self.place / number,
                files=int(number) if number.isdigit() else number,
                **options,
            )
            for number in arguments.files.split(",")
        }
        self.step = 0

    def arrange(self, form: str) -> None:
        from pario import checkpoint

        rank, size = self.comm.rank, self.comm.size
        slab = checkpoint.geometry.Box(
            (self.shape[0] // size * rank, 0, 0), (self.shape[0] // size, *self.shape[1:])
        )
        self.box = slab if form == "slabs" else checkpoint.divide(self.shape, size, rank)
        self.data = np.random.default_rng(rank).random(self.box.shape)
        self.memory = np.zeros_like(self.data)

    def given(self) -> dict[str, Any]:
        from pario import checkpoint

        self.step += 1
        return {"T": checkpoint.block(self.data, self.shape, self.box.begin)}

    def raw(self) -> None:
        """A file for each process, which takes the place of the one before when it is whole."""
        path = self.place / f"raw{self.comm.rank}"
        with path.with_suffix(".part").open("wb", buffering=0) as file:
            file.write(self.data.data)
            if self.durable:
                os.fsync(file.fileno())
        path.with_suffix(".part").replace(path)

    def save(self, files: str) -> None:
        self.writers[files].save(self.step, self.given())

    def copy(self) -> None:
        np.copyto(self.memory, self.data)

    def h5py(self) -> None:
        import h5py

        parts = self.comm.gather((self.box, self.data))
        if self.comm.rank == 0:
            with h5py.File(self.place / "serial.h5", "w") as file:
                dataset = file.create_dataset("T", self.shape, "f8")
                for box, data in parts:
                    dataset[
                        tuple(
                            slice(begin, end) for begin, end in zip(box.begin, box.end, strict=True)
                        )
                    ] = data
            if self.durable:
                descriptor = os.open(self.place / "serial.h5", os.O_RDWR)
                os.fsync(descriptor)
                os.close(descriptor)

    def seconds(self, work: Callable[[], object]) -> float:
        """Of the slowest rank."""
        self.comm.Barrier()
        begin = time.perf_counter()
        work()
        return max(self.comm.allgather(time.perf_counter() - begin))

    def turn(self) -> dict[str, float]:
        found = {"raw": self.seconds(self.raw)}
        found |= {
            f"files={files}": self.seconds(lambda files=files: self.save(files))
            for files in self.writers
        }
        found |= {"copy": self.seconds(self.copy), "h5py": self.seconds(self.h5py)}
        pending = []
        found["async"] = self.seconds(
            lambda: pending.append(self.first.save_async(self.step, self.given()))
        )
        pending[0].result()
        return found

    def loads(self) -> dict[str, float]:
        from pario import checkpoint

        def raw() -> None:
            self.memory[...] = np.fromfile(self.place / f"raw{self.comm.rank}").reshape(
                self.box.shape
            )

        def load(files: str) -> None:
            checkpoint.load(self.comm, self.place / files).read(
                "T", self.box.begin, self.box.shape, out=self.memory
            )

        return {"raw": self.seconds(raw)} | {
            f"files={files}": self.seconds(lambda files=files: load(files))
            for files in self.writers
        }

    @property
    def first(self) -> Any:
        """The writer for what is measured with one of them only."""
        return next(iter(self.writers.values()))

    def thousand(self, writer: Any) -> float:
        """Seconds of a save of many small arrays, from the second one on."""
        from pario import checkpoint

        small = {f"a{number}": np.full((30, 4), float(number)) for number in range(1000)}
        rank, size = self.comm.rank, self.comm.size

        def save() -> None:
            self.step += 1
            writer.save(
                self.step,
                {
                    name: checkpoint.block(data, (30 * size, 4), (30 * rank, 0))
                    for name, data in small.items()
                },
            )

        save()
        return statistics.median(self.seconds(save) for _ in range(5))


def table(bench: Bench, title: str, turns: list[dict[str, float]]) -> None:
    if bench.comm.rank:
        return
    size = np.prod(bench.shape) * 8 / 1e6
    print(
        f"\n{title}, {size:.0f} MB, {bench.comm.size} ranks\n\n| | s | MB/s | of raw writes | of a copy |\n|---|---|---|---|---|"
    )
    for name in turns[0]:
        seconds = statistics.median(turn[name] for turn in turns)
        share = statistics.median(turn["raw"] / turn[name] for turn in turns)
        copies = (
            f"{statistics.median(turn[name] / turn['copy'] for turn in turns):.2f}"
            if "copy" in turns[0] and name == "async"
            else ""
        )
        print(
            f"| {name} | {seconds:.3f} | {size / seconds:.0f} | {share:.2f} | {copies} |",
            flush=True,
        )


def measure(arguments: argparse.Namespace) -> None:
    bench = Bench(arguments)
    for form in ("slabs", "blocks"):
        bench.arrange(form)
        bench.turn()  # first touch of memory and files
        table(bench, f"Saving {form}", [bench.turn() for _ in range(arguments.runs)])
        table(
            bench,
            f"Loading {form}, from the page cache",
            [bench.loads() for _ in range(arguments.runs)],
        )
    for files, writer in bench.writers.items():
        seconds = bench.thousand(writer)
        if bench.comm.rank == 0:
            print(f"\na thousand small arrays, files={files}: {seconds * 1e3:.1f} ms for each save")
        writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--files",
        default="1,node,rank",
        help="numbers of files of a checkpoint, 'node' and 'rank' (default: %(default)s)",
    )
    parser.add_argument("--directory", default=".")
    parser.add_argument("--launcher", default="mpiexec -n {ranks}")
    parser.add_argument("--no-sync", action="store_true", help="nothing waits for the disk")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        measure(arguments)
        return 0
    place = Path(arguments.directory) / "checkpoint-bench"
    place.mkdir(parents=True, exist_ok=True)
    command = [
        *shlex.split(arguments.launcher.format(ranks=arguments.ranks)),
        sys.executable,
        "-m",
        "mpi4py",
        __file__,
        "--rank",
    ]
    command += [
        "--megabytes",
        str(arguments.megabytes),
        "--runs",
        str(arguments.runs),
        "--directory",
        str(place),
    ]
    command += ["--files", arguments.files]
    try:
        return subprocess.run(
            [*command, *(["--no-sync"] if arguments.no_sync else [])], check=False
        ).returncode
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())
