"""Batches of records for training, in an exact and resumable random order."""

from __future__ import annotations

import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pario._native import RecordFile, RecordLoader, schedule_step, schedule_steps, start_loader
from pario.errors import ParioError
from pario.records.batch import Batch
from pario.records.dataset import REMOTE_THREADS, Dataset
from pario.records.group_loader import GroupedFiles, GroupLoader
from pario.records.groups import GroupedFile
from pario.records.passes import Passes, Place
from pario.records.state import check_whole, read_state, write_state
from pario.records.workers import Applied, Processes, Threads, apply

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pario.records.adapters import Batches

_Share = tuple[int, int, int, int, int, int, str]

#: The most threads of ``prefetch="auto"``; each has one request to the device at a time.
MOST_THREADS = 16
#: Waits for batches that are kept for percentiles.
_MOST_WAITS = 100_000
_PERMUTATION = (
    "Loader: in a full permutation each record may need a group of about {} records decoded;"
    " groups=N mixes the records of N groups, and pario records convert makes a file whose records"
    " can be read one by one"
)


class _Progress(NamedTuple):
    """The position of all ranks after a batch, and the batch's counts."""

    position: int
    records: int
    bytes: int
    skipped: int


@dataclass
class LoaderStats:
    """Counts and times of a Loader since its creation.

    Times are in seconds. ``waited``: waiting for batches other than the first of an epoch;
    ``worked``: between batches; ``first``: waiting for the first batches of all ``epochs`` begun.
    """

    epochs: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    skipped: int = 0
    waited: float = 0.0
    worked: float = 0.0
    first: float = 0.0
    threads: int = 0
    waits: list[float] = field(default_factory=list, repr=False)

    @property
    def stalled(self) -> float:
        """The fraction of the time spent waiting, without the first batches."""
        return self.waited / (self.waited + self.worked) if self.waited else 0.0

    def percentile(self, percent: float) -> float:
        """A percentile of the waits for a batch, in seconds."""
        waits = sorted(self.waits)
        return waits[min(len(waits) - 1, int(len(waits) * percent / 100))] if waits else 0.0

    def add_wait(self, seconds: float, first: bool) -> None:
        """Adds a wait for a batch; ``first``: for the first batch of an epoch."""
        if first:
            self.first += seconds
            self.epochs += 1
            return
        self.waited += seconds
        if len(self.waits) < _MOST_WAITS:
            self.waits.append(seconds)

    def add(self, progress: _Progress) -> None:
        """Adds the counts of a batch."""
        self.batches += 1
        self.records += progress.records
        self.bytes += progress.bytes
        self.skipped += progress.skipped

    def __str__(self) -> str:
        first = self.first / max(1, self.epochs)
        seconds = self.first + self.waited + self.worked
        rate = (
            f"{self.records / seconds:,.0f} samples/s, {self.bytes / seconds / 1e6:,.1f} MB/s, "
            if seconds
            else ""
        )
        return (
            f"waited {self.stalled:.1%} of step time (first batch {first * 1e3:.1f} ms, then p50"
            f" {self.percentile(50) * 1e3:.2f} ms, p99 {self.percentile(99) * 1e3:.2f} ms),"
            f" {rate}{self.threads} threads" + (f", {self.skipped} skipped" if self.skipped else "")
        )


