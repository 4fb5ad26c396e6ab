"""Data sets and loaders as data sets of PyTorch. Needs torch."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch.utils.data

from pario.errors import ParioError
from pario.leaves import map_leaves
from pario.records.passes import MAIN, Passes, Place, Reader
from pario.records.state import check_whole, expect_same


class RecordSource(Protocol):
    """Records by number, such as a Dataset, or samples."""

    def __len__(self) -> int: ...
    def __getitem__(self, which: Any) -> Any: ...


class BatchSource(Protocol):
    """Batches from any place of an epoch on; Epochs documents the methods."""

    position: int
    skip: int

    def __len__(self) -> int: ...
    def division(self) -> tuple[int, int, int, str]: ...  # noqa: D102
    def go_to(self, place: Place) -> None: ...  # noqa: D102
    def part(self, stride: int, offset: int) -> Iterator[Any]: ...  # noqa: D102
    def place_after(self, place: Place, batches: int) -> Place: ...  # noqa: D102
    def place_of(self, state: dict[str, Any]) -> Place: ...  # noqa: D102
    def state_of(self, place: Place) -> dict[str, Any]: ...  # noqa: D102


class Records(torch.utils.data.Dataset[Any]):
    """Records by number, as tensors of bytes, or samples, for samplers; records of a batch are
    read together."""

    def __init__(self, dataset: RecordSource) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        return _tensor(self.dataset[number])

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        return [_tensor(record) for record in self.dataset[numbers]]


class Batches(torch.utils.data.IterableDataset[Any]):
    """The batches of a Loader, for ``DataLoader(loader.torch(), batch_size=None)``.

    Each pass over the DataLoader is the next epoch, also after a ``break``. The first pass after
    ``load_state_dict`` of the Loader is the rest of the state's epoch. Worker processes take the
    batches in turns, so that their order is the one of the Loader. A DataLoader without
    ``batch_size=None`` and with PyTorch's ``default_collate`` raises ParioError.
    """

    def __init__(self, loader: BatchSource, passes: Passes) -> None:
        self.loader = loader
        self._passes = passes

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch."""
        return len(self.loader)

    def __iter__(self) -> Pass:
        _reject_collation(sys._getframe(1).f_locals.get("self"))
        return Pass(self.loader, self._passes)

    def state_after(self, batches: int) -> dict[str, Any]:
        """The Loader's state after the first ``batches`` batches of the newest pass.

        ``load_state_dict`` of a Loader with any number of ranks, and a DataLoader with any number
        of workers, resume behind them. To be called in the process that runs the DataLoader;
        raises ParioError if no pass has begun, or if it has fewer batches.
        """
        place = self._passes.newest()
        if place is None:
            raise ParioError("state of a Loader: expected after a pass over a DataLoader has begun")
        return self.loader.state_of(self.loader.place_after(place, batches))


class Pass(Iterator[Any]):
    """One pass over the batches of a Loader, or a worker's share of it.

    torchdata's StatefulDataLoader stores and restores its state, with which the pass continues
    without reading the batches before it again.
    """

    def __init__(self, loader: BatchSource, passes: Passes) -> None:
        worker = torch.utils.data.get_worker_info()
        self._loader, self._passes = loader, passes
        self._stride: int = worker.num_workers if worker else 1
        self._offset: int = worker.id if worker else 0
        self._reader = _reader_of(worker)
        self._place = passes.begin(self._reader)
        #: Batches given, and position and skip of the Loader after the last one.
        self._given = 0
        self._at: tuple[int, int] | None = None
        self._batches: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = self._begin()
        batch = next(self._batches)
        self._given += 1
        self._at = self._loader.position, self._loader.skip
        return map_leaves(_copy_view, batch)

    def _begin(self) -> Iterator[Any]:
        """The batches that this worker has still to give."""
        if self._at is None:
            self._loader.go_to(self._place)
            return self._loader.part(self._stride, self._offset)
        position, skip = self._at
        self._loader.go_to(self._place._replace(position=position, skip=skip))
        return self._loader.part(self._stride, self._stride - 1)

    def state_dict(self) -> dict[str, Any]:
        """The place of the pass, and how far this worker has come."""
        state = self._loader.state_of(self._place)
        return {**state, "share": self._share(), "batches": self._given, "at": self._at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues the pass of the state; raises ParioError if it divides batches differently."""
        place = self._loader.place_of(state)
        expect_same("share", state, self._share())
        self._passes.replace(self._reader, place)
        self._given = check_whole("state of a Loader: batches", state.get("batches"), 0)
        at = state.get("at")
        self._at = (int(at[0]), int(at[1])) if at else None
        self._place, self._batches = place, None

    def _share(self) -> list[Any]:
        return [*self._loader.division(), self._stride, self._offset]


def _reject_collation(caller: Any) -> None:
    """Raise ParioError if the caller is the fetcher of a DataLoader that makes batches of batches.

    The fetcher has no other place to say so: a data set does not know its DataLoader, and batches
    may be tensors. A function of the user's own may collate batches.
    """
    collates = getattr(caller, "auto_collation", False)
    if collates and caller.collate_fn is torch.utils.data.default_collate:
        raise ParioError(
            "DataLoader(loader.torch(), batch_size=...): expected batch_size=None, because the"
            " Loader makes the batches: a DataLoader of batches adds a dimension"
        )


def _reader_of(worker: Any) -> Reader:
    if worker is None:
        return Reader(os.getpid(), MAIN, MAIN)
    parent = multiprocessing.parent_process()
    process = parent.pid if parent and parent.pid else os.getppid()
    return Reader(process, worker.id, worker.seed - worker.id)


def _copy_view(value: Any) -> Any:
    """Bytes in place of a view of a record, of which a DataLoader makes a list of integers."""
    return bytes(value) if isinstance(value, memoryview) else value


def _tensor(record: Any) -> Any:
    """A tensor of a record's bytes; a decoded sample as it is."""
    if not isinstance(record, memoryview):
        return record
    if not len(record):
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(record), dtype=torch.uint8)
