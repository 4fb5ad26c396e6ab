"""An interrupt of one rank, while the ranks are introduced or in a collective write or read of a
node, reaches the other ranks, and all continue: ``checkpoint_interrupted.py DIRECTORY``."""

import signal
import sys
import time

import numpy as np
from mpi4py import MPI

from pario import checkpoint, mpi_ranks
from pario.checkpoint import exchange
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.reading import Reading

comm = MPI.COMM_WORLD
exchange._WINDOW = 1 << 21
SHAPE = (64, 64, 1024)  # 32 MiB; divided along the last axis, too
mine = Box((0, 0, SHAPE[2] // comm.size * comm.rank), (*SHAPE[:2], SHAPE[2] // comm.size))
FULL = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)
interrupted = []


def once(call):
    """Wraps a call so that rank 1 is interrupted in its third call."""
    counts = []

    def count(*arguments):
        counts.append(1)
        if comm.rank == 1 and len(counts) == 3:
            interrupted.append(call)
            signal.raise_signal(signal.SIGINT)
        return call(*arguments)

    return count


def late(call):
    """Wraps a call so that the last rank arrives after the interrupted rank's next step."""

    def slowly(*arguments):
        time.sleep(0.5 if comm.rank == comm.size - 1 else 0.0)
        return call(*arguments)

    return slowly


def outcome(call) -> str:
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def interrupt_introduction(directory: str) -> str:
    """Interrupts rank 1 while the ranks of a communicator are introduced to each other."""
    split = mpi_ranks.by_node

    def interrupt_and_split(whole):
        if comm.rank == 1:
            interrupted.append(split)
            signal.raise_signal(signal.SIGINT)
        return split(whole)

    mpi_ranks.by_node = interrupt_and_split
    text = outcome(lambda: checkpoint.Writer(comm, directory))
    mpi_ranks.by_node = split
    return text


def main(directory: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told = [interrupt_introduction(directory)]
    part = FULL[mine.within(whole(SHAPE))]
    with checkpoint.Writer(comm, directory, durable=False) as writer:

        def save(step: int) -> None:
            writer.save(step, {"T": checkpoint.block(part, SHAPE, mine.begin)})

        save(0)
        make_box, exchange._box = exchange._box, once(exchange._box)
        told.append(outcome(lambda: save(1)))
        exchange._box = make_box
        save(2)
    state = checkpoint.load(comm, directory)
    exchange._box = once(make_box)
    check, Reading._check = Reading._check, late(Reading._check)
    told.append(outcome(lambda: state.read("T", mine.begin, mine.shape)))
    exchange._box, Reading._check = make_box, check
    state = checkpoint.load(comm, directory)
    good = (state.read("T", mine.begin, mine.shape) == part).all() and state.step == 2
    everyones = comm.gather((good, told, len(interrupted)))
    if comm.rank == 0:
        expected = ["CheckpointError: rank 1: KeyboardInterrupt"] * 3
        wanted = [
            (True, ["KeyboardInterrupt: "] * 3 if rank == 1 else expected, 3 * (rank == 1))
            for rank in range(comm.size)
        ]
        print("good" if everyones == wanted else everyones)


main(sys.argv[1])
