"""The ranks of one node: their shared memory, and barriers in it."""

from __future__ import annotations

from typing import Any

from pario import wording
from pario._native import SPLIT_BARRIER_BYTES, Comm, SplitBarrier
from pario.attached import Attached
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.types import Array
from pario.interrupts import check
from pario.mpi_ranks import native_of
from pario.ranks import PATIENCE

#: Bytes in front of the memory: the barrier, and a byte that is not zero once a wait has failed.
_HEAD = SPLIT_BARRIER_BYTES + 64


class Node:
    """The ranks of a Comm that are on this rank's node."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        #: The node of each rank, and of this one.
        self.numbers = comm.nodes
        self.number = self.numbers[comm.rank]
        self.rank = self.numbers[: comm.rank].count(self.number)
        self.size = self.numbers.count(self.number)
        self._memory: Array | None = None
        self._barrier: SplitBarrier | None = None

    def memory(self, size: int) -> Array | None:
        """Bytes that all ranks of the node share, the same ones in later calls; None on all of
        them if they cannot. Collective over the node."""
        known = self._memory
        if known is None or known.size < size + _HEAD or known[SPLIT_BARRIER_BYTES]:
            self._memory = self._share(size + _HEAD)
        return None if self._memory is None else self._memory[_HEAD:]

    def _share(self, size: int) -> Array | None:
        try:
            memory: Array | None = self._comm.share(size, check)
        except OSError as error:
            raise CheckpointError(str(error.strerror)) from error
        if memory is not None:
            self._barrier = SplitBarrier(memory[:SPLIT_BARRIER_BYTES], self.size)
        return memory

    def arrive(self) -> int:
        """Arrives at the next barrier without waiting, and returns its number. The rank must have
        waited for the barrier before the last one."""
        assert self._barrier is not None
        return self._barrier.arrive()

    def wait(self, meeting: int, patience: float = PATIENCE) -> None:
        """Waits until all ranks of the node have arrived; ``patience`` counts from the latest
        keep-alive. Afterwards this rank sees their earlier writes to the memory."""
        assert self._barrier is not None and self._memory is not None
        try:
            if not self._barrier.wait(self._comm, meeting, patience, check):
                waited = wording.seconds(patience)
                raise CheckpointError(f"ranks of this node did not come within {waited}")
        except BaseException as error:
            self._memory[SPLIT_BARRIER_BYTES] = 1
            if isinstance(error, ProcessLookupError):
                raise CheckpointError(str(error.strerror)) from error
            raise


_nodes = Attached(lambda comm: Node(native_of(comm)))


def node_of(comm: Any) -> Node:
    """The Node of the communicator of MpiRanks."""
    return _nodes.of(comm)
