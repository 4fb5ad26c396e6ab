"""Writes interleaved values of the ranks by an independent MPI-IO call each."""

import numpy as np
from mpi4py import MPI
from work import compute, repaired, size

world = MPI.COMM_WORLD
values = np.arange(size, dtype="f8") * world.size + world.rank
file = MPI.File.Open(world, "values.bin", MPI.MODE_CREATE | MPI.MODE_WRONLY)
if repaired:
    parts = np.empty((world.size, size // world.size))
    world.Alltoall(values, parts)
    file.Write_at_all(world.rank * size * 8, np.ascontiguousarray(parts.T))
else:
    for number in range(size):
        file.Write_at((number * world.size + world.rank) * 8, values[number : number + 1])
file.Close()
compute()
if world.rank == 0:
    print(size, "values of each rank")
