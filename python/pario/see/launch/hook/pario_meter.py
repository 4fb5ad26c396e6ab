"""Measures the time that training loops wait for batches, and writes it to the log.

Runs in the Python processes under ``pario run``, from version 3.8 on, with the standard library
only. When the program imports the module of a loader, the method that returns its batches is
wrapped; a program without such modules is not changed. Only loops of the main thread count, and of
nested loaders only the outermost.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import perf_counter

TYPE_CHECKING = False  # every Python process imports this module, so it imports little
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_MAIN = get_ident()
#: Notes are written at the end, and whenever the time since the first batch has grown by this
#: factor, because a program may be killed.
_GROWTH = 1.1
#: The largest number of intervals of time of a note.
_INTERVALS = 256
#: The number of workers of pario's own loader, which uses threads.
_THREADS = -1


class _State:
    meters: dict[tuple[Any, ...], Meter] = {}  # noqa: RUF012
    send: Any = None  # writes a note: bytes and their number
    inside = False  # in a measured loader
    begin = due = 0.0  # time of the first meter, and of the next note


class Bins:
    """Seconds by equal intervals of time. The intervals double when there would be too many."""

    def __init__(self) -> None:
        self.begin = 0.0
        self.width = 0.001
        self.seconds: list[float] = []

    def add(self, begin: float, end: float) -> None:
        """Count the time between two moments; no earlier time may begin later."""
        if not self.seconds:
            self.begin = begin
        while end - self.begin >= self.width * _INTERVALS:
            pairs = range(0, len(self.seconds), 2)
            self.seconds = [sum(self.seconds[first : first + 2]) for first in pairs]
            self.width *= 2
        first, last = self._index(begin), self._index(end)
        self.seconds += [0.0] * (last + 1 - len(self.seconds))
        for index in range(first, last):
            edge = self.begin + (index + 1) * self.width
            self.seconds[index] += edge - begin
            begin = edge
        self.seconds[last] += end - begin

    def _index(self, moment: float) -> int:
        return int((moment - self.begin) / self.width)


class Meter:
    """The times of the loaders of one description in this process, in seconds: waits for the first
    batches of epochs and for the others, and the time between waits."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        self.batches = 0
        self.first = self.waited = self.worked = self.longest = 0.0
        self.waits = Bins()

    def add(self, begin: float, end: float, since_last: float | None) -> None:
        """Count the wait for a batch; ``since_last`` is None for the first one of an epoch."""
        seconds = end - begin
        self.batches += 1
        self.waits.add(begin, end)
        if since_last is None:
            self.first += seconds
        else:
            self.waited += seconds
            self.worked += since_last
            self.longest = max(self.longest, seconds)

    def note(self, number: int) -> bytes:
        """Return the note for the log (docs/log-format.md)."""
        import json

        times = {
            name: round(getattr(self, name) * 1e9)
            for name in ("first", "waited", "worked", "longest")
        }
        return json.dumps(
            {
                "note": "loader",
                "id": number,
                **self.facts,
                "batches": self.batches,
                "timers_ns": times,
                "waits": {
                    "start_mono_ns": round(self.waits.begin * 1e9),
                    "interval_ns": round(self.waits.width * 1e9),
                    "waited_us": [round(seconds * 1e6) for seconds in self.waits.seconds],
                },
            }
        ).encode()


class Clock:
    """The clock of one iteration over a loader; without a meter it counts nothing."""

    def __init__(self, meter: Meter | None) -> None:
        self.meter = meter
        self.given: float | None = None  # time of the last batch

    def next(self, get: Callable[..., Any], *arguments: Any, first: bool = False) -> Any:
        """Return the result of ``get``, and count the time that it takes."""
        if self.meter is None or _State.inside or get_ident() != _MAIN:
            return get(*arguments)
        begin = perf_counter()
        _State.inside = True
        try:
            batch = get(*arguments)
        except StopIteration:
            self.given = None
            raise
        finally:
            _State.inside = False
        end = perf_counter()
        self.meter.add(begin, end, None if first or self.given is None else begin - self.given)
        self.given = end
        if end > _State.due:
            write_notes()
        return batch

    def over(self, batches: Any) -> Iterator[Any]:
        """Yield the batches of a generator, and count the time for each."""
        try:
            while True:
                try:
                    batch = self.next(next, batches)
                except StopIteration:
                    return
                yield batch
        finally:
            batches.close()


