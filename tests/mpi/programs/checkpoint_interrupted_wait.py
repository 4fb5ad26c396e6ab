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
DIRECTORY, WAY, KIND = Path(sys.argv[1]), *sys.argv[2:4]
INTERRUPTS, PATIENCE = int(sys.argv[4]), float(sys.argv[5])
SHAPE = (64, 64, 1024)  # 32 MiB; divided along the last axis
mine = Box((0, 0, SHAPE[2] // comm.size * comm.rank), (*SHAPE[:2], SHAPE[2] // comm.size))
FULL = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)


def interrupt() -> None:
    for _ in range(INTERRUPTS):
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)
    (DIRECTORY / "interrupted").touch()


def wait_for(condition) -> None:
    while not condition():
        time.sleep(0.02)


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
    """Wraps a joint call."""

    def call_late(*arguments, **options):
        if comm.rank == 0:
            threading.Thread(target=interrupt).start()
        elif comm.rank == 1:
            await_absence()
        return call(*arguments, **options)

    return call_late


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    part = FULL[mine.within(whole(SHAPE))]
    found = {"T": checkpoint.block(part, SHAPE, mine.begin)}
    with checkpoint.Writer(comm, DIRECTORY, durable=False) as writer:
        writer.save(0, found)
    state = checkpoint.load(comm, DIRECTORY, patience=PATIENCE)
    writer = checkpoint.Writer(comm, DIRECTORY, durable=False, patience=PATIENCE)
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
