"""Each rank writes its columns of an array that the file holds row by row."""

import sys

import numpy as np
from mpi4py import MPI


def write_columns(comm, path, array, first, columns):
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for row in range(len(array)):
        file.Write_at((row * columns + first) * array.itemsize, array[row])
    file.Close()


def main(path, rows, columns):
    comm = MPI.COMM_WORLD
    mine = columns // comm.size
    array = np.full((rows, mine), float(comm.rank))
    write_columns(comm, path, array, comm.rank * mine, columns)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} FILE ROWS")
    main(sys.argv[1], int(sys.argv[2]), 64)
