"""``checkpoint_forever.py DIRECTORY serial|mpi|staged|zstd FILES``: saves until it is killed;
writes down its processes and the complete steps."""

import os
import sys
from pathlib import Path

import numpy as np

from pario import checkpoint
from pario.checkpoint import container
from pario.checkpoint.geometry import whole

SHAPE = (64, 48, 32)
container.LARGE = 1000  # all ranks write the one array, the other one is packed


def content(step: int) -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE) * (step + 1)


def main(directory: Path, kind: str, files: int | str) -> None:
    comm, rank, ranks = None, 0, 1
    if kind != "serial":
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        rank, ranks = comm.rank, comm.size
    (directory / f"process{rank}").write_text(str(os.getpid()))
    box = checkpoint.divide(SHAPE, ranks, rank)
    stage = directory / "stage" if kind == "staged" else None
    compress = kind if kind == "zstd" else None
    options = {"files": files, "keep": 2, "stage": stage, "compress": compress}
    with checkpoint.Writer(comm, directory / "ckpt", durable=False, **options) as writer:
        step = 0
        while True:
            arrays = {
                "T": checkpoint.block(content(step)[box.within(whole(SHAPE))], SHAPE, box.begin),
                "step": step,
            }
            if step % 3 == 1:
                writer.save_async(step, arrays, {"step_again": step})
            else:
                writer.save(step, arrays, {"step_again": step})
                if rank == 0:
                    (directory / "note").write_text(str(step))
                    (directory / "note").replace(directory / "complete")
            step += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if sys.argv[3].isdigit() else sys.argv[3])
