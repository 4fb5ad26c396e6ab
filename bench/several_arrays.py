"""Measures a checkpoint of four arrays with and without merged collective writes.

    python bench/several_arrays.py --library LIBPARIO [--directory DIR] [--edges 8 50] [--ranks 2]
        [--rounds 5]

The ranks write velocity, temperature, pressure and species (3, 1, 1 and 11 values per point), cut
along their fastest dimension, one after the other. The hint pario_merge_collectives of pario's
MPI-IO merges the exchanges of small calls into one; large ones stay. Ways take turns. The table
shows medians of the seconds of the slowest rank from open to close, and counts of exchanges per
rank and system writes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from measuring import add_library_argument, make_parser, time_call
from recording import Recorder

VARIABLES = (3, 1, 1, 11)  # velocity, temperature, pressure, species
WAYS = {"separate": "0", "merged": "64M"}  # pario_merge_collectives
MPIEXEC = Path(sys.executable).with_name("mpiexec")


def write_arrays(comm: Any, name: str, edge: int) -> None:
    """Writes the file, as one of the ranks."""
    from mpi4py import MPI

    width = edge // comm.size
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    begin = 0
    for count in VARIABLES:
        part, at = [count, edge, edge, width], [0, 0, 0, comm.rank * width]
        view = MPI.DOUBLE.Create_subarray([count, edge, edge, edge], part, at).Commit()
        file.Set_view(begin, MPI.DOUBLE, view)
        file.Write_all(np.full(part, comm.rank, dtype="d"))
        begin += count * edge**3 * 8
    file.Close()


def run_rank(name: str, edge: int) -> None:
    """Runs one of the ranks; rank 0 prints the seconds of the slowest one."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier()
    seconds = max(comm.allgather(time_call(lambda: write_arrays(comm, name, edge))))
    if comm.rank == 0:
        print(seconds, flush=True)


def run_ranks(
    file: Path, edge: int, merged: str, arguments: argparse.Namespace
) -> tuple[float, int, int]:
    """Writes the file once; returns seconds, exchanges per rank, and system writes."""
    command = [str(MPIEXEC), "-n", str(arguments.ranks), sys.executable, "-m", "mpi4py", __file__]
    command += ["--library", str(arguments.library), "--edges", str(edge)]
    hints = f"*:pario_report=json:pario_merge_collectives={merged}"
    pario = {"LD_PRELOAD": str(arguments.library), "PARIO_MPIIO": "1", "PARIO_HINTS": hints}
    done = subprocess.run(
        [*command, "--rank", str(file)],
        env=os.environ | pario,
        capture_output=True,
        text=True,
        check=True,
    )
    report = next(line for line in done.stderr.splitlines() if line.startswith("{"))
    counts = json.loads(report)["statistics"]
    exchanges = counts["through_windows"] // arguments.ranks
    return float(done.stdout), exchanges, counts["system_writes"]


def main() -> None:
    parser = make_parser(__doc__)
    add_library_argument(parser)
    parser.add_argument("--directory", default=".", help="on the file system to measure")
    parser.add_argument(
        "--edges", type=int, nargs="+", default=[8, 50], help="points along each dimension"
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        run_rank(arguments.rank, arguments.edges[0])
        return
    with Recorder(
        "several_arrays",
        arguments,
        directories=[arguments.directory],
        launchers=[MPIEXEC],
    ) as recorder:
        print(
            "| edge | way | seconds | exchanges per rank | system writes |\n|---|---|---|---|---|"
        )
        for edge in arguments.edges:
            compare_ways(edge, arguments, recorder)


def compare_ways(edge: int, arguments: argparse.Namespace, recorder: Recorder) -> None:
    """Measures arrays of one size in both ways, and prints their rows of the table."""
    runs: dict[str, list[tuple[float, int, int]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        for number in range(1, arguments.rounds + 1):
            for way, merged in WAYS.items():
                runs[way].append(run_ranks(Path(folder, way), edge, merged, arguments))
                seconds, exchanges, writes = runs[way][-1]
                recorder.add(
                    edge=edge,
                    ranks=arguments.ranks,
                    way=way,
                    round=number,
                    seconds=seconds,
                    exchanges_per_rank=exchanges,
                    system_writes=writes,
                )
        contents = {Path(folder, way).read_bytes() for way in WAYS}
    for way, found in runs.items():
        middle = [statistics.median(column) for column in zip(*found, strict=True)]
        print(f"| {edge} | {way} | {middle[0]:.4f} | {middle[1]:.0f} | {middle[2]:.0f} |")
    if len(contents) > 1:
        sys.exit(f"edge {edge}: the files are different")


if __name__ == "__main__":
    main()