def write_notes() -> None:
    """Write the counts so far; a note replaces the earlier note of the same number."""
    now = perf_counter()
    _State.due = now + max(1.0, (now - _State.begin) * (_GROWTH - 1))
    for number, meter in enumerate(_State.meters.values()):
        text = meter.note(number)
        _State.send(text, len(text))


def meter_of(**facts: Any) -> Meter | None:
    """Return the meter of a description; None in worker processes of a DataLoader, and in processes
    without a log."""
    worker = getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None)
    if worker is not None or not (_State.send or _begin()):
        return None
    return _State.meters.setdefault(
        tuple(facts.values()), Meter(**facts, processors=len(os.sched_getaffinity(0)))
    )


def _begin() -> bool:
    """Prepare for writing notes; return False if pario's library is not loaded."""
    import atexit
    import ctypes

    send = getattr(ctypes.CDLL(None), "pario_note", None)
    if send is None:
        return False
    send.argtypes, send.restype = (ctypes.c_char_p, ctypes.c_size_t), None
    _State.send, _State.begin = send, perf_counter()
    _State.due = _State.begin + 1.0
    atexit.register(write_notes)
    os.register_at_fork(after_in_child=_forget)
    return True


def _forget() -> None:
    """Reset the counts in the child of a fork, because they belong to the parent."""
    _State.meters.clear()
    _State.inside = False


def _watch_torch(module: Any) -> None:
    """Wrap the ``__next__`` that all iterators of a PyTorch DataLoader share."""
    import functools

    original = module._BaseDataLoaderIter.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        clock = self.__dict__.get("_pario_clock")
        if clock is None:
            clock = self._pario_clock = Clock(_meter_of_torch(self))
        return clock.next(original, self, first=getattr(self, "_num_yielded", 1) == 0)

    module._BaseDataLoaderIter.__next__ = __next__
    if "pario_ahead" in sys.modules:
        sys.modules["pario_ahead"].watch(module)


def _meter_of_torch(iterator: Any) -> Meter | None:
    data = type(iterator._dataset)
    # Keras converts batches with a DataLoader; they are counted where Keras makes them.
    if data.__module__.startswith("keras."):
        return None
    batch = (
        getattr(iterator._index_sampler, "batch_size", None) if iterator._auto_collation else None
    )
    return meter_of(
        kind="DataLoader", data=data.__name__, workers=iterator._num_workers, batch=batch or 0
    )


def _watch_keras(module: Any) -> None:
    """Wrap the iterator with which Keras makes batches of a PyDataset, on every backend."""
    original = module.PyDatasetAdapter._get_iterator

    def _get_iterator(self: Any) -> Iterator[Any]:
        data = self.py_dataset
        workers = data.workers if data.workers > 1 or data.use_multiprocessing else 0
        return Clock(
            meter_of(kind="Keras", data=type(data).__name__, workers=workers, batch=0)
        ).over(original(self))

    module.PyDatasetAdapter._get_iterator = _get_iterator


def _watch_pario(module: Any) -> None:
    """Wrap the iterator of ``pario.records.Loader``."""
    original = module.Loader.part

    def part(self: Any, stride: int, offset: int) -> Iterator[Any]:
        path = self.datasets[0].path if self.datasets else ""
        meter = meter_of(
            kind="pario.records.Loader", data=path, workers=_THREADS, batch=self.batch_size
        )
        return Clock(meter).over(original(self, stride, offset))

    module.Loader.part = part


_WATCHED = {
    "torch.utils.data.dataloader": _watch_torch,
    "keras.src.trainers.data_adapters.py_dataset_adapter": _watch_keras,
    "pario.records.loader": _watch_pario,
}


class _Watch:
    """A finder that leaves the search to the other finders, and changes watched modules after they
    are loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        watch = _WATCHED.get(name)
        if watch is None:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        spec = next(
            filter(None, (finder.find_spec(name, path, target) for finder in finders)), None
        )
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _change(spec.loader, watch)
        return spec


def _change(loader: Any, watch: Callable[[Any], None]) -> None:
    from contextlib import suppress

    original = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        original(module)
        with suppress(Exception):  # an unknown version of the module stays unchanged
            watch(module)

    loader.exec_module = exec_module


def start() -> None:
    """Watch imports if the process writes a log."""
    if os.environ.get("PARIO_LOADER_AHEAD", "").lower() in ("1", "yes", "on", "true"):
        __import__("pario_ahead")  # now, because its directory will leave the path
    if os.environ.get("PARIO_TRACE_DIR"):
        sys.meta_path.insert(0, _Watch())
