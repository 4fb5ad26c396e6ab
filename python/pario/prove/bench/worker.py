"""The program of every rank of a comparison: ``mpiexec -n N python -m pario.prove.bench.worker
REQUEST``; rank 0 writes the result as JSON.

Each repetition runs all patterns, so that a machine that becomes slower affects all of them. Times
are from a barrier to the end of the slowest rank, open and close included, and with ``sync`` until
the data are on the device. A first, untimed repetition touches all buffers. The bytes read are
compared with those written.
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
class Transfer:
    """The cost of one transfer: seconds of the slowest rank; calls of the program and system calls,
    over all ranks."""

    seconds: float
    calls: int
    system_calls: int


def system_calls(direction: str) -> int:
    """The number of read or write system calls of this process."""
    lines = Path("/proc/self/io").read_text().splitlines()
    figures = dict(line.split(": ") for line in lines)
    return int(figures["syscw" if direction == "write" else "syscr"])


def wait_for_all(comm: MPI.Comm) -> None:
    """A barrier that sleeps: waiting ranks leave the processors to working ones. Collective."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(1e-4)


def time_transfer(
    team: Team, direction: str, transfer: Callable[[Team], int], sync: bool
) -> Transfer:
    """Measure one transfer by all ranks. Collective."""
    own = -system_calls(direction) + system_calls(direction)
    team.comm.Barrier()
    before = system_calls(direction)
    begin = time.perf_counter()
    calls = transfer(team)
    if sync and direction == "write":
        os.sync()
    made = system_calls(direction) - before - own
    wait_for_all(team.comm)
    # The maximum over the ranks is the time from the first begin to the last end.
    seconds = time.perf_counter() - begin
    comm = team.comm
    return Transfer(
        comm.allreduce(seconds, MPI.MAX),
        comm.allreduce(calls, MPI.SUM),
        comm.allreduce(made, MPI.SUM),
    )


def say(text: str) -> None:
    """Print a line on stderr at once."""
    print(f"pario bench: {text}", file=sys.stderr, flush=True)


def end_job(text: str) -> None:
    """Print an error, and end all ranks."""
    say(text)
    MPI.COMM_WORLD.Abort(1)


def check(team: Team, pattern: str, expected: Any) -> None:
    """End the job unless this rank has read the bytes that it wrote."""
    wrong = int(np.count_nonzero(team.data != expected))
    if wrong:
        end_job(f"{pattern}: rank {team.rank} read {wrong} of {team.data.size} numbers wrong")


def measure(team: Team, name: str, sync: bool) -> tuple[Transfer, Transfer]:
    """Write and read once with a pattern. Collective."""
    code, expected = CODE[name], team.data.copy()
    if team.rank == 0:
        team.directory.mkdir()
    team.comm.Barrier()
    written = time_transfer(team, "write", code.write, sync)
    team.data.fill(-1)
    read = time_transfer(team, "read", code.read, sync)
    check(team, name, expected)
    team.comm.Barrier()
    if team.rank == 0:
        shutil.rmtree(team.directory)
    return written, read


def summary(taken: list[Transfer], size: int) -> dict[str, Any]:
    """The fields of ``results.Measure`` for one direction of one pattern."""
    last = taken[-1]
    return {
        "seconds": [each.seconds for each in taken],
        "bytes": size,
        "calls": last.calls,
        "system_calls": last.system_calls,
    }


def mpi_name() -> str:
    """The name and version of the MPI library."""
    return " ".join(MPI.Get_library_version().split("\n")[0].split())


def run_worker(main: Callable[[dict[str, Any]], None]) -> None:
    """Run a worker with the request of the command line. An error or an interrupt of one rank ends
    all ranks, which would wait for it otherwise."""
    try:
        main(json.loads(sys.argv[1]))
    except BaseException as error:
        end_job(f"rank {MPI.COMM_WORLD.Get_rank()}: {type(error).__name__}: {error}")


def main(request: dict[str, Any]) -> None:
    """Measure the requested patterns; rank 0 writes the result. Collective over all ranks."""
    comm = MPI.COMM_WORLD
    grid = MPI.Compute_dims(comm.Get_size(), request["dimensions"])
    whole = shape_of(request["size"], grid)
    blocks = [Block.of(rank, grid, whole) for rank in range(comm.Get_size())]
    data = blocks[comm.Get_rank()].make()
    groups = min(request["groups"] or max(comm.Get_size() // 2, 1), comm.Get_size())
    team = Team(
        comm, blocks, data, Path(request["directory"]) / "pattern", groups, request["stripes"]
    )
    taken: dict[str, list[tuple[Transfer, Transfer]]] = {name: [] for name in request["patterns"]}
    for repetition in range(-1, request["repeat"]):  # the first one warms the buffers up
        for name in request["patterns"]:
            both = measure(team, name, request["sync"])
            if repetition >= 0:
                taken[name].append(both)
        if comm.Get_rank() == 0:
            say(f"{repetition + 1} of {request['repeat']} repetitions")
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
    run_worker(main)
