"""What every rank of a comparison runs: ``mpiexec -n N python -m pario.prove.bench.worker
REQUEST``; rank 0 writes the result as JSON.

Patterns take turns, repetition by repetition, so that a machine that gets slower does so for all.
Times are from a barrier to the end of the slowest rank, opening and closing included; with ``sync``
until the data are on the device. Buffers have been touched before. What was read is compared with
what was written.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pario.prove.bench.array import Block, shape_of
from pario.prove.bench.patterns import CODE, Team
from pario.prove.bench.results import FORMAT, VERSION


@dataclass(frozen=True)
class Taken:
    """What one transfer took: seconds of the slowest rank, calls of all ranks, of the program and
    of the system."""

    seconds: float
    calls: int
    system_calls: int


def system_calls(direction: str) -> int:
    """Reads or writes that this process has had the kernel do."""
    lines = Path("/proc/self/io").read_text().splitlines()
    figures = dict(line.split(": ") for line in lines)
    return int(figures["syscw" if direction == "write" else "syscr"])


def wait_for_all(comm: MPI.Comm) -> None:
    """A barrier that sleeps: those that are done leave the processors to those that are not.
    Collective."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(1e-4)


def timed(team: Team, direction: str, transfer: Callable[[Team], int], sync: bool) -> Taken:
    """One transfer by all ranks. Collective."""
    looking = -system_calls(direction) + system_calls(direction)
    team.comm.Barrier()
    before = system_calls(direction)
    begin = time.perf_counter()
    calls = transfer(team)
    if sync and direction == "write":
        os.sync()
    made = system_calls(direction) - before - looking
    wait_for_all(team.comm)
    seconds = (
        time.perf_counter() - begin
    )  # the longest is that of the rank that began first, until the last one has ended
    comm = team.comm
    return Taken(
        comm.allreduce(seconds, MPI.MAX),
        comm.allreduce(calls, MPI.SUM),
        comm.allreduce(made, MPI.SUM),
    )


def check(team: Team, pattern: str, expected: Any) -> None:
    """Every rank has read what it wrote, or the job ends."""
    wrong = int(np.count_nonzero(team.data != expected))
    if wrong:
        print(
            f"pario bench: {pattern}: rank {team.rank} read {wrong} of {team.data.size} numbers"
            " wrong",
            file=sys.stderr,
            flush=True,
        )
        team.comm.Abort(1)


def measure(team: Team, name: str, sync: bool) -> tuple[Taken, Taken]:
    """Writes and reads once. Collective."""
    code, expected = CODE[name], team.data.copy()
    if team.rank == 0:
        team.directory.mkdir()
    team.comm.Barrier()
    written = timed(team, "write", code.write, sync)
    team.data.fill(-1)
    read = timed(team, "read", code.read, sync)
    check(team, name, expected)
    team.comm.Barrier()
    if team.rank == 0:
        shutil.rmtree(team.directory)
    return written, read


def summary(taken: list[Taken], size: int) -> dict[str, Any]:
    """Of one direction of one pattern, as ``results.Measure`` has it."""
    last = taken[-1]
    return {
        "seconds": [each.seconds for each in taken],
        "bytes": size,
        "calls": last.calls,
        "system_calls": last.system_calls,
    }


def mpi_name() -> str:
    """The MPI at hand."""
    return " ".join(MPI.Get_library_version().split("\n")[0].split())


def ending_all(main: Callable[[dict[str, Any]], None]) -> None:
    """Runs a worker with the request of the command line; one rank's failure would leave the others
    waiting."""
    try:
        main(json.loads(sys.argv[1]))
    except Exception as error:
        print(
            f"pario bench: rank {MPI.COMM_WORLD.Get_rank()}: {type(error).__name__}: {error}",
            file=sys.stderr,
            flush=True,
        )
        MPI.COMM_WORLD.Abort(1)


def main(request: dict[str, Any]) -> None:
    """Measures what the request names and prints the result. Collective over all ranks."""
    comm = MPI.COMM_WORLD
    grid = MPI.Compute_dims(comm.Get_size(), request["dimensions"])
    whole = shape_of(request["size"], grid)
    blocks = [Block.of(rank, grid, whole) for rank in range(comm.Get_size())]
    data = blocks[comm.Get_rank()].make()
    groups = min(request["groups"] or max(comm.Get_size() // 2, 1), comm.Get_size())
    team = Team(
        comm, blocks, data, Path(request["directory"]) / "pattern", groups, request["stripes"]
    )
    taken: dict[str, list[tuple[Taken, Taken]]] = {name: [] for name in request["patterns"]}
    for repetition in range(-1, request["repeat"]):  # the first one warms buffers
        for name in request["patterns"]:
            both = measure(team, name, request["sync"])
            if repetition >= 0:
                taken[name].append(both)
        if comm.Get_rank() == 0:
            print(
                f"pario bench: {repetition + 1} of {request['repeat']} repetitions",
                file=sys.stderr,
                flush=True,
            )
    if comm.Get_rank() == 0:
        total = sum(block.bytes for block in blocks)
        patterns = {
            name: {
                "write": summary([one for one, _ in each], total),
                "read": summary([other for _, other in each], total),
            }
            for name, each in taken.items()
        }
        about = {
            "ranks": comm.Get_size(),
            "shape": whole,
            "bytes": total,
            "groups": groups,
            "stripes": request["stripes"],
            "sync": request["sync"],
            "mpi": mpi_name(),
        }
        Path(request["output"]).write_text(
            json.dumps({"format": FORMAT, "version": VERSION, **about, "patterns": patterns})
        )


if __name__ == "__main__":
    ending_all(main)
