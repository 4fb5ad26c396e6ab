"""Prints each rank's error if a checkpoint cannot be saved: ``checkpoint_trouble.py DIRECTORY``."""

import sys

import numpy as np
from mpi4py import MPI
from tests.support.lateness import give_up_after

from pario import checkpoint

comm = MPI.COMM_WORLD
part = np.full(3, float(comm.rank))


def attempt(offset: int, rank_1: str = "") -> str:
    """Saves a checkpoint; ``rank_1``: rank 1 "raises" an exception, or "is absent"."""
    try:
        with checkpoint.Writer(comm, sys.argv[1], durable=False) as writer:
            if comm.rank == 1 and rank_1 == "raises":
                raise ZeroDivisionError("of the program")
            if comm.rank == 1 and rank_1 == "is absent":
                return rank_1
            if comm.rank == 0 and rank_1 == "is absent":
                give_up_after(writer._ranks, comm.size - 2, patience=1)
            writer.save(2, {"T": checkpoint.block(part, (3 * comm.size,), (offset,))})
            return "saved"
    except (checkpoint.CheckpointError, ZeroDivisionError) as error:
        return str(error)


mine = 3 * comm.rank
told = [attempt(mine), attempt(0), attempt(mine, "raises"), attempt(mine, "is absent")]
half = comm.Split(comm.rank % 2)
told.append(str(checkpoint.load(half, sys.argv[1])["T"].tolist()))
half.Free()
for lines in comm.gather(told) or []:
    print("\n".join(lines))
