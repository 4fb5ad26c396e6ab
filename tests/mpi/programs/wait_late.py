"""Starts a collective write on all ranks, on rank 1 half a second late, and waits for it.

wait_late.py FILE
"""

import sys
import time

from mpi4py import MPI

ranks = MPI.COMM_WORLD
file = MPI.File.Open(ranks, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
if ranks.rank == 1:
    time.sleep(0.5)
file.Iwrite_at_all(8 * ranks.rank, b"12345678").Wait()
file.Close()
