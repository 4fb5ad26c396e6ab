"""Formats whose records are stored in groups, which their own packages decode: row groups of
Parquet, chunks of ArrayRecord."""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pario._native import guess_record_format
from pario.errors import ParioError
from pario.objects import ObjectReader, is_url, open_reader, read_head
from pario.records.compressed import FORMATS as COMPRESSED
from pario.records.compressed import CompressedFile, write_restarts
from pario.records.decoded import Decoded, Groups, join_records
from pario.wording import command_line

#: Rows, and about the bytes of rows, that are decoded at a time.
_ROWS, PIECE = 4096, 16 << 20
#: Smaller whole numbers are exact as floating-point numbers of 64 bits.
_EXACT = 1 << 53
#: Compressed bytes of a group above which its columns are read by this many bytes at a time,
#: otherwise as a whole.
_LARGE, _BUFFER = 64 << 20, 64 << 10
#: As _BUFFER, of objects: the bytes of a request.
_REQUEST = 8 << 20
#: Upper limit (exclusive) of the records and bytes of a file, as in an index.
_MOST = 1 << 56


class Decoder(Protocol):
    """An open file. Any thread may use it, but not a forked child."""

    def groups(self) -> Groups:
        """The places of all groups; reads no record."""

    def estimate_bytes(self, group: int) -> int:
        """About the decoded bytes of a group that may be larger than memory; 0: it cannot be."""

    def decode(self, group: int, first: int, last: int) -> Iterator[Decoded]:
        """Decodes a group, which has the records ``first`` to ``last - 1``, piece by piece."""


@dataclass(frozen=True)
class Foreign:
    """A format: its name in ``pario records``, its common name, the package that reads it, and the
    function that opens a file (path, column or columns or empty, whether to compare checksums,
    whether rows are pickled dictionaries)."""

    name: str
    title: str
    package: str
    _open: Callable[[str, str | tuple[str, ...], bool, bool], Decoder]
    #: Writes the index: records, groups, bytes, path. None: an index of pario's own.
    write_index: Callable[[str], tuple[int, int, int, bytes]] | None = None
    #: True if it is read from object stores, too.
    remote: bool = False

    def open(
        self,
        path: str,
        column: str | tuple[str, ...] = "",
        verify: bool = True,
        typed: bool = False,
    ) -> Decoder:
        """Opens a file. Raises ParioError if the package is missing or cannot read the file."""
        self.require_local(path)
        with self.errors(path):
            return self._open(path, column, verify, typed)

    def require_local(self, path: str) -> None:
        """Raises ParioError if the path is the URL of an object that the package cannot read."""
        if is_url(path) and not self.remote:
            raise ParioError(
                f"{path}: {self.title} is read from local files only; pario records convert"
                " --to prec makes a file that can be read from a store"
            )

    @contextmanager
    def errors(self, path: str) -> Iterator[None]:
        """Converts exceptions of the package to a ParioError that names the file."""
        try:
            yield
        except ImportError as error:
            raise ParioError(
                f"{path}: reading {self.title} needs the package {self.package}: pip install"
                f" {self.package}"
            ) from error
        except (OSError, ValueError, RuntimeError, LookupError) as error:
            raise ParioError(f"{path}: not read as {self.title}: {error}") from error


def foreign_format(path: str, format: str = "") -> Foreign | None:
    """The format of this name, or that of the file's first bytes or suffix; None if its records
    have bytes of their own."""
    if package := _PACKAGES.get(Path(path).suffix):
        return _compressed_format(path, format, package)
    name = format or guess_record_format(os.fsencode(path))
    return next((one for one in FORMATS if one.name == name), None)


#: Packages by the suffixes of compressed files.
_PACKAGES = {".gz": "indexed_gzip", ".tgz": "indexed_gzip", ".zst": "zstandard"}

