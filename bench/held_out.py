"""Ten programs for bench/tune.py, on which no rule or knob of pario was developed.

    python bench/held_out.py NAME

Each works in the current directory; a program of several ranks is started by an MPI launcher.
INPUTS names the files that exist before, with their bytes.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
INPUTS = {"scan": ("catalogue.bin", 24 * MIB), "lookup": ("table.bin", 6 * MIB),
          "restart": ("state.bin", 32 * MIB)}  # fmt: skip
RANKS = {"columns": 2, "slabs": 2, "halos": 2}


def particles() -> None:
    """Appends a record of 56 bytes for each particle to one of three files."""
    files = [os.open(f"species-{kind}.dat", os.O_CREAT | os.O_WRONLY) for kind in range(3)]
    for number in range(3000):
        os.write(files[number % 3], number.to_bytes(8, "little") * 7)
    for file in files:
        os.close(file)


def volume() -> None:
    """Writes a volume in planes of 2 MiB."""
    with Path("volume.raw").open("wb", buffering=0) as file:
        for _ in range(48):
            file.write(bytes(2 * MIB))


def frames() -> None:
    """Writes frames to files of their own, each in rows of 6 KiB."""
    for frame in range(20):
        with Path(f"frame-{frame:04}.rgb").open("wb", buffering=0) as file:
            for _ in range(128):
                file.write(bytes(6 * KIB))


def scan() -> None:
    """Reads a catalogue in order, 12 KiB at a time."""
    with Path("catalogue.bin").open("rb", buffering=0) as file:
        while file.read(12 * KIB):
            pass


def lookup() -> None:
    """Reads 300 bytes at random places of a table."""
    places = random.Random(3)
    with Path("table.bin").open("rb", buffering=0) as file:
        for _ in range(2500):
            file.seek(places.randrange(6 * MIB - 300))
            file.read(300)


def restart() -> None:
    """Reads a state in pieces of 64 KiB, and writes another one in pieces of 32 KiB."""
    with (
        Path("state.bin").open("rb", buffering=0) as old,
        Path("new.bin").open("wb", buffering=0) as new,
    ):
        for _ in range(512):
            piece = old.read(64 * KIB)
            new.write(piece[: 32 * KIB])
            new.write(piece[32 * KIB :])


def stations() -> None:
    """Writes samples of four stations with the C library's streams, without buffers."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    streams = [
        ctypes.c_void_p(libc.fopen(f"station-{number}.txt".encode(), b"w")) for number in range(4)
    ]
    for stream in streams:
        libc.setvbuf(stream, None, 2, ctypes.c_size_t(0))
    for sample in range(2400):
        libc.fputs(f"{sample} {sample * 0.25:.3f}\n".encode(), streams[sample % 4])
    for stream in streams:
        libc.fclose(stream)


def columns() -> None:
    """Each rank writes its columns of a matrix, row by row and independently."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytes(3 * KIB)
    file = MPI.File.Open(world, "matrix.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for row in range(700):
        file.Write_at((row * world.size + world.rank) * len(piece), piece)
    file.Close()


def slabs() -> None:
    """The ranks write slabs of a field collectively, 24 KiB of each rank at a time."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytes(24 * KIB)
    file = MPI.File.Open(world, "field.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for slab in range(400):
        file.Write_at_all((slab * world.size + world.rank) * len(piece), piece)
    file.Close()


def halos() -> None:
    """Each rank writes its part of a file in pieces of 5 KB, and reads its neighbour's part."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytearray(5000)
    file = MPI.File.Open(world, "domain.dat", MPI.MODE_CREATE | MPI.MODE_RDWR)
    part, neighbour = 600 * len(piece), (world.rank + 1) % world.size
    for number in range(600):
        file.Write_at(world.rank * part + number * len(piece), piece)
    file.Sync()
    world.Barrier()
    file.Sync()
    for number in range(600):
        file.Read_at(neighbour * part + number * len(piece), piece)
    file.Close()


PROGRAMS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (particles, volume, frames, scan, lookup, restart, stations, columns, slabs, halos)
}  # fmt: skip

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
