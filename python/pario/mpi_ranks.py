"""Ranks of a communicator of mpi4py."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

from pario._native import Comm
from pario.attached import Attached
from pario.errors import ParioError
from pario.interrupts import keep_waiting
from pario.ranks import PATIENCE, Ranks

#: The tag of all messages.
_TAG = 417
#: Seconds to wait for messages in flight when their communicator is freed.
_LAST = 1.0


class MpiTransport:
    """The messages of a :class:`pario._native.Comm` over a communicator without other messages.
    Receivers poll, so that waiting ranks sleep."""

    def __init__(self, comm: Any) -> None:
        self._comm, self._lock = comm, threading.Lock()
        self._sent: list[Any] = []  # requests that were in flight when last tested

    def send(self, to: int, message: bytes) -> None:
        """Starts to send a message. The request keeps its bytes."""
        from mpi4py import MPI

        with self._lock:
            self._sent = [request for request in self._sent if not request.Test()]
            self._sent.append(self._comm.Isend([message, MPI.BYTE], to, _TAG))

    def receive(self) -> tuple[int, bytearray] | None:
        """The next message of any rank, or None if none has arrived."""
        from mpi4py import MPI

        status = MPI.Status()
        message = self._comm.Improbe(MPI.ANY_SOURCE, _TAG, status)
        if message is None:
            return None
        data = bytearray(status.Get_count(MPI.BYTE))
        message.Recv([data, MPI.BYTE])
        return status.Get_source(), data

    def finish(self) -> bool:
        """Waits at most _LAST seconds for messages in flight; True if all have been sent."""
        deadline = time.monotonic() + _LAST
        with self._lock:
            while not (done := all(request.Test() for request in self._sent)):
                if time.monotonic() > deadline:
                    break
                time.sleep(1e-3)
        return done


class _Private:
    """The copy of a communicator for pario, and its Comm."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm.Dup()
        self.transport = MpiTransport(self.comm)
        self.native = Comm(
            self.comm.Get_rank(), self.comm.Get_size(), self.transport.send, self.transport.receive
        )
        node = by_node(self.comm)
        leader = node.bcast(self.comm.Get_rank())
        node.Free()
        self.native.introduce(f"the node of rank {leader}", PATIENCE, keep_waiting)

    def free(self) -> None:
        """Frees the copy, unless a message to a dead rank is still in flight."""
        if self.transport.finish():
            with suppress(Exception):  # an MPI that has noticed a dead rank
                self.comm.Free()


_private = Attached(_Private, _Private.free)


def by_node(comm: Any) -> Any:
    """A communicator of the ranks that share memory with this one. Collective."""
    from mpi4py import MPI

    return comm.Split_type(MPI.COMM_TYPE_SHARED)


class MpiRanks(Ranks):
    """The ranks of a communicator of mpi4py, of which pario keeps one copy. Collective; the first
    time the ranks determine the nodes, and begin to monitor each other."""

    def __init__(
        self, comm: Any, patience: float = PATIENCE, error: type[ParioError] = ParioError
    ) -> None:
        from mpi4py import MPI

        private = _private.of(comm)
        super().__init__(
            private.native,
            patience,
            error,
            comm=private.comm,
            threads=bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE),
        )
