"""Every rank writes its columns of a matrix collectively and reads the next rank's columns
independently."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows, columns = 256, 32
etype = MPI.DOUBLE


def view_of(rank):
    return etype.Create_subarray(
        [rows, columns * comm.size], [rows, columns], [0, columns * rank]
    ).Commit()


file = MPI.File.Open(comm, "matrix.dat", MPI.MODE_CREATE | MPI.MODE_RDWR)
mine = np.full((rows, columns), comm.rank, dtype="f8")
file.Set_view(0, etype, view_of(comm.rank))
file.Write_all(mine)
file.Sync()
comm.Barrier()
following = (comm.rank + 1) % comm.size
file.Set_view(0, etype, view_of(following))
other = np.empty_like(mine)
file.Read(other)
assert (other == following).all()
file.Close()
if comm.rank == 0:
    print("read back", comm.size, "parts")
