"""Gathers the fields of all ranks on rank 0, which writes all of them."""

from pathlib import Path

import numpy as np
from mpi4py import MPI
from work import compute, repaired, size

world = MPI.COMM_WORLD
field = np.full(size, world.rank, dtype="f8")
parts = np.empty((world.size if world.rank == 0 else 0, size))
ranks = [world.rank] if repaired else range(world.size) if world.rank == 0 else []
names = [f"field.{rank}.bin" for rank in ranks]
files = [Path(name).open("wb", buffering=0) for name in names]  # noqa: SIM115
for _ in range(40):
    compute(100_000)
    if not repaired:
        world.Gather(field, parts, root=0)
    for file, part in zip(files, [field] if repaired else parts, strict=True):
        file.seek(0)
        file.write(part.data)
world.Barrier()
if world.rank == 0:
    print(size, "values of each rank")
