"""A function for each record, carried out by threads or processes a few batches ahead, in order."""

from __future__ import annotations

import multiprocessing
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.records.loader import Batch

_What = TypeVar("_What")
#: Results, and how many records were skipped.
Applied = tuple[list[Any], int]
#: In a worker process: the record that each of the batches under way has come to, -1: none. Shared with the process of the Loader.
_under_way: Any = None


def apply(transform: Callable[[Any], Any], records: list[Any], numbers: Iterable[int], errors: str) -> Applied:
    """The function on each record, here."""
    results = []
    for number, record in zip(numbers, records, strict=True):
        try:
            results.append(transform(record))
        except Exception as error:
            if errors == "raise":
                raise ParioError(f"record {number}: transform: {type(error).__name__}: {error}") from error
    return results, len(records) - len(results)


class Threads:
    """``count`` of them. For one iteration."""

    def __init__(self, transform: Callable[[Any], Any], errors: str, count: int) -> None:
        self._transform, self._errors, self._most = transform, errors, 2 * count
        self._executor = self._executor_of(count)

    def applied(self, batches: Iterator[tuple[_What, Batch]]) -> Iterator[tuple[_What, Applied]]:
        """Results of each batch, with what came with it."""
        pending: deque[tuple[_What, Future[Applied]]] = deque()
        try:
            for number, (what, batch) in enumerate(batches):
                pending.append((what, self._submit(number % (self._most + 1), batch)))
                if len(pending) > self._most:
                    yield self._first(pending)
            while pending:
                yield self._first(pending)
        finally:
            self._executor.shutdown(cancel_futures=True)

    def _first(self, pending: deque[tuple[_What, Future[Applied]]]) -> tuple[_What, Applied]:
        what, future = pending.popleft()
        return what, self._result(future)

    def _executor_of(self, count: int) -> Executor:
        return ThreadPoolExecutor(count, "pario-transform")

    def _submit(self, slot: int, batch: Batch) -> Future[Applied]:
        """``slot``: a number that no other batch under way has."""
        return self._executor.submit(apply, self._transform, list(batch), batch.numbers.tolist(), self._errors)

    def _result(self, future: Future[Applied]) -> Applied:
        return future.result()


class Processes(Threads):
    """The same with processes."""

    def _executor_of(self, count: int) -> Executor:
        if multiprocessing.current_process().daemon:
            raise ParioError(
                "Loader: processes=True: a worker process of a DataLoader can have no processes: "
                "expected threads (workers=N), or more workers of the DataLoader"
            )
        try:
            pickle.dumps(self._transform)
        except Exception as error:
            raise ParioError(f"Loader: transform: expected a function of a module, which processes can import: {error}") from error
        context = multiprocessing.get_context("forkserver")
        self._under_way = context.RawArray("q", [-1] * (self._most + 1))
        return ProcessPoolExecutor(count, context, _set_under_way, (self._under_way,))

    def _submit(self, slot: int, batch: Batch) -> Future[Applied]:
        records = [bytes(record) for record in batch]
        try:
            return self._executor.submit(_apply_noting, slot, self._transform, records, batch.numbers.tolist(), self._errors)
        except BrokenExecutor as error:
            raise self._broken() from error

    def _result(self, future: Future[Applied]) -> Applied:
        try:
            return future.result()
        except BrokenExecutor as error:
            raise self._broken() from error
        except ParioError:
            raise
        except Exception as error:
            raise ParioError(f"transform: its results cannot be sent from a process: {error}") from error

    def _broken(self) -> ParioError:
        at = sorted(number for number in self._under_way if number >= 0)
        if not at:
            return ParioError("transform: a process ended before its first record: expected if __name__ == '__main__' in the main program")
        where = f"record {at[0]}" if len(at) == 1 else "one of the records " + ", ".join(map(str, at))
        return ParioError(f"{where}: transform: its process ended (killed, or out of memory?)")


def _set_under_way(shared: Any) -> None:
    global _under_way
    _under_way = shared


def _apply_noting(slot: int, transform: Callable[[Any], Any], records: list[bytes], numbers: list[int], errors: str) -> Applied:
    """In a worker process."""
    return apply(transform, records, _noted(slot, numbers), errors)


def _noted(slot: int, numbers: list[int]) -> Iterator[int]:
    try:
        for number in numbers:
            _under_way[slot] = number
            yield number
    finally:
        _under_way[slot] = -1
