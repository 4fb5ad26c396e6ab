"""Interrupts rank 0 while it waits in a joint write or read for rank 1, which is late or never
comes: ``checkpoint_interrupted_wait.py DIRECTORY save|load late|absent INTERRUPTS PATIENCE``. The
other ranks print their outcomes as a JSON object."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pario import checkpoint
from pario.checkpoint import exchange
from pario.checkpoint.geometry import Box, whole

comm = MPI.COMM_WORLD
come = comm.Split(comm.rank == 1)  # the ranks that come in time
DIRECTORY, WAY, KIND = Path(sys.argv[1]), *sys.argv[2:4]
INTERRUPTS, PATIENCE = int(sys.argv[4]), float(sys.argv[5])
SHAPE = (64, 64, 1024)  # 32 MiB; divided along the last axis
mine = Box((0, 0, SHAPE[2] // comm.size * comm.rank), (*SHAPE[:2], SHAPE[2] // comm.size))
FULL = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)


def wait_for(condition) -> None:
    while not condition():
        time.sleep(0.02)


def is_deferring() -> bool:
    """True in a joint call, until its first interrupt has arrived."""
    return getattr(signal.getsignal(signal.SIGINT), "__name__", "") == "note"


def interrupt() -> None:
    """Sends each interrupt after the one before has arrived: two pending ones are one."""
    wait_for(is_deferring)
    time.sleep(0.2)  # rank 0 probably waits already
    for _ in range(INTERRUPTS):
        os.kill(os.getpid(), signal.SIGINT)
        wait_for(lambda: not is_deferring())
    (DIRECTORY / "interrupted").touch()


def await_absence() -> None:
    """Delays rank 1: until rank 0 has been interrupted, or until all others have ended."""
    wait_for((DIRECTORY / "interrupted").exists)
    if KIND == "absent":
        end()


def end() -> None:
    """Ends when all ranks end; not in MPI_Finalize, which may wait for calls of absent ranks."""
    (DIRECTORY / f"ended.{comm.rank}").touch()
    wait_for(lambda: len(list(DIRECTORY.glob("ended.*"))) == comm.size)
    os._exit(0)


def delay(call):
    """Wraps a joint call, in which alone the patience is short."""

    def call_late(ranks, *arguments, **options):
        if comm.rank == 1:
            await_absence()
        else:
            come.Barrier()
        if comm.rank == 0:
            threading.Thread(target=interrupt).start()
        ranks.patience = PATIENCE
        return call(ranks, *arguments, **options)

    return call_late


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    part = FULL[mine.within(whole(SHAPE))]
    found = {"T": checkpoint.block(part, SHAPE, mine.begin)}
    with checkpoint.Writer(comm, DIRECTORY, durable=False) as writer:
        writer.save(0, found)
    state = checkpoint.load(comm, DIRECTORY)
    writer = checkpoint.Writer(comm, DIRECTORY, durable=False)
    exchange.write, exchange.read = delay(exchange.write), delay(exchange.read)
    text = "none"
    try:
        if WAY == "save":
            writer.save(1, found)
        else:
            state.read("T", mine.begin, mine.shape)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
    print(json.dumps({comm.rank: text}), flush=True)
    end()


main()
