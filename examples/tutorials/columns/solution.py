"""Each rank describes its columns of the array, and all ranks write together."""

import sys

import numpy as np
from mpi4py import MPI


def write_columns(comm, path, array, first, columns):
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    rows, mine = array.shape
    view = MPI.DOUBLE.Create_subarray((rows, columns), (rows, mine), (0, first)).Commit()
    file.Set_view(0, MPI.DOUBLE, view)
    file.Write_all(array)
    file.Close()
    view.Free()


def main(path, rows, columns):
    comm = MPI.COMM_WORLD
    mine = columns // comm.size
    array = np.full((rows, mine), float(comm.rank))
    write_columns(comm, path, array, comm.rank * mine, columns)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} FILE ROWS")
    main(sys.argv[1], int(sys.argv[2]), 64)
