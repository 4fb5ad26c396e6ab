"""Measures pario.checkpoint beside raw writes of a file per process, and h5py on one rank.

    python bench/checkpoint.py [--ranks 4] [--megabytes 256] [--runs 5] [--files 1,node,rank]
        [--directory DIRECTORY] [--launcher 'mpiexec -n {ranks}']

All ways save the same bytes in turn; seconds are those of the slowest rank. Prints a table in
Markdown for slabs and one for 3-D blocks: medians of seconds, MB/s, the ratio to the raw writes,
and for save_async, whose seconds are those until it returns, the ratio to a copy of the memory.
The same for loading, with and without (`unchecked`) a check of the bytes read: all of each rank's
part, and a quarter of it that cuts chunks with a checksum. Then the seconds of a save of a thousand
small arrays. `files=N` are checkpoints in N files, as Writer(files=N) makes them. To measure a slow
striped file system:
`pario lab up LAB; pario stripe set --count 8 LAB`, then `--directory LAB`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from measuring import find_median_ratio, make_parser, time_call
from recording import Recorder

SMALL_ARRAYS, SMALL_SAVES = 1000, 5
Turn = dict[str, float]  # seconds of each way


class Bench:
    """One rank of the measurement."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from mpi4py import MPI

        from pario import checkpoint

        self.comm, self.durable = MPI.COMM_WORLD, not arguments.no_sync
        self.place, self.rows = Path(arguments.directory), Path(arguments.rows)
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

    def divide_array(self, form: str) -> None:
        """Makes this rank's part of the array: a slab or a block."""
        from pario import checkpoint

        rank, size = self.comm.rank, self.comm.size
        slab = checkpoint.geometry.Box(
            (self.shape[0] // size * rank, 0, 0), (self.shape[0] // size, *self.shape[1:])
        )
        self.box = slab if form == "slabs" else checkpoint.divide(self.shape, size, rank)
        self.data = np.random.default_rng(rank).random(self.box.shape)
        self.memory = np.zeros_like(self.data)

    def make_step(self) -> dict[str, Any]:
        """Begins the next step; returns its arrays."""
        from pario import checkpoint

        self.step += 1
        return {"T": checkpoint.block(self.data, self.shape, self.box.begin)}

    def save_raw(self) -> None:
        """Writes a file for each process, which replaces the one before when it is complete."""
        path = self.place / f"raw{self.comm.rank}"
        with path.with_suffix(".part").open("wb", buffering=0) as file:
            file.write(self.data.data)
            if self.durable:
                os.fsync(file.fileno())
        path.with_suffix(".part").replace(path)

    def save(self, files: str) -> None:
        self.writers[files].save(self.step, self.make_step())

    def copy_memory(self) -> None:
        np.copyto(self.memory, self.data)

    def save_h5py(self) -> None:
        """Gathers the array on rank 0, which writes it."""
        import h5py

        parts = self.comm.gather((self.box, self.data))
        if self.comm.rank == 0:
            with h5py.File(self.place / "serial.h5", "w") as file:
                dataset = file.create_dataset("T", self.shape, "f8")
                for box, data in parts:
                    dataset[tuple(map(slice, box.begin, box.end))] = data
            if self.durable:
                descriptor = os.open(self.place / "serial.h5", os.O_RDWR)
                os.fsync(descriptor)
                os.close(descriptor)

    def time_slowest(self, work: Callable[[], object]) -> float:
        """Returns the seconds of the slowest rank."""
        self.comm.Barrier()
        return max(self.comm.allgather(time_call(work)))

    def time_saves(self) -> Turn:
        """Saves once in each way."""
        turn = {"raw": self.time_slowest(self.save_raw)}
        for files in self.writers:
            turn[f"files={files}"] = self.time_slowest(lambda files=files: self.save(files))
        turn["copy"] = self.time_slowest(self.copy_memory)
        turn["h5py"] = self.time_slowest(self.save_h5py)
        writer, pending = next(iter(self.writers.values())), []
        turn["async"] = self.time_slowest(
            lambda: pending.append(writer.save_async(self.step, self.make_step()))
        )
        pending[0].result()
        return turn

    def time_loads(self) -> Turn:
        """Loads once in each way."""

        def load_raw() -> None:
            path = self.place / f"raw{self.comm.rank}"
            self.memory[...] = np.fromfile(path).reshape(self.box.shape)

        turn = {"raw": self.time_slowest(load_raw)}
        return turn | self.time_reads(self.box.begin, self.memory)

    def time_quarters(self) -> Turn:
        """Loads a quarter of each rank's part once in each way."""
        length = max(1, self.box.shape[0] // 4)
        first = self.box.shape[0] // 3
        memory = self.memory[:length]

        def load_raw() -> None:
            path = self.place / f"raw{self.comm.rank}"
            row = self.memory[0].size
            found = np.fromfile(path, count=memory.size, offset=8 * first * row)
            memory[...] = found.reshape(memory.shape)

        begin = (self.box.begin[0] + first, *self.box.begin[1:])
        return {"raw": self.time_slowest(load_raw)} | self.time_reads(begin, memory)

    def time_reads(self, begin: tuple[int, ...], memory: np.ndarray) -> Turn:
        """Reads a part of the array once in each way."""
        from pario import checkpoint

        def read(files: str, verify: bool) -> None:
            loaded = checkpoint.load(self.comm, self.place / files, verify=verify)
            loaded.read("T", begin, memory.shape, out=memory)

        turn = {}
        for files in self.writers:
            for way, verify in ((f"files={files}", True), (f"files={files} unchecked", False)):
                turn[way] = self.time_slowest(lambda f=files, v=verify: read(f, v))
        return turn

    def time_small_save(self, writer: Any) -> float:
        """Saves many small arrays once."""
        from pario import checkpoint

        arrays = {f"a{number}": np.full((30, 4), float(number)) for number in range(SMALL_ARRAYS)}
        shape, begin = (30 * self.comm.size, 4), (30 * self.comm.rank, 0)

        def save() -> None:
            self.step += 1
            blocks = {name: checkpoint.block(data, shape, begin) for name, data in arrays.items()}
            writer.save(self.step, blocks)

        return self.time_slowest(save)

    def add_turn(self, case: dict[str, object], number: int, turn: Turn) -> None:
        """Hands the measurements of a round to the process that records them."""
        if self.comm.rank == 0:
            fixed = {"ranks": self.comm.size, "durable": self.durable}
            with self.rows.open("a") as out:
                for way, seconds in turn.items():
                    row = {**case, **fixed, "way": way, "round": number, "seconds": seconds}
                    out.write(json.dumps(row) + "\n")


def measure_operation(
    bench: Bench, operation: str, form: str, time_turn: Callable[[], Turn], runs: int
) -> None:
    """Measures all ways of an operation in turn, and prints the table."""
    size = int(np.prod(bench.shape)) * 8 // (4 if "quarter" in operation else 1)
    turns = []
    for number in range(1, runs + 1):
        turns.append(time_turn())
        bench.add_turn({"operation": operation, "form": form, "bytes": size}, number, turns[-1])
    if bench.comm.rank == 0:
        print_table(
            f"{operation} {form}, {size / 1e6:.0f} MB, {bench.comm.size} ranks", size, turns
        )


def print_table(title: str, size: int, turns: list[Turn]) -> None:
    print(f"\n{title}\n\n| | s | MB/s | of raw writes | of a copy |\n|---|---|---|---|---|")
    columns = {way: [turn[way] for turn in turns] for way in turns[0]}
    for way, times in columns.items():
        seconds, share = statistics.median(times), find_median_ratio(columns["raw"], times)
        copies = f"{find_median_ratio(times, columns['copy']):.2f}" if way == "async" else ""
        rate = size / 1e6 / seconds
        print(f"| {way} | {seconds:.3f} | {rate:.0f} | {share:.2f} | {copies} |", flush=True)


def measure_small_arrays(bench: Bench) -> None:
    """Measures saves of many small arrays; the first save of each writer does not count."""
    for files, writer in bench.writers.items():
        bench.time_small_save(writer)
        times = []
        for number in range(1, SMALL_SAVES + 1):
            times.append(bench.time_small_save(writer))
            size = SMALL_ARRAYS * 30 * 4 * 8 * bench.comm.size
            case = {"operation": "save", "form": "small arrays", "bytes": size}
            bench.add_turn(case, number, {f"files={files}": times[-1]})
        if bench.comm.rank == 0:
            milliseconds = 1e3 * statistics.median(times)
            print(f"\na save of a thousand small arrays, files={files}: {milliseconds:.1f} ms")
        writer.close()


def run_rank(arguments: argparse.Namespace) -> None:
    """Measures everything, as one of the ranks."""
    bench, runs = Bench(arguments), arguments.runs
    for form in ("slabs", "blocks"):
        bench.divide_array(form)
        bench.time_saves()  # the first touch of memory and files
        measure_operation(bench, "save", form, bench.time_saves, runs)
        measure_operation(bench, "load from page cache", form, bench.time_loads, runs)
        measure_operation(bench, "load a quarter of", form, bench.time_quarters, runs)
    measure_small_arrays(bench)


def main() -> int:
    parser = make_parser(__doc__)
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
    parser.add_argument("--no-sync", action="store_true", help="do not wait for the disk")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        run_rank(arguments)
        return 0
    launcher = shlex.split(arguments.launcher.format(ranks=arguments.ranks))
    place = Path(arguments.directory) / "checkpoint-bench"
    command = [*launcher, sys.executable, "-m", "mpi4py", __file__, "--rank"]
    command += ["--megabytes", str(arguments.megabytes), "--runs", str(arguments.runs)]
    command += ["--directory", str(place), "--files", arguments.files]
    command += ["--rows", str(place / "rows"), *(["--no-sync"] if arguments.no_sync else [])]
    with Recorder(
        "checkpoint", arguments, directories=[arguments.directory], launchers=launcher[:1]
    ) as recorder:
        place.mkdir(parents=True, exist_ok=True)
        (place / "rows").unlink(missing_ok=True)  # of a killed run
        try:
            subprocess.run(command, check=True)
        finally:
            recorder.add_file(place / "rows")
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
