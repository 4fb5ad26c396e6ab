"""Batches of records for training, in an exact and resumable random order."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Union

from pario._native import RecordFile, RecordLoader, schedule_step, schedule_steps, start_loader
from pario.errors import ParioError
from pario.records.dataset import Dataset, Source, open_dataset
from pario.records.epochs import Epochs, find_rank
from pario.records.group_loader import GroupedFiles, GroupLoader
from pario.records.groups import GroupedFile
from pario.records.memory import free_memory
from pario.records.mixture import Mixture
from pario.records.number_loader import NumberedBatch, load_numbers, share_batches
from pario.records.orders import Numbers, make_order
from pario.records.passes import Place
from pario.records.pipeline import Batches, Pipeline
from pario.records.regroup import Regrouped
from pario.records.rules import Batching, Packing
from pario.records.samples import Decode, Decoders, Inputs, decoders_of
from pario.records.state import check_whole
from pario.records.stats import LoaderStats
from pario.records.steps import Steps
from pario.records.stream import REMOTE_THREADS, BatchStream, Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Lengths of all records: an array, the name of a field, or a function of the number of a record.
Lengths = Union["Sequence[int]", "NDArray[Any]", str, Callable[[int], int]]
#: Bytes that are read ahead, and the most of them for objects of stores.
_MEMORY, _REMOTE_MEMORY = 128 << 20, 512 << 20
#: Positions of an order whose records are looked up together.
_TOGETHER = 1 << 16
#: The most threads of ``prefetch="auto"``; each has one request to the device at a time.
MOST_THREADS = 16
_PERMUTATION = (
    "Loader: in a full permutation each record may need a group of about {} records decoded;"
    " groups=N mixes the records of N groups, and pario records convert makes a file whose records"
    " can be read one by one"
)


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
        jax.distributed if one is initialized, else one rank.
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
        self._mixture = dataset if isinstance(dataset, Mixture) else None
        decoders = decoders_of(decode)
        self.datasets = _list_datasets(dataset, typed=decoders is not None)
        self.count = len(self._mixture or range(sum(map(len, self.datasets))))
        self.batch_size = check_whole("Loader: batch_size", batch_size, 1)
        self.rank, self.world = find_rank(rank, world)
        self._remainder = _remainder(remainder, drop_last)
        self._order = _order_name(shuffle, blocks, interleave, self._mixture)
        sides = _pair("Loader: interleave", interleave)
        self._blocks = _pair("Loader: blocks", blocks) or (sides and sides[::-1]) or (1, 1)
        self._grouped = None if self._mixture else self._grouped_files()
        self._mix_groups(groups)
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
        self._bucketing = self._bucketing_of() if self._order in ("as they lie", "shuffled") else ()
        remote = any(one.remote for one in self.datasets)
        most = REMOTE_THREADS if remote else MOST_THREADS
        self._threads = most if prefetch == "auto" else check_whole("Loader: prefetch", prefetch, 1)
        self._memory = (
            _default_memory(remote)
            if memory == "auto"
            else check_whole("Loader: memory", memory, 0, 2**63)
        )
        self.stats = LoaderStats()
        caching = _choice("caching", caching, "auto", "page_cache", "direct")
        self._direct = caching == "direct" or (
            caching == "auto" and not self._grouped and self._bytes() > free_memory() / 2
        )

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
            self._order, self._blocks = "groups", files.facts(together)
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

    def _run(self, native: RecordLoader | BatchStream) -> Batches:
        for progress, batch in self._pipeline.run(native, self.stats):
            self.position = progress.position
            yield progress, batch

    def _start(self, share: Share) -> RecordLoader | BatchStream:
        if self._mixture:
            return self._start_numbers(share_batches(self._numbers(), share, self.count))
        order = (self._order, self.seed, self.epoch, *self._blocks)
        if self._grouped:
            return GroupLoader(self._grouped, order, share, self._memory, self._threads)
        return start_loader(self._files(), order, share, self._memory, self._threads, self._direct)

    def _start_numbers(self, batches: Iterator[NumberedBatch]) -> BatchStream:
        return load_numbers(self.datasets, batches, self._memory, self._threads, self._direct)

    def _numbers(self) -> Numbers:
        """The function that returns the records of the epoch's positions [first, last)."""
        if self._mixture:
            shuffle, begin = self._order == "shuffled mixture", self.epoch * self.count
            numbers = self._mixture.order(self.datasets, self.seed, shuffle)
            return lambda first, last: numbers(begin + first, begin + last)
        order = (self._order, self.seed, self.epoch, *self._blocks)
        if self._grouped:
            return self._grouped.order(order).numbers
        return make_order(order, [len(one) for one in self.datasets]).numbers

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
        return Regrouped(self, rule, self._find_lengths(lengths))

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
        return Regrouped(self, rule, self._find_lengths(lengths))

    def _find_lengths(self, lengths: Lengths | None) -> NDArray[Any] | None:
        """The lengths of all records as an array; None: they are not known."""
        import numpy as np

        if lengths is None:
            return None
        if self._bucketing:
            raise ParioError(
                f"{self.datasets[0].path}: was shuffled into buckets, whose order lengths= does not"
                " know: expected a file of another shuffle, or no lengths"
            )
        count = sum(map(len, self.datasets))
        if isinstance(lengths, str):
            lengths = np.concatenate([one.lengths(lengths) for one in self.datasets])
        elif callable(lengths):
            lengths = [lengths(number) for number in range(count)]
        found = np.asarray(lengths)
        if found.shape != (count,) or (count and found.dtype.kind not in "iu"):
            raise ParioError(
                f"Loader: lengths of shape {list(found.shape)} and type {found.dtype}: expected a"
                f" whole number for each of the {count} records"
            )
        return found.astype(np.int64)

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
        numbers = self._numbers()
        for first in range(place.position, self.count, _TOGETHER):
            last = min(first + _TOGETHER, self.count)
            yield from enumerate(numbers(first, last).tolist(), first)

    def read_batches(self, batches: Iterator[list[int]]) -> Iterator[tuple[list[int], Any]]:
        """The samples of batches of records, and their places in each batch, from which records
        are missing that cannot be read or are filtered out."""
        import numpy as np

        native = self._start_numbers((np.array(batch, "u8"), 0) for batch in batches)
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
        if self._mixture:
            return [self._order, *self._mixture.facts()]
        return [self._order, *self._blocks, *self._bucketing]


def _list_datasets(dataset: Source | Sequence[Source] | Mixture, typed: bool) -> list[Dataset]:
    if isinstance(dataset, Mixture):
        dataset = dataset.datasets
    given = [dataset] if isinstance(dataset, Dataset | str | os.PathLike) else dataset
    datasets = [open_dataset(one) for one in given]
    return [one.with_typed_rows() for one in datasets] if typed else datasets


def _order_name(shuffle: bool, blocks: Any, interleave: Any, mixture: Mixture | None) -> str:
    if interleave and (shuffle or blocks):
        raise ParioError(
            "Loader: interleave is an order of its own: expected neither shuffle nor blocks"
        )
    if mixture and (blocks or interleave):
        raise ParioError("Loader: a Mixture: expected neither blocks nor interleave")
    if mixture:
        return "shuffled mixture" if shuffle else "mixture"
    if blocks:
        return "blocks"
    return "shuffled" if shuffle else "interleaved" if interleave else "as they lie"


def _pair(name: str, values: Any) -> tuple[int, int] | None:
    """Two positive whole numbers, or None."""
    if values is None:
        return None
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ParioError(f"{name}={values!r}: expected two numbers")
    return check_whole(name, values[0], 1), check_whole(name, values[1], 1)


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
