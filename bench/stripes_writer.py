"""Writes or reads files on all ranks in one way, and prints the seconds (bench/stripes.py).

Usage: stripes_writer.py DIRECTORY WAY MEBIBYTES

WAY is collective, independent, files, small, or read (the file of collective). Rank 0 prints the
seconds from before the open until all ranks have closed.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from mpi4py import MPI

MIB = 1 << 20
#: Bytes of a rank's turn in collective calls, of one call elsewhere, and of a small file.
TURN, PIECE, SMALL, SMALL_FILES = MIB, 4 * MIB, 64 << 10, 24

directory, way, size = sys.argv[1], sys.argv[2], int(sys.argv[3]) * MIB
world = MPI.COMM_WORLD
own = size // world.size
data = np.random.default_rng(world.rank).integers(0, 256, PIECE, np.uint8)


def access_shared_file(mode: int, way_of: str) -> None:
    file = MPI.File.Open(world, f"{directory}/shared", mode)
    if way_of == "independent":
        for at in range(0, own, PIECE):
            file.Write_at(world.rank * own + at, data)
    else:
        turns = MPI.BYTE.Create_vector(1, TURN, 1).Create_resized(0, TURN * world.size).Commit()
        file.Set_view(world.rank * TURN, MPI.BYTE, turns)
        call = file.Read_all if way_of == "read" else file.Write_all
        for _ in range(own // PIECE):
            call(data)
    file.Close()


def write(name: str, count: int, piece: np.ndarray) -> None:
    descriptor = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CREAT)
    for _ in range(count):
        os.write(descriptor, piece)
    os.close(descriptor)


world.Barrier()
begin = MPI.Wtime()
if way == "small":
    for number in range(SMALL_FILES):
        write(f"{world.rank}.{number}", 1, data[:SMALL])
elif way == "files":
    write(str(world.rank), own // PIECE, data)
else:
    access_shared_file(MPI.MODE_RDONLY if way == "read" else MPI.MODE_CREATE | MPI.MODE_WRONLY, way)
world.Barrier()
if world.rank == 0:
    print(f"seconds {MPI.Wtime() - begin:.4f}", flush=True)
