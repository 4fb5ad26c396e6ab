"""Ten programs for bench/tune.py, on which no rule or knob of pario was developed.

    python bench/held_out.py NAME SCALE

Each works in the current directory; a program of several ranks is started by an MPI launcher.
SCALE multiplies its work. INPUTS names the files that exist before, with their bytes, and whether
these grow with the scale.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
INPUTS = {
    "scan": ("catalogue.bin", 24 * MIB, True),
    "lookup": ("table.bin", 6 * MIB, False),
    "restart": ("state.bin", 32 * MIB, True),
}
RANKS = {"columns": 2, "slabs": 2, "halos": 2}


def particles(scale: int) -> None:
    """Appends a record of 56 bytes for each particle to one of three files."""
    files = [os.open(f"species-{kind}.dat", os.O_CREAT | os.O_WRONLY) for kind in range(3)]
    for number in range(3000 * scale):
        os.write(files[number % 3], number.to_bytes(8, "little") * 7)
    for file in files:
        os.close(file)


def volume(scale: int) -> None:
    """Writes a volume in planes of 2 MiB."""
    with Path("volume.raw").open("wb", buffering=0) as file:
        for _ in range(48 * scale):
            file.write(bytes(2 * MIB))


def frames(scale: int) -> None:
    """Writes frames to files of their own, each in rows of 6 KiB."""
    for frame in range(20 * scale):
        with Path(f"frame-{frame:04}.rgb").open("wb", buffering=0) as file:
            for _ in range(128):
                file.write(bytes(6 * KIB))


def scan(scale: int) -> None:
    """Reads a catalogue in order, 12 KiB at a time."""
    with Path("catalogue.bin").open("rb", buffering=0) as file:
        while file.read(12 * KIB):
            pass


def lookup(scale: int) -> None:
    """Reads 300 bytes at random places of a table."""
    places = random.Random(3)
    with Path("table.bin").open("rb", buffering=0) as file:
        for _ in range(2500 * scale):
            file.seek(places.randrange(6 * MIB - 300))
            file.read(300)


def restart(scale: int) -> None:
    """Reads a state in pieces of 64 KiB, and writes another one in pieces of 32 KiB."""
    with (
        Path("state.bin").open("rb", buffering=0) as old,
        Path("new.bin").open("wb", buffering=0) as new,
    ):
        for _ in range(512 * scale):
            piece = old.read(64 * KIB)
            new.write(piece[: 32 * KIB])
            new.write(piece[32 * KIB :])


def stations(scale: int) -> None:
    """Writes samples of four stations with the C library's streams, without buffers."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    streams = [
        ctypes.c_void_p(libc.fopen(f"station-{number}.txt".encode(), b"w")) for number in range(4)
    ]
    for stream in streams:
        libc.setvbuf(stream, None, 2, ctypes.c_size_t(0))
    for sample in range(2400 * scale):
        libc.fputs(f"{sample} {sample * 0.25:.3f}\n".encode(), streams[sample % 4])
    for stream in streams:
        libc.fclose(stream)


def columns(scale: int) -> None:
    """Each rank writes its columns of a matrix, row by row and independently."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytes(3 * KIB)
    file = MPI.File.Open(world, "matrix.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for row in range(700 * scale):
        file.Write_at((row * world.size + world.rank) * len(piece), piece)
    file.Close()


def slabs(scale: int) -> None:
    """The ranks write slabs of a field collectively, 24 KiB of each rank at a time."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytes(24 * KIB)
    file = MPI.File.Open(world, "field.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for slab in range(400 * scale):
        file.Write_at_all((slab * world.size + world.rank) * len(piece), piece)
    file.Close()


def halos(scale: int) -> None:
    """Each rank writes its part of a file in pieces of 5 KB, and reads its neighbour's part."""
    from mpi4py import MPI

    world, piece = MPI.COMM_WORLD, bytearray(5000)
    file = MPI.File.Open(world, "domain.dat", MPI.MODE_CREATE | MPI.MODE_RDWR)
    count, neighbour = 600 * scale, (world.rank + 1) % world.size
    part = count * len(piece)
    for number in range(count):
        file.Write_at(world.rank * part + number * len(piece), piece)
    file.Sync()
    world.Barrier()
    file.Sync()
    for number in range(count):
        file.Read_at(neighbour * part + number * len(piece), piece)
    file.Close()


PROGRAMS: dict[str, Callable[[int], None]] = {
    one.__name__: one
    for one in (particles, volume, frames, scan, lookup, restart, stations, columns, slabs, halos)
}  # fmt: skip

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](int(sys.argv[2]))
