"""The passes of PyTorch DataLoaders over a Loader: which part of the data each pass reads."""

from __future__ import annotations

import fcntl
import io
import multiprocessing.context
import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing import reduction
from typing import Any, NamedTuple

#: The worker number of a DataLoader without worker processes.
MAIN = -1
#: Process that runs the DataLoader, event, worker, token, and the fields of a Place.
_ENTRY = struct.Struct("<QQqqQQQQ")
_BEGIN, _REPLACE, _SET_NEXT = range(3)


class Place(NamedTuple):
    """A position in the sequence of all epochs."""

    seed: int
    epoch: int
    #: Records of the epoch that all ranks together have read before.
    position: int
    #: Tokens of the record at ``position``, or batches of its pool, that were used before.
    skip: int = 0

    def next_epoch(self) -> Place:
        """The beginning of the epoch after this one."""
        return Place(self.seed, self.epoch + 1, 0)


class Reader(NamedTuple):
    """One iteration over a DataLoader's data set: a worker's, or the main process's.

    ``process`` runs the DataLoader. ``token`` is equal for all workers that it starts together and
    different, as a rule, for those that it starts later.
    """

    process: int
    worker: int
    token: int


class Passes:
    """The passes of the DataLoaders of a process, in the order in which they began.

    A DataLoader does not report to the Loader that a pass begins or where it ends: it starts, or
    resumes, worker processes that call ``iter`` on their copies of the data set. The first worker
    of a pass gives it the next place, its other workers join it. All of them append their actions
    to a log in shared memory. One append is atomic, so that all processes see the same sequence
    and derive the same places from it, without a lock that a killed worker could keep.

    Instances can be inherited by forked processes and sent to spawned ones; they share the log.
    Other copies have a log of their own, which begins at the next place.
    """

    def __init__(self, place: Place) -> None:
        self._first = place
        self._log = io.FileIO(_create_log(), "r+")

    def begin(self, reader: Reader) -> Place:
        """The place at which the reader's next pass begins."""
        self._append(reader, _BEGIN, Place(0, 0, 0))
        return self._replay(reader.process).place_of(reader)

    def replace(self, reader: Reader, place: Place) -> None:
        """Moves the reader's current pass, for all its workers, and so the passes after it."""
        self._append(reader, _REPLACE, place)

    def set_next(self, place: Place) -> None:
        """Lets the next pass of this process begin at ``place``, in workers that exist, too."""
        self._first = place
        self._append(Reader(os.getpid(), MAIN, 0), _SET_NEXT, place)

    def next_place(self) -> Place:
        """The place at which the next pass of this process begins."""
        return self._replay(os.getpid()).next

    def newest(self) -> Place | None:
        """The place at which this process's newest pass began; None before the first one, and if
        ``set_next`` was called after it.
        """
        return self._replay(os.getpid()).newest

    def read_by_workers(self) -> bool:
        """True if worker processes read the newest pass of this process."""
        return self._replay(os.getpid()).by_workers

    def _append(self, reader: Reader, event: int, place: Place) -> None:
        entry = _ENTRY.pack(reader.process, event, reader.worker, reader.token, *place)
        os.write(self._log.fileno(), entry)

    def _replay(self, process: int) -> _History:
        history = _History(self._first)
        for event, reader, place in self._entries():
            if reader.process == process:
                history.add(event, reader, place)
        return history

    def _entries(self) -> Iterator[tuple[int, Reader, Place]]:
        descriptor = self._log.fileno()
        size = os.fstat(descriptor).st_size
        for fields in _ENTRY.iter_unpack(os.pread(descriptor, size, 0)):
            process, event, worker, token, *place = fields
            yield event, Reader(process, worker, token), Place(*place)

    def __getstate__(self) -> tuple[Place, Any]:
        if multiprocessing.context.get_spawning_popen() is None:
            return self.next_place(), None
        return self._first, reduction.DupFd(self._log.fileno())

    def __setstate__(self, state: tuple[Place, Any]) -> None:
        self._first, shared = state
        self._log = io.FileIO(shared.detach() if shared else _create_log(), "r+")


class _History:
    """The passes of one process's DataLoaders after some entries of the log."""

    def __init__(self, first: Place) -> None:
        self.next = first
        self.newest: Place | None = None
        #: True if workers read the newest pass.
        self.by_workers = False
        self._places: list[Place] = []
        #: Passes of the workers that were started together, as indices of ``_places``.
        self._passes_of_token: defaultdict[int, list[int]] = defaultdict(list)
        self._begun: defaultdict[Reader, int] = defaultdict(int)

    def add(self, event: int, reader: Reader, place: Place) -> None:
        """Processes the next entry of the log."""
        if event == _BEGIN:
            self._begin(reader)
        elif event == _REPLACE:
            self._replace(reader, place)
        else:
            self.next, self.newest, self.by_workers = place, None, False

    def place_of(self, reader: Reader) -> Place:
        """The place of the reader's latest pass."""
        return self._places[self._index_of(reader)]

    def _index_of(self, reader: Reader) -> int:
        return self._passes_of_token[reader.token][self._begun[reader] - 1]

    def _begin(self, reader: Reader) -> None:
        """A worker's n-th iteration belongs to the n-th pass of the workers started with it."""
        passes = self._passes_of_token[reader.token]
        if self._begun[reader] == len(passes):
            passes.append(len(self._places))
            self._places.append(self.next)
            self._set_newest(self.next)
            self.by_workers = reader.worker != MAIN
        self._begun[reader] += 1

    def _replace(self, reader: Reader, place: Place) -> None:
        index = self._index_of(reader)
        if self._places[index] != place:
            self._places[index] = place
            self._set_newest(place)

    def _set_newest(self, place: Place) -> None:
        self.newest, self.next = place, place.next_epoch()


def _create_log() -> int:
    descriptor = os.memfd_create("pario-passes")
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
    return descriptor