_OTHER = ".gz or .zst, or the decompressed file"
#: The first bytes of compressed files, and the file that is expected instead.
_COMPRESSIONS = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip", "a name with .gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "a name with .zst"),
    (re.compile(rb"\xfd7zXZ\0"), "xz", _OTHER),
    (re.compile(rb"BZh\d1AY&SY"), "bzip2", _OTHER),
)


def refuse_compressed(path: str) -> None:
    """Raises ParioError for a file or an object that is compressed, but not named so: as lines it
    would have random bytes."""
    if not is_url(path) and not Path(path).is_file():
        return
    head = read_head(path, 16)
    for pattern, title, expected in _COMPRESSIONS:
        if pattern.match(head):
            raise ParioError(f"{path}: is compressed by {title}: expected {expected}")


def _compressed_format(path: str, format: str, package: str) -> Foreign:
    inner = Path(path).with_suffix(".tar" if path.endswith(".tgz") else "")
    name = format or guess_record_format(os.fsencode(inner.name))
    if name not in COMPRESSED:
        raise ParioError(
            f"{path}: its format is {name or 'not known'}: expected lines, tfrecord or tar,"
            " Dataset(path, format=...)"
        )

    title = "gzip" if package == "indexed_gzip" else "zstd"
    return Foreign(
        name,
        title,
        package,
        partial(_open_compressed, name, package),
        partial(write_restarts, format=name, package=package),
        remote=True,
    )


def _open_compressed(
    format: str,
    package: str,
    path: str,
    column: str | tuple[str, ...],
    verify: bool,
    typed: bool,
) -> Decoder:
    if column:
        raise ParioError(f"{path}: column {column}: only records of Parquet have columns")
    return CompressedFile(path, format, package, verify)


def refuse(path: str, format: str = "") -> None:
    """Raises ParioError for formats of groups, because their records cannot be copied as bytes."""
    if found := foreign_format(path, format):
        # The decompressed file, or one of packed records.
        kind = found.name if found.name in COMPRESSED else "prec"
        place, slash, name = path.rpartition("/")  # a Path would drop a slash of a URL
        made = Path(name).with_suffix("" if kind != "prec" else ".prec")
        made = made.with_suffix(".tar") if path.endswith(".tgz") else made
        target = f"{place}{slash}{made}"
        command = ["pario", "records", "convert", path, "--to", kind, "-o", target]
        raise ParioError(
            f"{path}: records of {found.title} are stored in groups, not as bytes of their own;"
            f" convert them first: {command_line(command)}"
        )


