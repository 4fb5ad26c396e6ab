"""The way of records to the batches of one iteration: reading, transforming, timing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pario._native import RecordLoader
from pario.errors import ParioError
from pario.records.batch import Batch
from pario.records.stats import LoaderStats, Progress
from pario.records.steps import Steps
from pario.records.stream import BatchStream
from pario.records.workers import Missing, Processes, Threads, apply

if TYPE_CHECKING:
    from numpy.typing import NDArray

Batches = Iterator[tuple[Progress, Any]]


@dataclass(frozen=True)
class Pipeline:
    """The functions of a Loader, and who calls them."""

    inputs: Callable[[Batch], list[Any]]  # makes the inputs of ``steps`` of a batch
    steps: Steps
    collate: Callable[[list[Any]], Any] | None
    workers: int  # 0: the calling thread
    processes: bool
    errors: str  # "raise" or "skip"

    def run(self, native: RecordLoader | BatchStream, stats: LoaderStats) -> Batches:
        """The batches that ``native`` reads, and their progress. Counts into ``stats``."""
        return _time_batches(self._transform(self._read(native, stats)), stats)

    def make_batch(self, samples: list[Any]) -> Any:
        """The batch of these samples, by ``collate``."""
        return self.collate(samples) if self.collate else samples

    def _read(
        self, native: RecordLoader | BatchStream, stats: LoaderStats
    ) -> Iterator[tuple[Progress, Batch]]:
        import numpy as np

        with nullcontext() if isinstance(native, RecordLoader) else closing(native):
            while (read := native.next()) is not None:
                memory, numbers, places, failures, position = read
                kept = np.arange(len(numbers))
                if failures:
                    kept = self._find_whole(failures, numbers)
                whole, numbers, places = len(numbers), numbers[kept], places[kept]
                stats.threads = native.threads()
                data = int((places[:, 1] - places[:, 0]).sum())
                yield (
                    Progress(position, kept, whole, data, *_count(failures)),
                    Batch(memory, numbers, places),
                )

    def _find_whole(self, failures: list[tuple[int, str]], numbers: NDArray[Any]) -> NDArray[Any]:
        """The places of the records that were read."""
        import numpy as np

        if self.errors == "raise":
            raise ParioError("record {}: {}".format(*failures[0]))
        return np.flatnonzero(~np.isin(numbers, [number for number, _ in failures]))

    def _transform(self, batches: Iterator[tuple[Progress, Batch]]) -> Batches:
        steps, inputs = self.steps, self.inputs
        if not steps.functions:
            return (
                (progress, self.collate(list(batch)) if self.collate else batch)
                for progress, batch in batches
            )
        applied: Iterator[tuple[Progress, list[Any]]]
        if self.workers == 0:
            applied = (
                (progress, apply(steps, inputs(batch), batch.numbers.tolist(), self.errors))
                for progress, batch in batches
            )
        else:
            applied = (Processes if self.processes else Threads)(
                inputs, steps, self.errors, self.workers
            ).apply_to_batches(batches)
        return (self._finish(progress, results) for progress, results in applied)

    def _finish(self, progress: Progress, results: list[Any]) -> tuple[Progress, Any]:
        kept = [place for place, result in enumerate(results) if not isinstance(result, Missing)]
        missing = [result.error for result in results if isinstance(result, Missing)]
        errors = [error for error in missing if error]
        return progress.without(errors, kept), self.make_batch([results[k] for k in kept])


def _count(failures: list[tuple[int, str]]) -> tuple[int, str]:
    """The number of records that were not read, and the error of the first one."""
    return len(failures), "record {}: {}".format(*failures[0]) if failures else ""


def _time_batches(batches: Batches, stats: LoaderStats) -> Batches:
    """Counts the batches, and the seconds of waiting for them and of working with them."""
    owner = os.getpid()
    begin, first = time.perf_counter(), True
    for progress, batch in batches:
        now = time.perf_counter()
        stats.add_wait(now - begin, first)
        stats.add(progress)
        first = False
        yield progress, batch
        if os.getpid() != owner:
            raise ParioError(
                "an iteration over a Loader belongs to the process that began it: begin one in the"
                " child of the fork"
            )
        begin = time.perf_counter()
        stats.worked += begin - now
