"""A checkpoint of four arrays, cut along their fastest dimension, written one after the other: several_arrays.py FILE EDGE."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

VARIABLES = (3, 1, 1, 11)  # velocity, temperature, pressure, species


def main(name: str, edge: int) -> None:
    comm = MPI.COMM_WORLD
    width = edge // comm.size
    file = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    begin = 0
    for count in VARIABLES:
        part = [count, edge, edge, width]
        view = MPI.DOUBLE.Create_subarray(
            [count, edge, edge, edge], part, [0, 0, 0, comm.rank * width]
        ).Commit()
        file.Set_view(begin, MPI.DOUBLE, view)
        file.Write_all(np.full(part, comm.rank, dtype="d"))
        begin += count * edge**3 * 8
    file.Close()


main(sys.argv[1], int(sys.argv[2]))
