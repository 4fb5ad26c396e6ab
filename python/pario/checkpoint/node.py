"""Ranks that have memory in common, and meet there."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from pario import wording
from pario._native import arrive, await_all
from pario.checkpoint.attached import Attached
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.relay import Memory, seen
from pario.checkpoint.types import Array
from pario.interrupts import check
from pario.progress import Show
from pario.ranks import PATIENCE

#: Words of a node for its meetings, and how many bytes they are apart. Behind them is one that changes while a rank works between meetings.
_WORDS, _APART = 2, 64
_HEAD = (_WORDS + 1) * _APART
#: Seconds after which one that waits looks for signals.
_BREATH = 0.5


class Node:
    """The ranks of a communicator that are on this rank's node."""

    def __init__(self, comm: Any) -> None:
        self._comm = by_node(comm)
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        leaders = comm.allgather(self._comm.bcast(comm.Get_rank()))
        numbers = {leader: number for number, leader in enumerate(dict.fromkeys(leaders))}
        #: The number of each rank's node, and of this one's.
        self.numbers = [numbers[leader] for leader in leaders]
        self.number = self.numbers[comm.Get_rank()]
        self._memory: Array | None = None  # with the words in front, in which those who come to a meeting are counted
        self._meetings = 0

    def memory(self, size: int) -> Array | None:
        """Bytes that all ranks of the node have, or None on all of them. They stay. Collective over the node."""
        if len(set(self._comm.allgather(self._meetings))) > 1:  # some did not wait for others, which have come to other meetings
            self._memory = None
        if self._memory is None or self._memory.size < size + _HEAD:
            self._memory = self._shared(size + _HEAD)
            self._meetings = 0
        return None if self._memory is None else self._memory[_HEAD:]

    def _shared(self, size: int) -> Array | None:
        """Memory without a name, which goes with the last who has it."""
        made = None
        if self.rank == 0:
            with suppress(OSError):
                made = Memory(size)
        place = self._comm.bcast(made and made.place)
        found = None if place is None else seen(place, writing=True)
        return found if all(self._comm.allgather(found is not None)) else None  # then nobody looks for it any more

    def arrive(self) -> int:
        """This rank has come to the next meeting; its number. Who comes to one has waited for the one before the last."""
        self._meetings += 1
        arrive(*self._counted(self._meetings))
        return self._meetings

    def wait(self, meeting: int, patience: float = PATIENCE, moved: Callable[[], object] = lambda: None) -> None:
        """Sleeps until all ranks of the node have come; they see what each has written to the memory before. Patience begins again when one
        of them has got on, and ``moved`` is called: other nodes wait for those who wait here.
        """
        deadline, seen = time.monotonic() + patience, self._moves
        while not await_all(*self._counted(meeting), max(0.0, min(_BREATH, deadline - time.monotonic()))):
            check()
            if seen != self._moves:
                deadline, seen = time.monotonic() + patience, self._moves
                moved()
            elif time.monotonic() >= deadline:
                raise CheckpointError(f"ranks of this node did not come within {wording.seconds(patience)}")

    def moving(self, show: Show) -> Show:
        """The same, for what is done between meetings and may take longer than patience: those who wait see that this rank gets on."""

        def shown(done: int, whole: int) -> None:
            show(done, whole)
            self._moved[0] += 1  # as others do at the same time: that it is another number is enough

        return shown

    @property
    def _moved(self) -> Array:
        assert self._memory is not None
        return self._memory[_WORDS * _APART : _HEAD].view(np.uint64)

    @property
    def _moves(self) -> int:
        return int(self._moved[0])

    def _counted(self, meeting: int) -> tuple[int, int]:
        """Where those that come are counted, which is elsewhere for the next meeting, and how many they are with the last one."""
        assert self._memory is not None
        return int(self._memory.ctypes.data) + meeting % _WORDS * _APART, -(-meeting // _WORDS) * self.size % (1 << 32)

    def free(self) -> None:
        """Collective over the node."""
        self._comm.Free()


def by_node(comm: Any) -> Any:
    """A communicator of the ranks that are on this one's node. Collective."""
    from mpi4py import MPI

    return comm.Split_type(MPI.COMM_TYPE_SHARED)


#: What was found out about the nodes of communicators.
_nodes = Attached(Node, Node.free)


def node_of(comm: Any) -> Node:
    """Found out once for a communicator, and freed with it. Collective the first time."""
    return _nodes.of(comm)