class Loader:
    """The batches of one rank; each iteration is an epoch, or the rest of one.

    The order is a function of ``seed``, epoch and position alone: ranks, threads and workers do not
    change it. After a ``break`` the next iteration continues after the last batch returned; after
    the last batch of an epoch the next epoch begins. ``state_dict()`` resumes at any batch, on any
    number of ranks. A DataLoader of PyTorch accepts ``loader.torch()``.

    Every rank makes a Loader of its own with the same arguments except ``rank``; ranks do not
    communicate. Only one thread at a time may use a Loader. An iteration belongs to the process
    that began it, and ends when another one begins.

    Parameters
    ----------
    dataset : Dataset, path or sequence of Dataset
        One Dataset, or several as one after the other; or the path or URL of a Dataset.
    batch_size : int
        Records of a batch of one rank.
    shuffle : bool
        Random order, different for each seed and epoch. Files of ``pario records shuffle --fused``
        are read bucket by bucket. Groups of Parquet and ArrayRecord are read in random order, each
        decoded once per epoch, and the records of ``groups`` of them are mixed.
    seed : int
        Selects the random order, 0 to 2**64 - 1.
    groups : int, optional
        Groups that are mixed; default: as many as occupy 16 MiB in the files. 0: a full
        permutation, which decodes groups repeatedly.
    blocks : pair of int, optional
        ``(RECORDS, BLOCKS)``: shuffles blocks of RECORDS neighbouring records, and the records of
        BLOCKS blocks among each other. Reads stay long, for devices with slow random reads.
    interleave : pair of int, optional
        ``(FILES, RECORDS)``: reads FILES data sets side by side, RECORDS of each in turn, in the
        order of tf.data's ``interleave(cycle_length, block_length)``.
    rank, world : int
        The number of this rank, and of all ranks.
    remainder : {"pad", "drop", "exact"}
        The division of the last step's records if they do not fill a batch of every rank. "pad":
        all ranks get equally many, fewer than ``world`` records are repeated; "drop": all ranks
        get equally many, fewer than ``world`` are left out; "exact": each record comes once, and
        a rank may have one batch less.
    drop_last : bool
        Leaves out all records of such a last step.
    transform : callable(memoryview) -> Any, optional
        A function of each record. Without it and ``collate``, batches are of type Batch.
    workers : int
        Threads that call ``transform``; 0: the calling thread.
    processes : bool
        Call ``transform`` in processes instead of threads.
    collate : callable(list) -> Any, optional
        A function of the list of a batch's records, or results of ``transform``.
    prefetch : int or "auto"
        Concurrent requests to the device; "auto": more while the program waits for batches.
    memory : int
        Bytes that are read ahead at most; a larger batch is read by itself.
    caching : {"auto", "page_cache", "direct"}
        "page_cache"; "direct" bypasses the page cache for bytes that are not in it; "auto": direct
        for data larger than half of the free memory.
    errors : {"raise", "skip"}
        "raise" a ParioError that names the record, or "skip" records that cannot be read or
        transformed.

    Raises
    ------
    ParioError
        An argument is out of range or does not fit the others. While iterating: a record cannot be
        read or transformed, or another iteration began.

    Examples
    --------
    >>> import numpy as np
    >>> from pario.records import Dataset, Loader
    >>> np.arange(10, dtype="<i4").tofile("numbers.bin")
    >>> dataset = Dataset("numbers.bin", format="fixed", size=4)
    >>> loader = Loader(dataset, batch_size=4, drop_last=True)
    >>> [batch.array("<i4").ravel().tolist() for batch in loader]
    [[0, 1, 2, 3], [4, 5, 6, 7]]

    Resume in the middle of an epoch:

    >>> loader = Loader(dataset, batch_size=4, shuffle=True, seed=7)
    >>> batches = iter(loader)
    >>> first, state = next(batches), loader.state_dict()
    >>> rest = [batch.numbers.tolist() for batch in batches]
    >>> resumed = Loader(dataset, batch_size=4, shuffle=True, seed=7)
    >>> resumed.load_state_dict(state)
    >>> [batch.numbers.tolist() for batch in resumed] == rest
    True
    """

    def __init__(
        self,
        dataset: Dataset | str | os.PathLike[str] | Sequence[Dataset],
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        blocks: tuple[int, int] | None = None,
        interleave: tuple[int, int] | None = None,
        groups: int | None = None,
        transform: Callable[[memoryview], Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        workers: int = 0,
        processes: bool = False,
        drop_last: bool = False,
        remainder: str = "pad",
        prefetch: int | str = "auto",
        memory: int = 128 << 20,
        caching: str = "auto",
        errors: str = "raise",
    ) -> None:
        if isinstance(dataset, str | os.PathLike):
            dataset = Dataset(dataset)
        self.datasets = [dataset] if isinstance(dataset, Dataset) else list(dataset)
        self.count = sum(len(one) for one in self.datasets)
        self.batch_size, self.world = (
            check_whole("Loader: batch_size", batch_size, 1),
            check_whole("Loader: world", world, 1),
        )
        self.rank = check_whole("Loader: rank", rank, 0, self.world - 1)
        self._remainder = _remainder(remainder, drop_last)
        self.seed, self.epoch, self.position = check_whole("Loader: seed", seed, 0, 2**64 - 1), 0, 0
        self._iterations = 0
        #: Of DataLoaders over torch(); None before its first call.
        self._passes: Passes | None = None
        self._order = (
            "blocks"
            if blocks
            else "shuffled"
            if shuffle
            else "interleaved"
            if interleave
            else "as they lie"
        )
        sides = _pair("Loader: interleave", interleave)
        self._blocks = _pair("Loader: blocks", blocks) or (sides and sides[::-1]) or (1, 1)
        self._grouped = self._grouped_files()
        self._mix_groups(groups)
        self._transform, self._collate, self._processes = transform, collate, processes
        self._workers = check_whole("Loader: workers", workers, 0)
        self._bucketing = self._bucketing_of() if self._order in ("as they lie", "shuffled") else ()
        most = REMOTE_THREADS if any(one.remote for one in self.datasets) else MOST_THREADS
        self._threads = most if prefetch == "auto" else check_whole("Loader: prefetch", prefetch, 1)
        self._memory, self._errors = check_whole("Loader: memory", memory, 0, 2**63), errors
        self.stats = LoaderStats()
        if interleave and (shuffle or blocks):
            raise ParioError(
                "Loader: interleave is an order of its own: expected neither shuffle nor blocks"
            )
        self._check(caching)
        self._direct = caching == "direct" or (
            caching == "auto" and not self._grouped and self._bytes() > _free_memory() / 2
        )

    def _check(self, caching: str) -> None:
        if caching not in ("auto", "page_cache", "direct"):
            raise ParioError(
                f"Loader: caching={caching!r}: expected 'auto', 'page_cache' or 'direct'"
            )
        if self._errors not in ("raise", "skip"):
            raise ParioError(f"Loader: errors={self._errors!r}: expected 'raise' or 'skip'")

    def _grouped_files(self) -> GroupedFiles | None:
        """The files of formats that are decoded group by group; None if there are none."""
        grouped = [one.file for one in self.datasets if isinstance(one.file, GroupedFile)]
        if grouped and len(grouped) < len(self.datasets):
            raise ParioError(
                f"{grouped[0].path}: is decoded group by group: expected no other formats with it;"
                " pario records convert helps"
            )
        return GroupedFiles(grouped) if grouped else None

    def _mix_groups(self, groups: int | None) -> None:
        """Makes ``shuffle`` an order of groups, unless ``groups`` is 0 or the files have none."""
        files = self._grouped
        together = 0 if groups is None else check_whole("Loader: groups", groups, 0)
        if groups is not None and (not files or self._order != "shuffled"):
            raise ParioError(
                f"Loader: groups={groups}: expected at least 0, with shuffle, and Parquet or"
                " ArrayRecord"
            )
        if not files or self._order != "shuffled":
            return
        together = files.default_mix() if groups is None else together
        if together:
            self._order, self._blocks = (
                "groups",
                (zlib.crc32(files.firsts.tobytes()) or 1, together),
            )
        elif files.default_mix():
            warnings.warn(_PERMUTATION.format(self.count // files.count), stacklevel=3)

    def _bucketing_of(self) -> tuple[int, ...]:
        """Seed and number of the buckets of a fused shuffle's output; empty for other files."""
        bucketed = [] if self._grouped else [one for one in self.datasets if one.file.bucketing]
        if bucketed and len(self.datasets) > 1:
            raise ParioError(
                f"{bucketed[0].path}: was shuffled into buckets: expected by itself; several inputs"
                " are shuffled as one"
            )
        return bucketed[0].file.bucketing or () if bucketed else ()

    def _bytes(self) -> int:
        return sum(
            int(one.offsets(len(one) - 1, len(one))[1]) if len(one) else 0 for one in self._files()
        )

    def _files(self) -> list[RecordFile]:
        """The files whose records can be read one by one."""
        return [one.file for one in self.datasets if not isinstance(one.file, GroupedFile)]

    def _share(self, position: int, stride: int = 1, offset: int = 0) -> _Share:
        return position, self.batch_size, self.world, self.rank, stride, offset, self._remainder

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch, wherever the Loader is."""
        steps = self._steps_from(0)
        if steps == 0:
            return 0
        first, last, _ = schedule_step(self._share(0), self.count, steps - 1)
        return steps if first < last else steps - 1

    def _steps_from(self, position: int) -> int:
        """The number of steps from a position on, equal on all ranks; with ``remainder="exact"`` a
        rank may have no batch in the last one."""
        return schedule_steps(self._share(position), self.count)

    def __iter__(self) -> Iterator[Any]:
        self.go_to(self._next_place())
        self._iterations += 1
        mine = self._iterations
        for batch in self.part(1, 0):
            yield batch
            if self._iterations != mine:
                raise ParioError(
                    "an iteration over a Loader ends when another one begins, or a state is loaded:"
                    " expected one at a time"
                )
        self.epoch, self.position = self.epoch + 1, 0

    def go_to(self, place: Place) -> None:
        """Sets seed, epoch and position, from which the next iteration reads."""
        self.seed, self.epoch, self.position = place

    def _next_place(self) -> Place:
        """The current place; after the last batch of an epoch the beginning of the next one."""
        return self._normalize(Place(self.seed, self.epoch, self.position))

    def _normalize(self, place: Place) -> Place:
        return (
            place.next_epoch() if place.position and not self._steps_from(place.position) else place
        )

    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """
        yield from self._time_batches(
            self._transform_batches(
                self._read(self._start(self._share(self.position, stride, offset)))
            )
        )

    def _start(self, share: _Share) -> RecordLoader | GroupLoader:
        order = (self._order, self.seed, self.epoch, *self._blocks)
        if self._grouped:
            return GroupLoader(self._grouped, order, share, self._memory, self._threads)
        return start_loader(self._files(), order, share, self._memory, self._threads, self._direct)

    def forever(self) -> Iterator[Any]:
        """Yields the batches of epoch after epoch, for Keras and
        ``tf.data.Dataset.from_generator(loader.forever, ...)``. Ends if an epoch has no batch for
        this rank.
        """
        while True:
            begin, batches = self._next_place().position, 0
            for batch in self:
                batches += 1
                yield batch
            if begin + batches == 0:
                return

    def torch(self) -> Batches:
        """The batches for ``DataLoader(loader.torch(), batch_size=None, num_workers=N)``.

        Each pass is the next epoch; worker processes share the batches and keep their order. Needs
        PyTorch.
        """
        from pario.records.adapters import Batches

        if self._passes is None:
            self._passes = Passes(self._next_place())
        return Batches(self, self._passes)

    def state_dict(self) -> dict[str, Any]:
        """The state after the last batch returned.

        Returns
        -------
        dict
            A few numbers and texts, fit for JSON; equal on all ranks after equally many batches.

        Raises
        ------
        ParioError
            Worker processes of a DataLoader read the batches, and have read ahead.
        """
        if self._passes and self._passes.read_by_workers():
            raise ParioError(
                "state of a Loader: worker processes of a DataLoader have read ahead: expected"
                " loader.torch().state_after(batches) or a StatefulDataLoader"
            )
        return self.state_of(self._next_place())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration, or pass of a DataLoader, begin at a state.

        Parameters
        ----------
        state : dict
            From ``state_dict()``; the number of ranks and the batch size may differ.

        Raises
        ------
        ParioError
            The state is damaged, or belongs to other records or another order. Nothing changes.
        """
        self.go_to(self.place_of(state))
        self._iterations += 1
        if self._passes:
            self._passes.set_next(self._next_place())

    def state_of(self, place: Place) -> dict[str, Any]:
        """The state of a Loader at a place."""
        return write_state(place, self.count, self._whole_order())

    def place_of(self, state: dict[str, Any]) -> Place:
        """The place of a state; raises ParioError as ``load_state_dict``."""
        return read_state(state, self.count, self._whole_order())

    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``."""
        most = self._steps_from(place.position)
        if check_whole("Loader: batches", batches, 0, most) == 0:
            return place
        _, _, end = schedule_step(self._share(place.position), self.count, batches - 1)
        return self._normalize(place._replace(position=end))

    def division(self) -> tuple[int, int, int, str]:
        """The division of an epoch: batch size, ranks, this rank, treatment of the remainder."""
        return self.batch_size, self.world, self.rank, self._remainder

    def _whole_order(self) -> list[Any]:
        return [self._order, *self._blocks, *self._bucketing]

    def _read(self, native: RecordLoader | GroupLoader) -> Iterator[tuple[_Progress, Batch]]:
        with closing(native) if isinstance(native, GroupLoader) else nullcontext():
            while (read := native.next()) is not None:
                memory, numbers, places, failures, position = read
                if failures:
                    numbers, places = self._without(failures, numbers, places)
                self.stats.threads = native.threads()
                data = int((places[:, 1] - places[:, 0]).sum())
                yield (
                    _Progress(position, len(numbers), data, len(failures)),
                    Batch(memory, numbers, places),
                )

    def _without(
        self, failures: list[tuple[int, str]], numbers: NDArray[Any], places: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        import numpy as np

        if self._errors == "raise":
            raise ParioError("record {}: {}".format(*failures[0]))
        whole = ~np.isin(numbers, [number for number, _ in failures])
        return numbers[whole], places[whole]

    def _transform_batches(
        self, batches: Iterator[tuple[_Progress, Batch]]
    ) -> Iterator[tuple[_Progress, Any]]:
        transform = self._transform
        if transform is None:
            return (
                (progress, self._collate_results(list(batch)) if self._collate else batch)
                for progress, batch in batches
            )
        applied: Iterator[tuple[_Progress, Applied]]
        if self._workers == 0:
            applied = (
                (progress, apply(transform, list(batch), batch.numbers.tolist(), self._errors))
                for progress, batch in batches
            )
        else:
            applied = (Processes if self._processes else Threads)(
                transform, self._errors, self._workers
            ).apply_to_batches(batches)
        return (self._finish(progress, results) for progress, results in applied)

    def _finish(self, progress: _Progress, applied: Applied) -> tuple[_Progress, Any]:
        results, skipped = applied
        given = progress._replace(
            records=progress.records - skipped, skipped=progress.skipped + skipped
        )
        return given, self._collate_results(results)

    def _collate_results(self, results: list[Any]) -> Any:
        return self._collate(results) if self._collate else results

    def _time_batches(self, batches: Iterator[tuple[_Progress, Any]]) -> Iterator[Any]:
        stats, owner = self.stats, os.getpid()
        begin, first = time.perf_counter(), True
        for progress, batch in batches:
            now = time.perf_counter()
            stats.add_wait(now - begin, first)
            stats.add(progress)
            first, self.position = False, progress.position
            yield batch
            if os.getpid() != owner:
                raise ParioError(
                    "an iteration over a Loader belongs to the process that began it: begin one in"
                    " the child of the fork"
                )
            begin = time.perf_counter()
            stats.worked += begin - now


def _pair(name: str, values: Any) -> tuple[int, int] | None:
    """Two positive whole numbers, or None."""
    if values is None:
        return None
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ParioError(f"{name}={values!r}: expected two numbers")
    return check_whole(name, values[0], 1), check_whole(name, values[1], 1)


def _remainder(remainder: str, drop_last: bool) -> str:
    """The core's name for the treatment of the remainder."""
    if remainder not in ("pad", "drop", "exact"):
        raise ParioError(f"Loader: remainder={remainder!r}: expected 'pad', 'drop' or 'exact'")
    return "full batches" if drop_last else remainder


def _free_memory() -> int:
    with open("/proc/meminfo") as facts:  # noqa: PTH123
        return next(
            int(line.split()[1]) * 1024 for line in facts if line.startswith("MemAvailable")
        )
