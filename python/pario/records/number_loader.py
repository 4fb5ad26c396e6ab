"""Batches of records by their numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from pario._native import RecordFile, schedule_step, schedule_steps, start_number_loader
from pario.records.orders import Numbers
from pario.records.samples import RecordSource
from pario.records.stream import BatchStream, RawBatch, Reading, Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Batches that are given to the native loader before each batch that it returns, at most.
_GIVEN = 16
#: Batches of which some records are in groups that are read at the same time, at most.
_BATCHES = 16
#: The records of a batch, and the position of all ranks after it.
NumberedBatch = tuple["NDArray[Any]", int]


def load_numbers(
    datasets: Sequence[RecordSource], batches: Iterator[NumberedBatch], reading: Reading
) -> BatchStream:
    """Reads batches of any records ahead, within the memory."""
    files = [one.file for one in datasets if isinstance(one.file, RecordFile)]
    if len(files) == len(datasets):
        return _NativeNumberLoader(files, batches, reading)
    return _GroupedNumberLoader(datasets, batches, reading)


class _NativeNumberLoader(BatchStream):
    """Batches of records that are read one by one, by the loader of the plain order."""

    def __init__(
        self, files: list[RecordFile], batches: Iterator[NumberedBatch], reading: Reading
    ) -> None:
        self._native = start_number_loader(files, *reading)
        self._numbers = batches
        super().__init__(reading.threads)

    def _load(self) -> Generator[RawBatch, None, None]:
        while True:
            self._give_batches()
            batch = self._native.next()
            if batch is None:
                return
            yield batch

    def _give_batches(self) -> None:
        for _ in range(_GIVEN):
            if not self._native.wants_batch():
                return
            batch = next(self._numbers, None)
            if batch is None:
                self._native.end_giving()
            else:
                self._native.give(*batch)

    def threads(self) -> int:
        """The number of threads."""
        return self._native.threads()


class _GroupedNumberLoader(BatchStream):
    """Batches of records of which some are decoded group by group. Threads read ahead, each one
    batch."""

    def __init__(
        self,
        datasets: Sequence[RecordSource],
        batches: Iterator[NumberedBatch],
        reading: Reading,
    ) -> None:
        import numpy as np

        self._datasets, self._numbers, self._memory = datasets, batches, reading.memory
        self._ends = np.cumsum([len(one) for one in datasets]).astype("i8")
        super().__init__(min(reading.threads, _BATCHES))

    def _load(self) -> Generator[RawBatch, None, None]:
        ahead: deque[Future[RawBatch]] = deque()
        #: Bytes of the largest batch until now.
        size = 0
        team = ThreadPoolExecutor(self._threads, "pario-records")
        try:
            while True:
                most = max(1, self._memory // size) if size else 1
                room = max(0, min(most, 2 * self._threads) - len(ahead))
                ahead.extend(team.submit(self._read, *one) for one in islice(self._numbers, room))
                if not ahead:
                    return
                batch = ahead.popleft().result()
                size = max(size, int(batch[0].nbytes))
                yield batch
        finally:
            team.shutdown(cancel_futures=True)

    def _read(self, numbers: NDArray[Any], end: int) -> RawBatch:
        import numpy as np

        which = self._ends.searchsorted(numbers.astype("i8"), side="right")
        places, failures = np.empty((len(numbers), 2), dtype=np.uint64), []
        parts, size = [np.empty(0, np.uint8)], 0
        for file in np.unique(which).tolist():
            own, dataset = np.flatnonzero(which == file), self._datasets[file]
            local = numbers[own] - np.uint64(self._ends[file] - len(dataset))
            memory, found, failed = dataset.read_numbers(local, skip=True)
            places[own] = found + np.uint64(size)
            failures += [(int(numbers[own[position]]), text) for position, text in failed]
            parts.append(memory)
            size += len(memory)
        memory = parts[1] if len(parts) == 2 else np.concatenate(parts)
        return memory, numbers, places, failures, end


def share_batches(numbers: Numbers, share: Share, count: int) -> Iterator[NumberedBatch]:
    """The batches of a share of an epoch of ``count`` records."""
    for step in range(schedule_steps(share, count)):
        first, last, end = schedule_step(share, count, step)
        if first < last:
            yield numbers(first, last), end
