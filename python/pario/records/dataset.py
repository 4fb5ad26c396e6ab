"""Records by their numbers."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

from pario import objects
from pario._native import (
    KeptObjects,
    RecordFile,
    guess_record_format,
    open_objects,
    open_records,
    read_records,
    record_formats,
    scan_records,
)
from pario.errors import ParioError
from pario.records.foreign import foreign_format, refuse_compressed
from pario.records.groups import MEMORY, GroupedFile, facts_of_file
from pario.records.samples import Decoders, Samples, decoders_of, split_members
from pario.records.state import check_whole
from pario.records.stream import REMOTE_THREADS

if TYPE_CHECKING:
    import numpy as np
    import torch.utils.data
    from numpy.typing import NDArray

#: Threads that read a batch.
THREADS = 4
#: Batches of fewer records are read by the calling thread's one helper.
_FEW = 16
_said = False


@dataclass
class DatasetStats:
    """Records that a Dataset skipped since it was opened, and the error of the first one."""

    skipped: int = 0
    first_skipped: str = ""


class _Options(NamedTuple):
    """The arguments of a Dataset beside its path."""

    format: str
    size: int
    lengths: Sequence[int] | NDArray[Any]
    column: str | tuple[str, ...]
    memory: int
    verify: bool
    errors: str
    drop_last: bool

    @property
    def damaged(self) -> str:
        """The reaction to damage, by the names of the native functions."""
        return self.errors if self.verify else "ignore"


class Dataset(Sequence[memoryview]):
    """The records of a file, or the files of a directory, as read-only views of bytes.

    The index lies beside the file (``pario records index``), in the file, or in the cache directory
    (``PARIO_CACHE``), where the first process that searches the file stores it. Any number of
    threads and forked processes may use one Dataset; it can be pickled. Lines come without their
    ends, TFRecords without their frame.

    Rows of Parquet are JSON objects, or the bytes or text of one ``column``. Rows of Parquet and
    records of ArrayRecord lie in groups that are decoded as a whole.

    Parameters
    ----------
    path : str or PathLike
        The file or directory, or the URL of an object: ``"s3://bucket/train.prec"``.
    format : str
        ``lines``, ``fixed``, ``tfrecord``, ``tar``, ``raw``, ``directory``, ``prec``, ``parquet``
        or ``arrayrecord``; empty: by the index, the suffix or the first bytes of the file.
    size : int
        Bytes of a record of format ``fixed``.
    lengths : sequence of int
        Bytes of each record of format ``raw``.
    column : str or sequence of str
        The column of Parquet whose values are the records, or the list of columns of the rows;
        empty: whole rows.
    memory : int
        Bytes of decoded groups to keep.
    verify : bool
        Compare the checksums of records and indexes, where the format has them, on each read.
    errors : {"raise", "skip"}
        ``"skip"``: slices, lists of numbers, iterations and Loaders leave out records that are
        damaged or unreadable; ``stats.skipped`` counts them.
    drop_last : bool
        Leave out the bytes after the last whole record of format ``fixed``; by default they are an
        error.

    Raises
    ------
    ParioError
        The format is unknown, or an argument does not fit the format.
    OSError
        The file cannot be read. EBADMSG: a record is damaged. ESTALE: the file changed after it was
        indexed. A damaged record that is read alone (``dataset[5]``) raises it even with
        ``errors="skip"``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pario.records import Dataset
    >>> _ = Path("names.txt").write_text("ada\\ngrace\\nbarbara\\n")
    >>> dataset = Dataset("names.txt")
    >>> len(dataset), dataset.format
    (3, 'lines')
    >>> bytes(dataset[1]), bytes(dataset[-1])
    (b'grace', b'barbara')
    >>> [bytes(record) for record in dataset[[2, 0]]]
    [b'barbara', b'ada']
    >>> dataset[3]
    Traceback (most recent call last):
        ...
    IndexError: record 3 of 3 of names.txt
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "",
        size: int = 0,
        lengths: Sequence[int] | NDArray[Any] = (),
        *,
        column: str | Sequence[str] = "",
        memory: int = MEMORY,
        verify: bool = True,
        errors: str = "raise",
        drop_last: bool = False,
    ) -> None:
        if errors not in ("raise", "skip"):
            raise ParioError(f"Dataset: errors={errors!r}: expected 'raise' or 'skip'")
        self.path, self.errors, self.stats = objects.use(path), errors, DatasetStats()
        column = column if isinstance(column, str) else tuple(column)
        self._options = _Options(format, size, lengths, column, memory, verify, errors, drop_last)
        #: The state of a local file when it was opened: device, number, bytes, time.
        self.facts = _look(self.path)
        #: The file beneath, and whether its index lies in a file.
        with KeptObjects():
            self.file, self.indexed = _open(self.path, self._options)
        self._count, self._typed = len(self.file), False

    @property
    def format(self) -> str:
        """The format of the file, by the names of ``pario records index --format``."""
        return self.file.format

    @property
    def column(self) -> str | tuple[str, ...]:
        """The column or columns of Parquet that are read; empty: all."""
        return self._options.column

    @cached_property
    def classes(self) -> list[str]:
        """The first directories of the names of packed files, sorted: the classes of an
        ImageFolder."""
        names = (self.name(number) for number in range(self._count))
        return sorted({name.partition("/")[0] for name in names if "/" in name})

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, which: int) -> memoryview: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | NDArray[Any]) -> list[memoryview]: ...
    def __getitem__(
        self, which: int | slice | Sequence[int] | NDArray[Any]
    ) -> memoryview | list[memoryview]:
        """Reads one record, or several together.

        Parameters
        ----------
        which : int, slice, sequence of int, or boolean mask of shape (records,)
            Negative numbers count from the end.

        Returns
        -------
        memoryview or list of memoryview
            In the order of ``which``.

        Raises
        ------
        IndexError
            A number is out of range, or the mask has another length.
        TypeError
            The numbers are not whole, or have more than one axis.
        OSError
            A record is damaged or cannot be read.
        """
        if hasattr(which, "__index__") and getattr(which, "ndim", 0) == 0:
            data, begin, end = self.file.read(self._number(which.__index__()))
            return memoryview(data)[begin:end]
        numbers = range(self._count)[which] if isinstance(which, slice) else which
        return self._batch(numbers)  # type: ignore[arg-type]

    def __getitems__(self, numbers: Sequence[int]) -> list[bytes]:
        """Reads a batch for PyTorch's DataLoader, which would make columns of integers of views."""
        return [bytes(record) for record in self[numbers]]

    def __iter__(self) -> Iterator[memoryview]:
        if self.errors == "raise":
            return (self[number] for number in range(self._count))
        return (record for number in range(self._count) for record in self[number : number + 1])

    def name(self, number: int) -> str:
        """The name of the file that was packed as this record.

        Parameters
        ----------
        number : int
            The number of a record; below 0: from the end.

        Returns
        -------
        str
            Empty if records have no names.

        Raises
        ------
        IndexError
            There is no such record.
        """
        return os.fsdecode(self.file.attributes(self._number(number))[0])

    def sample(self, number: int) -> dict[str, bytes]:
        """The members of a WebDataset record.

        Parameters
        ----------
        number : int
            The number of the record.

        Returns
        -------
        dict of str to bytes
            Contents by the extension of the member's name in lower case, from the first dot on.
            ``__key__`` is the part of the name before it.

        Raises
        ------
        ParioError
            The file is no tar file.
        """
        if self.format != "tar":
            raise ParioError(
                f"{self.path}: only records of tar files have members, these are {self.format}"
            )
        members = split_members(self[number])
        return {
            name: value.encode() if name == "__key__" else value for name, value in members.items()
        }

    def torch(self, decode: bool | Decoders = False) -> torch.utils.data.Dataset[Any]:
        """The records as tensors of bytes, for ``torch.utils.data.DataLoader``; needs PyTorch.

        Parameters
        ----------
        decode : bool or dict of str to callable
            Dictionaries of fields instead, as of :class:`Loader`.

        Returns
        -------
        torch.utils.data.Dataset
            Its items are by the number of a record.
        """
        from pario.records.adapters import Records

        decoders = decoders_of(decode)
        return Records(self if decoders is None else Samples(self.with_typed_rows(), decoders))

    def _number(self, number: int) -> int:
        if not -self._count <= number < self._count:
            raise IndexError(f"record {number} of {self._count} of {self.path}")
        return number % self._count

    def _numbers(self, which: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        if which.dtype == bool and which.shape != (self._count,):
            raise IndexError(
                f"a mask of shape {list(which.shape)} for {self._count} records of {self.path}"
            )
        numbers = np.flatnonzero(which) if which.dtype == bool else which
        if not numbers.size:
            return np.empty(0, np.uint64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise TypeError(
                f"records of {self.path}: numbers of type {numbers.dtype} and {numbers.ndim} axes:"
                " expected a list of whole ones"
            )
        wrong = numbers[(numbers < -self._count) | (numbers >= self._count)]
        if wrong.size:
            raise IndexError(f"record {wrong[0]} of {self._count} of {self.path}")
        return (numbers.astype(np.int64) % self._count).astype(np.uint64)

    def _batch(self, numbers: Sequence[int] | NDArray[Any]) -> list[memoryview]:
        import numpy as np

        if isinstance(numbers, range):
            numbers = np.arange(numbers.start, numbers.stop, numbers.step)
        wanted = self._numbers(np.asarray(numbers))
        out, places, failures = self.read_numbers(wanted, skip=self.errors == "skip")
        if failures:
            places = np.delete(places, [position for position, _ in failures], axis=0)
            self.stats.skipped += len(failures)
            self.stats.first_skipped = self.stats.first_skipped or failures[0][1]
        view = memoryview(out.data).toreadonly()
        return [view[begin:end] for begin, end in places.tolist()]

    def read_numbers(
        self, numbers: NDArray[Any], *, skip: bool
    ) -> tuple[NDArray[Any], NDArray[Any], list[tuple[int, str]]]:
        """Reads records together.

        Parameters
        ----------
        numbers : NDArray[uint64], shape (records,)
            The numbers of records that exist.
        skip : bool
            Report unreadable records instead of raising the error of the first one.

        Returns
        -------
        tuple
            The bytes of all records, and some between them, the begin and end of each record, and
            for each unreadable one its position in ``numbers`` and the error.
        """
        if isinstance(self.file, GroupedFile):
            return self.file.read_many(numbers, skip=skip)
        return read_records(self.file, numbers, self._threads_for(len(numbers)), skip)

    def with_typed_rows(self) -> Dataset:
        """The same records, but rows of Parquet as pickled dictionaries of values and arrays."""
        if self._typed or not isinstance(self.file, GroupedFile):
            return self
        other = copy(self)
        other.file, other._typed = self.file.with_typed_rows(), True
        return other

    def with_column(self, field: str) -> Dataset:
        """The same records for readers of one field: of Parquet that column alone."""
        if self.format != "parquet":
            return self
        other = Dataset(self.path, **self._options._replace(column=(field,))._asdict())
        if other.facts != self.facts:
            raise OSError(errno.ESTALE, "it was modified since it was opened", self.path)
        return other.with_typed_rows()

    def lengths(self, field: str) -> NDArray[np.int64]:
        """The length of a field of each sample: the value of a whole number, otherwise the number
        of its items.

        The first call reads all records, of Parquet the column; the lengths are then kept in the
        cache directory (``PARIO_CACHE``) with the state of the file. Other processes of the node
        wait for it meanwhile.

        Parameters
        ----------
        field : str
            A field of the sample (``docs/training.md``), decoded by its extension.

        Returns
        -------
        NDArray[int64], shape (records,)
            -1 for records that cannot be decoded, with ``errors="skip"``.

        Raises
        ------
        ParioError
            A record cannot be read, or has no such field.

        Examples
        --------
        >>> from pathlib import Path
        >>> from pario.records import Dataset
        >>> _ = Path("tokens.jsonl").write_text('{"tokens": [5, 6]}\\n{"tokens": []}\\n')
        >>> Dataset("tokens.jsonl").lengths("tokens").tolist()
        [2, 0]
        """
        from pario.records.sample_lengths import find_lengths

        return find_lengths(self, field)

    def _threads_for(self, records: int) -> int:
        if self.remote:
            return min(REMOTE_THREADS, max(1, records))
        return THREADS if records >= _FEW else 1

    @property
    def remote(self) -> bool:
        """True if the file is an object of a store."""
        return objects.is_url(self.path)

    def __getstate__(self) -> tuple[str, _Options, bool, tuple[int, ...]]:
        return self.path, self._options, self._typed, self.facts

    def __setstate__(self, state: tuple[str, _Options, bool, tuple[int, ...]]) -> None:
        path, options, typed, facts = state
        self.__init__(path, **options._asdict())  # type: ignore[misc]
        if self.format != "directory" and facts[2:] != self.facts[2:]:
            raise OSError(errno.ESTALE, "it was modified since it was opened", path)
        if typed:
            self.__dict__.update(self.with_typed_rows().__dict__)

    def __repr__(self) -> str:
        return f"Dataset({self.path!r}: {self._count} records, {self.format})"


def _look(path: str) -> tuple[int, ...]:
    """The facts of a local file; empty if there is none, and for an object, whose store refuses
    bytes of another version."""
    try:
        return facts_of_file(path)
    except OSError:
        return ()


#: A Dataset, or the path or URL of one.
Source = Union[Dataset, str, "os.PathLike[str]"]


def open_dataset(source: Source) -> Dataset:
    """The Dataset, opened if it is given by its path or URL."""
    return source if isinstance(source, Dataset) else Dataset(source)


def _open(path: str, options: _Options) -> tuple[RecordFile | GroupedFile, bool]:
    format = options.format
    known = [one for one, *_ in record_formats()]
    if format and format not in known:
        raise ParioError(f"{path}: format {format!r}: expected one of {', '.join(known)}")
    name = os.fsencode(path)
    if objects.is_url(path) and not format and not path.endswith(".prec"):
        open_objects([name, name + b".pidx"])
    if foreign := foreign_format(path, format):
        grouped = GroupedFile(path, foreign, options.column, options.memory, options.verify)
        return grouped, grouped.index_bytes > 0
    if options.column:
        raise ParioError(f"{path}: column {options.column}: only records of Parquet have columns")
    if not format:
        try:
            return open_records(name, options.verify), True
        except FileNotFoundError:
            if not objects.is_url(path):
                os.stat(path)  # noqa: PTH116  there is no index; or is there no file?
            elif path.endswith(".prec"):  # its index lies within: there is no object
                raise
        format = guess_record_format(name)
        if not format:
            objects.size_of(path)  # a missing object has an error of its own
            refuse_compressed(path)
            raise ParioError(
                f"{path}: no index, and its format is not known: expected Dataset(path,"
                " format=...), or an index by pario records index --format FORMAT"
            )
    if format == "lines":
        refuse_compressed(path)
    return _scan(name, format, options)


def _scan(name: bytes, format: str, options: _Options) -> tuple[RecordFile, bool]:
    import numpy as np

    lengths = np.asarray(options.lengths, dtype=np.uint64)
    size = check_whole("Dataset: size", options.size, 0, 2**63 - 1)
    form = (format, size, options.drop_last, lengths, options.damaged)
    file, kept, trouble = scan_records(name, form, THREADS)
    if trouble:
        _warn_once(trouble)
    return file, kept


def _warn_once(trouble: str) -> None:
    """Warns, once per process, that indexes are not stored, with the reason."""
    global _said
    if not _said:
        _said = True
        text = f"indexes of records are not kept: {trouble}; PARIO_CACHE names another directory"
        warnings.warn(text, RuntimeWarning, stacklevel=5)