class _Parquet:
    """Rows as JSON objects or pickled dictionaries, or the bytes of one column."""

    def __init__(self, path: str, column: str | tuple[str, ...], verify: bool, typed: bool) -> None:
        import pyarrow.parquet

        self._path, self._verify, self._typed = path, verify, typed
        self._column = column if isinstance(column, str) else ""
        wanted = [column] if isinstance(column, str) else list(column)
        #: The columns to read; None: all.
        self._columns = None if column in ("", ()) else wanted
        #: An object is read as the version that is opened here.
        self._object = open_reader(path) if is_url(path) else None
        with pyarrow.parquet.ParquetFile(self._source()) as file:
            self._metadata, names = file.metadata, file.schema_arrow.names
        for one in self._columns or ():
            if one not in names:
                raise ParioError(f"{path}: column {one}: expected one of {', '.join(names)}")
        counts = Counter(names)
        for one in names if self._columns is None else self._columns:
            if counts[one] > 1:
                raise ParioError(f"{path}: {counts[one]} columns are named {one}: expected 1")

    def _source(self) -> str | ObjectReader:
        return self._object.again() if self._object else self._path

    def groups(self) -> Groups:
        begins, firsts, end = [], [0], len(b"PAR1")
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            places = [_place(group.column(column)) for column in range(group.num_columns)]
            begins.append(max(end, min((begin for begin, _ in places), default=end)))
            end = max([begins[-1], *(behind for _, behind in places)])
            firsts.append(firsts[-1] + group.num_rows)
        return _groups([*begins, end], firsts)

    def estimate_bytes(self, group: int) -> int:
        return sum(column.total_uncompressed_size for column in self._columns_of(group))

    def _columns_of(self, group: int) -> list[Any]:
        """The descriptions of the columns of a group that are read."""
        facts = self._metadata.row_group(group)
        columns = [facts.column(number) for number in range(facts.num_columns)]
        if self._columns is None:
            return columns
        wanted = tuple(f"{name}." for name in self._columns)
        return [one for one in columns if f"{one.path_in_schema}.".startswith(wanted)]

    def decode(self, group: int, first: int, last: int) -> Iterator[Decoded]:
        import pyarrow.parquet

        stored = sum(column.total_compressed_size for column in self._columns_of(group))
        row = max(1, self.estimate_bytes(group) // max(1, last - first))
        how: dict[str, Any] = {
            "metadata": self._metadata,
            # It joins the ranges of columns, and keeps all bytes of the group.
            "pre_buffer": self._object is not None and stored <= _LARGE,
            "buffer_size": (_REQUEST if self._object else _BUFFER) if stored > _LARGE else 0,
            "page_checksum_verification": self._verify,
        }
        # A reader of its own, because several threads cannot share one.
        with pyarrow.parquet.ParquetFile(self._source(), **how) as file:
            for batch in file.iter_batches(
                max(1, min(_ROWS, PIECE // row)),
                row_groups=[group],
                columns=self._columns,
                use_threads=False,
            ):
                if self._column:
                    yield self._column_of(batch.column(0))
                else:
                    yield join_records(
                        _typed_rows(batch) if self._typed else map(_json, batch.to_pylist())
                    )

    def _column_of(self, values: Any) -> Decoded:
        return _plain_bytes(values) or join_records(self._values(values.to_pylist()))

    def _values(self, values: list[Any]) -> Iterator[bytes]:
        for value in values:
            if not isinstance(value, str | bytes):
                raise ParioError(
                    f"{self._path}: column {self._column} holds {type(value).__name__}: expected"
                    " bytes or text in each row"
                )
            yield value.encode() if isinstance(value, str) else value


def _place(column: Any) -> tuple[int, int]:
    """The begin and the end of the pages of a column of a row group."""
    begins = [begin for begin in (column.dictionary_page_offset, column.data_page_offset) if begin]
    begin = min(begins, default=0)
    return begin, begin + column.total_compressed_size


def _plain_bytes(column: Any) -> Decoded | None:
    """The memory of a column of bytes or text; None for other columns."""
    import numpy as np
    import pyarrow

    plain = (pyarrow.binary(), pyarrow.large_binary(), pyarrow.string(), pyarrow.large_string())
    if column.type not in plain or column.null_count:
        return None
    values = column.cast(pyarrow.large_binary())
    _, offsets, data = values.buffers()
    memory = (
        np.frombuffer(data, dtype=np.uint8)
        if data is not None and data.size
        else np.empty(0, dtype=np.uint8)
    )
    return Decoded(
        memory,
        np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1],
    )


def _typed_rows(batch: Any) -> Iterator[bytes]:
    """The rows as pickled dictionaries, whose lists of numbers are arrays."""
    names = batch.schema.names
    for values in zip(*map(_typed_values, batch.columns), strict=True):
        yield pickle.dumps(dict(zip(names, values, strict=True)))


def _typed_values(column: Any) -> list[Any]:
    import pyarrow

    # A type that another package has registered, which may be imported or not.
    column = getattr(column, "storage", column)
    inner = getattr(column.type, "value_type", None)
    numeric = inner is not None and pyarrow.types.is_primitive(inner)
    if not numeric or pyarrow.types.is_dictionary(column.type):
        return list(column.to_pylist())
    return [None if one.values is None else _array_or_list(one.values) for one in column]


def _array_or_list(values: Any) -> Any:
    """An array of numbers, in which nulls are NaN; or a list, if that would round whole numbers."""
    import numpy as np
    import pyarrow

    found = values.to_numpy(zero_copy_only=False)
    rounds = values.null_count and pyarrow.types.is_integer(values.type)
    if rounds and np.abs(np.nan_to_num(found)).max() >= _EXACT:
        return values.to_pylist()
    return found


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_text).encode()


def _text(value: Any) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)


