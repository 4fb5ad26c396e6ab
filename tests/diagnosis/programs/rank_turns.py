"""Lets the ranks append to one file in turn, because two at once would mix their text."""

from pathlib import Path

from mpi4py import MPI
from work import compute, repaired, size

world = MPI.COMM_WORLD
text = f"rank {world.rank}\n".encode() * size
if repaired and world.rank == 0:
    Path("turns.txt").write_bytes(b"")
world.Barrier()
for step in range(6):
    compute(300_000)
    if repaired:
        with Path("turns.txt").open("r+b", buffering=0) as file:
            file.seek((step * world.size + world.rank) * len(text))
            file.write(text)
        world.Barrier()
        continue
    for turn in range(world.size):
        if turn == world.rank:
            with Path("turns.txt").open("ab", buffering=0) as file:
                file.write(text)
        world.Barrier()
if world.rank == 0:
    print(size, "lines of each rank")
