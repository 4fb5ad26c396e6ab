"""One rank fails to open the file of a collective read or write: ``checkpoint_unopened.py
DIRECTORY``. Prints the error of each rank.
"""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI

from pario import checkpoint

comm = MPI.COMM_WORLD
SHAPE = (64, 64, 64)  # its rows are short runs
begin, end = (rank * 64 // comm.size for rank in (comm.rank, comm.rank + 1))
box = checkpoint.geometry.Box((0, 0, begin), (64, 64, end - begin))
arrays = {"T": checkpoint.block(np.full(box.shape, float(comm.rank)), SHAPE, box.begin)}


def try_work(work: Callable[[], object], rank: int) -> str:
    """Does the work; returns its outcome; the error must name the rank."""
    comm.Barrier()
    try:
        work()
        return "done"
    except (checkpoint.CheckpointError, OSError) as error:
        return "cannot open on that rank" if f"rank {rank}" in str(error) else str(error)


@contextmanager
def no_descriptors_on(rank: int) -> Iterator[None]:
    """Lets that rank open no more files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    if comm.rank == rank:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def main(directory: str) -> None:
    def save() -> object:
        return writer.save(2, arrays)

    def whole() -> object:
        return checkpoint.load(comm, directory, step=1)["T"]

    def part() -> object:
        return checkpoint.load(comm, directory, step=1).read("T", box.begin, box.shape)

    lines = []
    with checkpoint.Writer(comm, directory, durable=False) as writer:
        writer.save(1, arrays)
        for rank in range(comm.size):
            with no_descriptors_on(rank):
                lines += [try_work(work, rank) for work in (save, whole, part)]
        writer.save(3, arrays)
    lines.append(str(float(checkpoint.load(comm, directory)["T"].mean())))
    for some in comm.gather(lines) or []:
        print("\n".join(some))


if __name__ == "__main__":
    main(sys.argv[1])
