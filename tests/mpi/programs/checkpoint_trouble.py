"""Prints each rank's error if a checkpoint cannot be saved: ``checkpoint_trouble.py DIRECTORY``."""

import sys

import numpy as np
from mpi4py import MPI
from tests.support.lateness import give_up_after

from pario import checkpoint

comm = MPI.COMM_WORLD
part = np.full(3, float(comm.rank))


def attempt(offset: int, *, raising: int = -1) -> str:
    try:
        with checkpoint.Writer(comm, sys.argv[1], durable=False) as writer:
            if comm.rank == raising:
                raise ZeroDivisionError("of the program")
            if comm.rank == 0 and raising >= 0:
                give_up_after(writer._ranks, comm.size - 2, patience=1)
            writer.save(2, {"T": checkpoint.block(part, (3 * comm.size,), (offset,))})
            return "saved"
    except (checkpoint.CheckpointError, ZeroDivisionError) as error:
        return str(error)


told = [attempt(3 * comm.rank), attempt(0), attempt(3 * comm.rank, raising=1)]
half = comm.Split(comm.rank % 2)
told.append(str(checkpoint.load(half, sys.argv[1])["T"].tolist()))
half.Free()
for lines in comm.gather(told) or []:
    print("\n".join(lines))
