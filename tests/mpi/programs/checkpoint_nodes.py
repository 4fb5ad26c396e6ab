"""Saves and loads blocks of short rows that are long rows of a node: ``checkpoint_nodes.py
DIRECTORY``. The ranks pretend to be on two nodes.
"""

import sys

import numpy as np
from mpi4py import MPI

from pario import checkpoint, mpi_ranks
from pario.checkpoint import exchange
from pario.checkpoint.geometry import Box, whole

comm = MPI.COMM_WORLD
SHAPE = (60, 70, 80)
EXPECTED = np.arange(60.0 * 70 * 80).reshape(SHAPE)


def box(rank: int, nodes: int) -> Box:
    """Returns a rank's block: a part of the rows of its node, which has a part of the planes."""
    there = comm.size // nodes
    first, last = (80 * (rank % there + one) // there for one in (0, 1))
    return Box((60 // nodes * (rank // there), 0, first), (60 // nodes, 70, last - first))


def main(directory: str) -> None:
    mpi_ranks.by_node = lambda whole: whole.Split(whole.rank * 2 // whole.size)
    exchange._WINDOW = 1 << 18  # several calls
    mine = box(comm.rank, 2)
    with checkpoint.Writer(comm, directory, durable=False) as writer:
        for step in range(2):
            part = EXPECTED[mine.within(whole(SHAPE))] + step
            writer.save(
                step,
                {
                    "T": checkpoint.block(part, SHAPE, mine.begin),
                    "U": checkpoint.block(part * 2, SHAPE, mine.begin),
                },
            )
    state = checkpoint.load(comm, directory)
    for other in (box(comm.rank, 2), box(comm.size - 1 - comm.rank, 2)):
        found = state.read_many(dict.fromkeys("TU", (other.begin, other.shape)))
        assert (found["T"] == EXPECTED[other.within(whole(SHAPE))] + 1).all() and (
            found["U"] == 2 * found["T"]
        ).all()
    if comm.rank == 0:
        print("good")


if __name__ == "__main__":
    main(sys.argv[1])
