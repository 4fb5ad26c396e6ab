"""Batches of records for training, in an exact and resumable random order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from pario._native import RecordLoader, schedule_step, schedule_steps
from pario.errors import ParioError
from pario.machine import free_memory
from pario.records.dataset import Dataset, Source, open_dataset
from pario.records.epochs import Epochs, find_rank
from pario.records.lengths import Lengths
from pario.records.mixture import Mixture
from pario.records.number_loader import load_numbers
from pario.records.passes import Place
from pario.records.pipeline import Batches, Pipeline
from pario.records.regroup import Regrouped
from pario.records.rules import Batching, Packing
from pario.records.samples import Decode, Decoders, Inputs, decoders_of
from pario.records.sequence import RecordSequence, choose_order
from pario.records.state import check_whole
from pario.records.stats import LoaderStats
from pario.records.steps import Steps
from pario.records.stream import REMOTE_THREADS, BatchStream, Reading, Share

#: Bytes that are read ahead, and the most of them for objects of stores.
_MEMORY, _REMOTE_MEMORY = 128 << 20, 512 << 20
#: Positions of an order whose records are looked up together.
_TOGETHER = 1 << 16
#: Shares of an epoch up to which the process of each keeps whole objects.
_SHARES = 4
#: The most threads of ``prefetch="auto"``; each has one request to the device at a time.
MOST_THREADS = 16


class Loader(Epochs):
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
    dataset : Dataset, path, sequence of them, or Mixture
        One Dataset, or its path or URL; or several as one after the other; or several that are
        mixed by weights.
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
    rank, world : int, optional
        The number of this rank, and of all ranks; default: those of torch.distributed or
        jax.distributed if one is initialized, those of torchrun before, else one rank.
    remainder : {"pad", "drop", "exact"}
        The division of the last step's records if they do not fill a batch of every rank. "pad":
        all ranks get equally many, fewer than ``world`` records are repeated; "drop": all ranks
        get equally many, fewer than ``world`` are left out; "exact": each record comes once, and
        a rank may have one batch less.
    drop_last : bool
        Leaves out all records of such a last step.
    decode : bool or dict of str to callable
        Samples are dictionaries of fields (``docs/training.md``) in place of bytes. A dictionary
        has decoders by the name of the field, None: leave the bytes.
    transform : callable(memoryview or dict) -> Any, optional
        A function of each record, or sample: the first :meth:`map`. Without it, ``decode`` and
        ``collate`` batches are of type Batch.
    workers : int
        Threads that call ``transform``; 0: the calling thread.
    processes : bool
        Call ``transform`` in processes instead of threads.
    collate : callable(list) -> Any, optional
        A function of the list of a batch's records, or results of ``transform``.
    prefetch : int or "auto"
        Concurrent requests to the device; "auto": more while the program waits for batches.
    memory : int or "auto"
        Bytes that are read ahead at most; a larger batch is read by itself. "auto": 128 MiB; for
        objects of stores up to 512 MiB, if these are at most a sixteenth of the free memory.
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
        dataset: Source | Sequence[Source] | Mixture,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world: int | None = None,
        blocks: tuple[int, int] | None = None,
        interleave: tuple[int, int] | None = None,
        groups: int | None = None,
        decode: bool | Decoders = False,
        transform: Callable[[Any], Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        workers: int = 0,
        processes: bool = False,
        drop_last: bool = False,
        remainder: str = "pad",
        prefetch: int | str = "auto",
        memory: int | str = "auto",
        caching: str = "auto",
        errors: str = "raise",
    ) -> None:
        super().__init__(Place(check_whole("Loader: seed", seed, 0, 2**64 - 1), 0, 0))
        mixture = dataset if isinstance(dataset, Mixture) else None
        decoders = decoders_of(decode)
        self.datasets = _list_datasets(dataset, typed=decoders is not None)
        self.batch_size = check_whole("Loader: batch_size", batch_size, 1)
        self.rank, self.world = find_rank(rank, world)
        self._remainder = _remainder(remainder, drop_last)
        order = choose_order(mixture, shuffle, blocks, interleave)
        self._sequence = RecordSequence(self.datasets, mixture, order, groups)
        self.count = self._sequence.count
        steps = Steps()
        if decoders is not None:
            steps = steps.then(Decode(decoders))
        if transform is not None:
            steps = steps.then(transform)
        self._pipeline = Pipeline(
            list if decoders is None else Inputs(self.datasets).of,
            steps,
            collate,
            check_whole("Loader: workers", workers, 0),
            processes,
            _choice("errors", errors, "raise", "skip"),
        )
        remote = any(one.remote for one in self.datasets)
        most = REMOTE_THREADS if remote else MOST_THREADS
        caching = _choice("caching", caching, "auto", "page_cache", "direct")
        self._reading = Reading(
            _default_memory(remote)
            if memory == "auto"
            else check_whole("Loader: memory", memory, 0, 2**63),
            most if prefetch == "auto" else check_whole("Loader: prefetch", prefetch, 1),
            caching == "direct" or (caching == "auto" and self._sequence.is_large()),
        )
        self.stats = LoaderStats()

    def _share(self, position: int, stride: int = 1, offset: int = 0) -> Share:
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

    def normalize(self, place: Place) -> Place:
        """The place; after the last batch of an epoch the beginning of the next one."""
        return (
            place.next_epoch() if place.position and not self._steps_from(place.position) else place
        )

    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """
        for _, batch in self._run(self._start(self._share(self.position, stride, offset))):
            yield batch

    def _start(self, share: Share) -> RecordLoader | BatchStream:
        reading = self._divided_reading(share[2] * share[4])
        return self._sequence.start(self.seed, self.epoch, share, reading)

    def _divided_reading(self, shares: int) -> Reading:
        """How to read one of so many shares of an epoch."""
        return self._sequence.keep_objects(self._reading) if shares <= _SHARES else self._reading

    def _run(self, native: RecordLoader | BatchStream) -> Batches:
        for progress, batch in self._pipeline.run(native, self.stats):
            self.position = progress.position
            yield progress, batch

    def map(self, function: Callable[[Any], Any]) -> Loader:
        """A Loader that applies a function to each sample, or record, after the functions before.

        Parameters
        ----------
        function : callable(sample) -> Any
            Called by ``workers``; with ``processes=True`` it must be a function of a module.

        Returns
        -------
        Loader
            It begins at the place of this one, and has statistics of its own.
        """
        return self._derive(self._pipeline.steps.then(function))

    def filter(self, function: Callable[[Any], Any]) -> Loader:
        """A Loader that leaves out samples, or records.

        Batches become smaller, possibly empty; :meth:`batch` makes full ones. A state counts the
        records of the source.

        Parameters
        ----------
        function : callable(sample) -> bool
            Whether to keep a sample, as of :meth:`map`.

        Returns
        -------
        Loader
            As of :meth:`map`.
        """
        return self._derive(self._pipeline.steps.then(function, filters=True))

    def batch(
        self,
        size: int = 0,
        *,
        tokens: int = 0,
        length: Callable[[Any], int] | None = None,
        lengths: Lengths | None = None,
        pool: int = 0,
    ) -> Regrouped:
        """A loader of full batches of the samples that filters keep, or of a number of tokens.

        The batches of an epoch are a function of its order alone. Each rank reads and transforms
        its own samples if ``lengths`` are given, otherwise all, to know where its batches begin.

        Parameters
        ----------
        size : int
            Samples of a batch of one rank at most; 0: ``batch_size``, or with ``tokens`` any.
        tokens : int
            Samples of a batch times the length of its longest one, at most; 0: any. A longer
            sample is a batch of its own.
        length : callable(sample) -> int, optional
            The length of a sample; default: ``len``.
        lengths : array of int, str, or callable(int) -> int, optional
            The lengths of all records, by their numbers in the Loader's data sets: an array; the
            name of a field, for :meth:`Dataset.lengths`; or a function of the number of a record.
            -1 leaves a record out, which is necessary for those that a filter leaves out.
        pool : int
            Records of the source whose samples are sorted by length before they are divided into
            batches, which are then put in random order; 0: no sorting.

        Returns
        -------
        Regrouped
            It iterates, resumes, and serves a DataLoader as a Loader.
        """
        size = size or (0 if tokens else self.batch_size)
        if length and lengths is not None:
            raise ParioError("Loader.batch: expected length or lengths, not both")
        rule = Batching(size, tokens, length, pool, self.drops_last)
        return Regrouped(self, rule, self._sequence.find_lengths(lengths))

    def pack_tokens(
        self,
        window: int,
        *,
        field: str = "",
        end: int | None = None,
        pad: int | None = None,
        lengths: Lengths | None = None,
    ) -> Regrouped:
        """A loader of windows of tokens, cut from documents one after the other.

        A batch has ``batch_size`` windows: a dictionary of arrays of shape (windows, ``window``)
        and type int64: ``tokens``; ``segment_ids``, which number the documents of each window from
        1, 0 for padding; ``positions``, of the tokens in their documents. The last batch of an
        epoch may have fewer. Each rank reads and transforms the documents of its own windows if
        ``lengths`` are given, otherwise all.

        Parameters
        ----------
        window : int
            Tokens of a window.
        field : str
            The field of a sample that has its tokens; empty: the sample itself, an array or list
            of whole numbers.
        end : int, optional
            A token to put behind each document.
        pad : int, optional
            Fills the last window of an epoch; default: the rest of the tokens is dropped.
        lengths : array of int, str, or callable(int) -> int, optional
            The tokens of all documents, without ``end``, as of :meth:`batch`. A document that has
            another number of tokens, or was left out, is an error.

        Returns
        -------
        Regrouped
            It iterates, resumes, and serves a DataLoader as a Loader, also within a document.
        """
        rule = Packing(window, self.batch_size, field, end, pad, self.drops_last)
        return Regrouped(self, rule, self._sequence.find_lengths(lengths))

    @property
    def drops_last(self) -> bool:
        """True if batches that are not full are left out."""
        return self._remainder == "full batches"

    def for_all_ranks(self) -> Loader:
        """A Loader of the samples of all ranks, in order."""
        other = self._derive(self._pipeline.steps)
        other.rank, other.world, other._remainder = 0, 1, "exact"
        other._pipeline = replace(other._pipeline, collate=None)
        return other

    def samples_from(self, place: Place) -> Iterator[tuple[int, Any]]:
        """The samples of this rank from a place on, and their positions in the epoch. For one rank
        only."""
        self.go_to(place)
        for progress, samples in self._run(self._start(self._share(place.position))):
            begin = progress.position - progress.whole
            yield from zip((progress.places + begin).tolist(), samples, strict=True)

    def numbers_from(self, place: Place) -> Iterator[tuple[int, int]]:
        """The positions of the epoch from a place on, and their records."""
        self.go_to(place)
        numbers = self._sequence.numbers(self.seed, self.epoch)
        for first in range(place.position, self.count, _TOGETHER):
            last = min(first + _TOGETHER, self.count)
            yield from enumerate(numbers(first, last).tolist(), first)

    def read_batches(self, batches: Iterator[list[int]]) -> Iterator[tuple[list[int], Any]]:
        """The samples of batches of records, and their places in each batch, from which records
        are missing that cannot be read or are filtered out."""
        import numpy as np

        numbered = ((np.array(batch, "u8"), 0) for batch in batches)
        native = load_numbers(self.datasets, numbered, self._divided_reading(self.world))
        for progress, samples in self._run(native):
            yield progress.places.tolist(), samples

    def collate(self, samples: list[Any]) -> Any:
        """The batch of these samples, by the function given as ``collate``."""
        return self._pipeline.make_batch(samples)

    def _derive(self, steps: Steps) -> Loader:
        other = copy(self)
        other._pipeline, other.stats = replace(self._pipeline, steps=steps), LoaderStats()
        other._iterations, other._passes = 0, None
        return other

    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``."""
        most = self._steps_from(place.position)
        if check_whole("Loader: batches", batches, 0, most) == 0:
            return place
        _, _, end = schedule_step(self._share(place.position), self.count, batches - 1)
        return self.normalize(place._replace(position=end))

    def division(self) -> tuple[int, int, int, str]:
        """The division of an epoch: batch size, ranks, this rank, treatment of the remainder."""
        return self.batch_size, self.world, self.rank, self._remainder

    def whole_order(self) -> list[Any]:
        """Names and numbers that determine the order, beside seed and epoch."""
        return self._sequence.facts()


def _list_datasets(dataset: Source | Sequence[Source] | Mixture, typed: bool) -> list[Dataset]:
    if isinstance(dataset, Mixture):
        dataset = dataset.datasets
    given = [dataset] if isinstance(dataset, Dataset | str | os.PathLike) else dataset
    if not isinstance(given, Iterable):
        raise ParioError(
            f"Loader: dataset={given!r}: expected a Dataset, its path, a list of them or a Mixture"
        )
    datasets = [open_dataset(one) for one in given]
    if not datasets:
        raise ParioError(f"Loader: dataset={given!r}: expected at least one data set")
    return [one.with_typed_rows() for one in datasets] if typed else datasets


def _remainder(remainder: str, drop_last: bool) -> str:
    """The core's name for the treatment of the remainder."""
    remainder = _choice("remainder", remainder, "pad", "drop", "exact")
    return "full batches" if drop_last else remainder


def _choice(name: str, value: str, *choices: str) -> str:
    """An argument of a Loader that is one of several words. Raises ParioError."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ParioError(f"Loader: {name}={value!r}: expected {', '.join(others)} or {last}")
    return value


def _default_memory(remote: bool) -> int:
    """Bytes that are read ahead: more records of an object are neighbours in larger groups."""
    return max(_MEMORY, min(_REMOTE_MEMORY, free_memory() // 16)) if remote else _MEMORY