class _ArrayRecord:
    """Records as they were written. The package always compares checksums."""

    def __init__(self, path: str, column: str | tuple[str, ...], verify: bool, typed: bool) -> None:
        if column:
            raise ParioError(f"{path}: records of ArrayRecord have no columns")
        from array_record.python.array_record_module import ArrayRecordReader

        self._path = path
        # It decodes in the calling thread: several may call it, and the package's own threads would
        # be missing after a fork.
        self._reader = ArrayRecordReader(path, "readahead_buffer_size:0,max_parallelism:0")
        if not self._reader.ok():  # else it has no records, as a file that is cut off
            self._reader.close()  # raises RuntimeError with the reason
            raise ValueError("it is damaged")

    def groups(self) -> Groups:
        begins: list[int] = []
        records, firsts = self._reader.num_records(), [0]
        for begin, count in _chunks(self._path):
            if firsts[-1] == records:  # the tables of the format follow
                return _groups([*begins, begin], firsts)
            if count:
                begins.append(begin)
                firsts.append(firsts[-1] + count)
        raise ValueError(f"its chunks have {firsts[-1]} of {records} records")

    def estimate_bytes(self, group: int) -> int:
        return 0

    def decode(self, group: int, first: int, last: int) -> Iterator[Decoded]:
        yield join_records(self._reader.read(first, last) if last > first else [])


# Files of Riegeli, which ArrayRecord uses, consist of blocks with a header each. Headers of blocks
# may be in the middle of chunks and of their headers.
_BLOCK, _BLOCK_HEADER = 1 << 16, 24
#: Header of a chunk: hash, bytes of its data, hash, its kind (one byte) and number of records
#: (seven), decoded bytes.
_CHUNK = struct.Struct("<QQQQQ")


def _chunks(path: str) -> Iterator[tuple[int, int]]:
    """Yields the begin and the number of records of each chunk of a file; last the end and 0."""
    with open(path, "rb", buffering=1 << 16) as file:  # noqa: PTH123
        at, size = 0, os.fstat(file.fileno()).st_size
        while at < size:
            file.seek(at)
            head = file.read(_CHUNK.size + _BLOCK_HEADER)
            within = -at % _BLOCK
            if within < _CHUNK.size:
                head = head[:within] + head[within + _BLOCK_HEADER :]
            if len(head) < _CHUNK.size:
                raise ValueError("its last chunk is incomplete")
            _, length, _, kind, _ = _CHUNK.unpack_from(head)
            yield at, kind >> 8
            at = max(_behind(at, _CHUNK.size + length), _skip_block_header(at + (kind >> 8)))
    yield at, 0


def _behind(begin: int, length: int) -> int:
    """The end of ``length`` bytes from ``begin`` on, with the block headers among them added."""
    usable = _BLOCK - _BLOCK_HEADER
    return begin + length + (length + (begin + usable - 1) % _BLOCK) // usable * _BLOCK_HEADER


def _skip_block_header(at: int) -> int:
    """The next place where a chunk may begin: not within the header of a block, and not immediately
    behind it, because that is the begin of the block."""
    behind = _BLOCK_HEADER + 1
    return at + behind - at % _BLOCK if 0 < at % _BLOCK < behind else at


def _groups(begins: list[int], firsts: list[int]) -> Groups:
    import numpy as np

    if max(begins[-1], firsts[-1]) >= _MOST or begins != sorted(begins) or firsts != sorted(firsts):
        raise ValueError("groups of its records overlap, or their offsets are impossible")
    return Groups(np.array(begins, dtype=np.int64), np.array(firsts, dtype=np.int64))


FORMATS = (
    Foreign("parquet", "Parquet", "pyarrow", _Parquet, remote=True),
    Foreign("arrayrecord", "ArrayRecord", "array_record", _ArrayRecord),
)
