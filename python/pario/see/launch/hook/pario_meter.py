"""How long a training loop waits for its batches: a clock around the method with which loaders hand
them out, told to the log.

Runs in the Python processes under ``pario run``, of any version from 3.8 on, with nothing but the
standard library. One method of a loader's module is wrapped when the program imports it; a program
without such modules is left alone. Counted are loops of the main thread, and of loaders that use
each other the outermost.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import perf_counter

TYPE_CHECKING = False  # every Python process imports this: nothing is imported that it may not need
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_MAIN = get_ident()
#: Notes are written at the end, and for programs that are killed whenever the time since the first
#: batch has grown by this.
_GROWTH = 1.1
#: Instead of a number of workers.
_THREADS = -1


class _State:
    meters: dict[tuple[Any, ...], Meter] = {}  # noqa: RUF012
    send: Any = None  # writes a note: bytes and their number
    inside = False  # a loader that is counted
    begin = due = 0.0  # when the first note was due, and when the next one is


class Meter:
    """What the loaders of one description have done in this process; seconds for first batches of
    epochs, for others, between them."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        self.batches = 0
        self.first = self.waited = self.worked = self.longest = 0.0

    def add(self, seconds: float, since_last: float | None) -> None:
        """A batch; the first of an epoch has none before it."""
        self.batches += 1
        if since_last is None:
            self.first += seconds
        else:
            self.waited += seconds
            self.worked += since_last
            self.longest = max(self.longest, seconds)

    def note(self, number: int) -> bytes:
        """As in docs/log-format.md."""
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
            }
        ).encode()


class Clock:
    """Of one iteration over a loader; without a Meter it counts nothing."""

    def __init__(self, meter: Meter | None) -> None:
        self.meter = meter
        self.given: float | None = None  # when the last batch was

    def next(self, get: Callable[..., Any], *arguments: Any, first: bool = False) -> Any:
        """What ``get`` returns, and the time it takes."""
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
        self.meter.add(end - begin, None if first or self.given is None else begin - self.given)
        self.given = end
        if end > _State.due:
            tell()
        return batch

    def over(self, batches: Any) -> Iterator[Any]:
        """The same of all that a generator yields."""
        try:
            while True:
                try:
                    batch = self.next(next, batches)
                except StopIteration:
                    return
                yield batch
        finally:
            batches.close()


def tell() -> None:
    """Writes the counts so far; a note replaces the earlier note of the same number."""
    now = perf_counter()
    _State.due = now + max(1.0, (now - _State.begin) * (_GROWTH - 1))
    for number, meter in enumerate(_State.meters.values()):
        text = meter.note(number)
        _State.send(text, len(text))


def meter_of(**facts: Any) -> Meter | None:
    """The one of this description; none in worker processes of a DataLoader, and where no log is
    written."""
    worker = getattr(sys.modules.get("torch.utils.data._utils.worker"), "_worker_info", None)
    if worker is not None or not (_State.send or _begin()):
        return None
    return _State.meters.setdefault(
        tuple(facts.values()), Meter(**facts, processors=len(os.sched_getaffinity(0)))
    )


def _begin() -> bool:
    """Whether notes can be written: the library is there."""
    import atexit
    import ctypes

    send = getattr(ctypes.CDLL(None), "pario_note", None)
    if send is None:
        return False
    send.argtypes, send.restype = (ctypes.c_char_p, ctypes.c_size_t), None
    _State.send, _State.begin = send, perf_counter()
    _State.due = _State.begin + 1.0
    atexit.register(tell)
    os.register_at_fork(after_in_child=_forget)
    return True


def _forget() -> None:
    """Resets the counts in the child of a fork, because they belong to the parent."""
    _State.meters.clear()
    _State.inside = False


def _watch_torch(module: Any) -> None:
    """The iterators of a PyTorch DataLoader share one ``__next__``."""
    import functools

    original = module._BaseDataLoaderIter.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        clock = self.__dict__.get("_pario_clock")
        if clock is None:
            clock = self._pario_clock = Clock(_meter_of_torch(self))
        return clock.next(original, self, first=getattr(self, "_num_yielded", 1) == 0)

    module._BaseDataLoaderIter.__next__ = __next__


def _meter_of_torch(iterator: Any) -> Meter | None:
    data = type(iterator._dataset)
    if data.__module__.startswith(
        "keras."
    ):  # Keras uses it to convert batches; they are counted where they are made
        return None
    batch = (
        getattr(iterator._index_sampler, "batch_size", None) if iterator._auto_collation else None
    )
    return meter_of(
        kind="DataLoader", data=data.__name__, workers=iterator._num_workers, batch=batch or 0
    )


def _watch_keras(module: Any) -> None:
    """What Keras makes batches of a PyDataset with, on every backend."""
    original = module.PyDatasetAdapter._get_iterator

    def _get_iterator(self: Any) -> Iterator[Any]:
        data = self.py_dataset
        workers = data.workers if data.workers > 1 or data.use_multiprocessing else 0
        return Clock(
            meter_of(kind="Keras", data=type(data).__name__, workers=workers, batch=0)
        ).over(original(self))

    module.PyDatasetAdapter._get_iterator = _get_iterator


def _watch_pario(module: Any) -> None:
    """``pario.records.Loader``."""
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
    """Finds no module by itself: those that are watched are changed when they have been loaded as
    ever."""

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
        with suppress(Exception):  # another version of the module: it is left as it is
            watch(module)

    loader.exec_module = exec_module


def start() -> None:
    """Where a log is written."""
    if os.environ.get("PARIO_TRACE_DIR"):
        sys.meta_path.insert(0, _Watch())
