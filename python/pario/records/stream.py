"""Batches that a generator makes, with the interface of ``RecordLoader``: the base of the loaders
in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Requests to a store at the same time.
REMOTE_THREADS = 128
#: Positions read before, records of a batch, ranks, rank, stride, offset, treatment of the
#: remainder.
Share = tuple[int, int, int, int, int, int, str]
#: Memory, numbers, begin and end of each record, failures, position.
RawBatch = tuple["NDArray[Any]", "NDArray[Any]", "NDArray[Any]", list[tuple[int, str]], int]


class Reading(NamedTuple):
    """The way to read records ahead."""

    memory: int  # bytes read ahead at most
    threads: int
    direct: bool = False  # past the page cache


class BatchStream(ABC):
    """The batches of one rank's share of an epoch, for one thread."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._batches = self._load()

    @abstractmethod
    def _load(self) -> Generator[RawBatch, None, None]:
        """Reads the batches by ``_threads`` threads, which end with the generator."""

    def next(self) -> RawBatch | None:
        """The next batch; None at the end of the epoch."""
        return next(self._batches, None)

    def close(self) -> None:
        """Ends the threads after the work that they are doing."""
        self._batches.close()

    def threads(self) -> int:
        """The number of threads."""
        return self._threads
