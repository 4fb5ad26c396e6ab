"""The program of every rank of ``pario bench s3d``: ``mpiexec -n N python -m
pario.prove.bench.s3d REQUEST``; rank 0 writes the result as JSON.

The checkpoint of S3D: a short header, then species with 11 components, velocity with 3, temperature
and pressure, on a 3-D grid divided among the ranks. Every way makes the same MPI-IO calls, one per
rank and array, with other hints. Rank 0 compares each file with the expected bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pario.prove.bench.array import ITEM, Block
from pario.prove.bench.patterns import Team, open_file
from pario.prove.bench.worker import Transfer, end_job, mpi_name, run_worker, time_transfer

_COMPONENTS = (11, 3, 1, 1)
_HEADER = bytes(512)
_ALONE = {"romio_cb_write": "disable"}
_HINTS = {
    "independent": {**_ALONE, "romio_ds_write": "disable"},
    "sieved": {**_ALONE, "romio_ds_write": "enable", "ind_wr_buffer_size": str(4 << 20)},
    "collective": {"romio_cb_write": "enable"},
}


@dataclass(frozen=True)
class Checkpoint:
    """One way of writing the checkpoint."""

    way: str

    def write(self, team: Team) -> int:
        """Write it; returns the number of MPI-IO writes of this rank. Collective."""
        with open_file(
            team.comm, team.directory / self.way, MPI.MODE_RDWR, _HINTS[self.way]
        ) as file:
            if team.rank == 0:
                file.Write_at(0, _HEADER)
            begin = 0
            for components in _COMPONENTS:
                self._write_array(file, team, begin, components)
                begin += components
        return len(_COMPONENTS) + (team.rank == 0)

    def _write_array(self, file: MPI.File, team: Team, begin: int, components: int) -> None:
        _, *grid = team.block.whole
        _, *part = team.block.shape
        _, *at = team.block.begin
        box = MPI.DOUBLE.Create_subarray([components, *grid], [components, *part], [0, *at])
        box.Commit()
        file.Set_view(len(_HEADER) + ITEM * begin * int(np.prod(grid)), MPI.DOUBLE, box)
        write = file.Write_all if self.way == "collective" else file.Write
        write(team.data[begin : begin + components])
        box.Free()


def check(team: Team, way: str) -> None:
    """End the job unless the file holds the whole array. Rank 0 calls it."""
    found = np.fromfile(team.directory / way, dtype=np.float64, offset=len(_HEADER))
    wrong = int(np.count_nonzero(found != np.arange(found.size)))
    if wrong or found.size != np.prod(team.block.whole):
        end_job(f"{way}: {wrong} of {found.size} numbers in the file are wrong")


def measure(team: Team, way: str) -> Transfer:
    """Write one checkpoint, check it and remove it. Collective."""
    taken = time_transfer(team, "write", Checkpoint(way).write, sync=False)
    if team.rank == 0:
        check(team, way)
        (team.directory / way).unlink()
    team.comm.Barrier()
    return taken


def main(request: dict[str, Any]) -> None:
    """Measure the requested ways, alternating between them. Collective over all ranks."""
    comm = MPI.COMM_WORLD
    ranks = comm.Get_size()
    grid = (1, *reversed(MPI.Compute_dims(ranks, 3)))  # most ranks along x, as in S3D
    whole = (sum(_COMPONENTS), *request["grid"])
    if any(side % along for side, along in zip(whole, grid, strict=True)):
        raise ValueError(
            f"the grid {request['grid']} cannot be divided evenly among {grid[1:]} ranks along its"
            " sides"
        )
    blocks = [Block.of(rank, grid, whole) for rank in range(ranks)]
    team = Team(comm, blocks, blocks[comm.Get_rank()].make(), Path(request["directory"]), 1)
    taken: dict[str, list[Transfer]] = {way: [] for way in request["ways"]}
    for repetition in range(-1, request["repeat"]):  # the first one warms the buffers up
        for way in request["ways"]:
            once = measure(team, way)
            if repetition >= 0:
                taken[way].append(once)
    if comm.Get_rank() == 0:
        seconds = {way: [once.seconds for once in each] for way, each in taken.items()}
        size = sum(block.bytes for block in blocks) + len(_HEADER)
        result = {"ranks": ranks, "mpi": mpi_name(), "bytes": size, "seconds": seconds}
        Path(request["output"]).write_text(json.dumps(result))


if __name__ == "__main__":
    run_worker(main)
