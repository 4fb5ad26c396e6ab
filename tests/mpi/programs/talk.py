"""Communicates through mpi4py, whose wheels load their MPI with RTLD_LOCAL and find its functions
by weak references."""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
values = np.full(100, rank, "f8")
world.Bcast(values[:10])
world.Allreduce(MPI.IN_PLACE, values[:20])
gathered = np.empty(4 * world.Get_size(), "f8")
world.Allgather(values[:4], gathered)
world.Allgatherv(values[:4], [gathered, [4] * world.Get_size()])
half = world.Split(rank % 2, rank)
half.Barrier()
file = MPI.File.Open(half, f"{sys.argv[1]}/out.{rank % 2}", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(half.Get_rank() * 800, values)
file.Sync()
half.Barrier()
file.Read_at(half.Get_rank() * 800, values)
file.Close()
half.Free()
print(f"rank {rank} done")
