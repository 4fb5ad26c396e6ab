"""Ranks write BYTES each and read them back; rank 0 prints the number of wrong bytes.

Usage: write.py PATH BYTES PIECE [read|write] [KEY=VALUE ...]

PIECE: the ranks' data is interleaved in pieces of so many bytes; 0: each rank has one part of the
file. read, write: only that. KEY=VALUE: hints.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

path, count, piece = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
world = MPI.COMM_WORLD
info = MPI.Info.Create()
for hint in sys.argv[4:]:
    if hint not in ("read", "write"):
        info.Set(*hint.split("=", 1))
part = MPI.BYTE.Create_vector(1, piece or 1, 1).Create_resized(0, piece * world.size or 1).Commit()


def bytes_of(rank: int) -> np.ndarray:
    return np.random.default_rng(rank).integers(0, 256, count, np.uint8)


mode = MPI.MODE_RDONLY if "read" in sys.argv else MPI.MODE_CREATE | MPI.MODE_RDWR
file = MPI.File.Open(world, path, mode, info)
if "read" not in sys.argv:
    file.Set_view(world.rank * (piece or count), MPI.BYTE, part)
    file.Write_all(bytes_of(world.rank))
if "write" in sys.argv:
    file.Close()
    sys.exit()
if "read" not in sys.argv:
    file.Sync()
    world.Barrier()
    file.Sync()
# Reads the data of another rank, if possible of another node.

other = (world.rank + world.size // 2 + 1) % world.size
file.Set_view(other * (piece or count), MPI.BYTE, part)
back = np.zeros(count, np.uint8)
file.Read_at_all(0, back)
wrong = int(np.count_nonzero(back != bytes_of(other)))
file.Close()
wrong_in_all = world.allreduce(wrong)
if world.rank == 0:
    print(f"{world.size} ranks, {wrong_in_all} wrong", flush=True)
