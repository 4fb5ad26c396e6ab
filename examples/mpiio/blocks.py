"""A 2-D array in blocks, written step after step without waiting for the file.

Usage: mpiexec -n 4 python blocks.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

SHAPE = (512, 768)
STEPS = 3

world = MPI.COMM_WORLD
dims = MPI.Compute_dims(world.size, 2)
grid = world.Create_cart(dims)


def part(length: int, parts: int, index: int) -> tuple[int, int]:
    """Returns start and length of one of ``parts`` nearly equal parts."""
    start = length * index // parts
    return start, length * (index + 1) // parts - start


(row, rows), (column, columns) = map(part, SHAPE, dims, grid.coords)
block = MPI.DOUBLE.Create_subarray(SHAPE, (rows, columns), (row, column)).Commit()
whole = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE)
first = np.ascontiguousarray(whole[row : row + rows, column : column + columns])
mine = [first + step for step in range(STEPS)]

path = sys.argv[1] if len(sys.argv) > 1 else "blocks.dat"
file = MPI.File.Open(grid, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(0, MPI.DOUBLE, block)
# A program can compute the next step while MPI writes the last one.
requests = [file.Iwrite_all(data) for data in mine]
MPI.Request.Waitall(requests)
file.Seek(0)
back = np.empty_like(mine[0])
wrong = 0
for data in mine:
    file.Read_all(back)
    wrong += int(np.count_nonzero(back != data))
file.Close()
block.Free()
wrong_in_all = grid.allreduce(wrong)
if grid.rank == 0:
    blocks = f"{SHAPE[0]} x {SHAPE[1]} in {dims[0]} x {dims[1]} blocks"
    print(f"{STEPS} steps of {blocks}, {wrong_in_all} wrong")
sys.exit(wrong_in_all != 0)
