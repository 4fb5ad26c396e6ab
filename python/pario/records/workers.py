"""Applies a function to each record in threads or processes, a few batches ahead, in order."""

from __future__ import annotations

import multiprocessing
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pario.errors import ParioError
from pario.records.samples import MissingPackageError, Raw, title_of

if TYPE_CHECKING:
    from pario.records.batch import Batch

_Note = TypeVar("_Note")
#: In a worker process: the current record of each submitted batch, -1 if none. In memory shared
#: with the Loader's process, which names these records if a worker process ends.
_under_way: Any = None


@dataclass(frozen=True)
class Missing:
    """No result: the transform failed on the record, with ``error``, or a filter left it out."""

    error: str = ""


def apply(
    transform: Callable[[Any], Any], records: list[Any], numbers: Iterable[int], errors: str
) -> list[Any]:
    """Applies the function to each record, in this thread. Returns a result, or Missing, for
    each."""
    results: list[Any] = []
    for number, record in zip(numbers, records, strict=True):
        try:
            results.append(transform(record))
        except MissingPackageError:
            raise
        except Exception as error:
            title = f" ({name})" if isinstance(record, Raw) and (name := title_of(record)) else ""
            text = f"record {number}{title}: transform: {type(error).__name__}: {error}"
            if errors == "raise":
                raise ParioError(text) from error
            results.append(Missing(text))
    return results


class Threads:
    """Applies a function in ``count`` threads, during one iteration."""

    def __init__(
        self,
        inputs: Callable[[Batch], list[Any]],
        transform: Callable[[Any], Any],
        errors: str,
        count: int,
    ) -> None:
        #: The arguments of the function for a batch.
        self._inputs = inputs
        self._transform, self._errors, self._most = transform, errors, 2 * count
        self._executor = self._executor_of(count)

    def apply_to_batches(
        self, batches: Iterator[tuple[_Note, Batch]]
    ) -> Iterator[tuple[_Note, list[Any]]]:
        """The results of each batch, with the note that came with it."""
        pending: deque[tuple[_Note, Future[list[Any]]]] = deque()
        try:
            for number, (note, batch) in enumerate(batches):
                pending.append((note, self._submit(number % (self._most + 1), batch)))
                if len(pending) > self._most:
                    yield self._first(pending)
            while pending:
                yield self._first(pending)
        finally:
            self._executor.shutdown(cancel_futures=True)

    def _first(self, pending: deque[tuple[_Note, Future[list[Any]]]]) -> tuple[_Note, list[Any]]:
        note, future = pending.popleft()
        return note, self._result(future)

    def _executor_of(self, count: int) -> Executor:
        return ThreadPoolExecutor(count, "pario-transform")

    def _submit(self, slot: int, batch: Batch) -> Future[list[Any]]:
        """Submits a batch; ``slot``: a number that no other pending batch has."""
        return self._executor.submit(
            apply, self._transform, self._inputs(batch), batch.numbers.tolist(), self._errors
        )

    def _result(self, future: Future[list[Any]]) -> list[Any]:
        return future.result()


class Processes(Threads):
    """Applies a function in ``count`` processes, during one iteration."""

    def _executor_of(self, count: int) -> Executor:
        if multiprocessing.current_process().daemon:
            raise ParioError(
                "Loader: processes=True: a worker process of a DataLoader can have no processes: "
                "expected threads (workers=N), or more workers of the DataLoader"
            )
        try:
            pickle.dumps(self._transform)
        except Exception as error:
            raise ParioError(
                "Loader: transform: expected a function of a module, which processes can import:"
                f" {error}"
            ) from error
        context = multiprocessing.get_context("forkserver")
        self._under_way = context.RawArray("q", [-1] * (self._most + 1))
        return ProcessPoolExecutor(count, context, _set_under_way, (self._under_way,))

    def _submit(self, slot: int, batch: Batch) -> Future[list[Any]]:
        records = [_copy(record) for record in self._inputs(batch)]
        try:
            return self._executor.submit(
                _apply_with_notes,
                slot,
                self._transform,
                records,
                batch.numbers.tolist(),
                self._errors,
            )
        except (BrokenExecutor, ConnectionError) as error:  # the latter: of the server of forks
            raise self._make_error() from error

    def _result(self, future: Future[list[Any]]) -> list[Any]:
        try:
            return future.result()
        except BrokenExecutor as error:
            raise self._make_error() from error
        except ParioError:
            raise
        except Exception as error:
            raise ParioError(
                f"transform: its results cannot be sent from a process: {error}"
            ) from error

    def _make_error(self) -> ParioError:
        at = sorted(number for number in self._under_way if number >= 0)
        if not at:
            return ParioError(
                "transform: a process ended before its first record: expected if __name__ =="
                " '__main__' in the main program"
            )
        where = (
            f"record {at[0]}" if len(at) == 1 else "one of the records " + ", ".join(map(str, at))
        )
        return ParioError(f"{where}: transform: its process ended (killed, or out of memory?)")


def _copy(record: Any) -> Any:
    """A record, or the input of a decoder, that can be sent to a process."""
    if isinstance(record, Raw):
        return record._replace(data=bytes(record.data))
    return bytes(record)


def _set_under_way(shared: Any) -> None:
    global _under_way
    _under_way = shared


def _apply_with_notes(
    slot: int,
    transform: Callable[[Any], Any],
    records: list[Any],
    numbers: list[int],
    errors: str,
) -> list[Any]:
    """Applies the function in a worker process, and notes the current record."""
    return apply(transform, records, _note_each(slot, numbers), errors)


def _note_each(slot: int, numbers: list[int]) -> Iterator[int]:
    try:
        for number in numbers:
            _under_way[slot] = number
            yield number
    finally:
        _under_way[slot] = -1
