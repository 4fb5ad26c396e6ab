"""Compressed files of lines, TFRecord and WebDataset, read from restart points: ``.gz`` by
indexed_gzip, ``.zst`` by zstandard.

A group is the records between two restart points. The groups and restart points are found by one
pass over the file, and kept beside it (``pario records index``) or in the cache directory.
"""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pario.errors import ParioError
from pario.objects import is_url
from pario.records.decoded import Decoded, Groups, join_records
from pario.records.inputs import Input
from pario.records.kept_arrays import cache_path, load_arrays, save_arrays
from pario.records.restart_points import STREAMS, Stream
from pario.records.samples import Member, split_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIX = ".restarts"
_CHUNK = 1 << 20
_FRAME = struct.Struct("<Q")
#: The arrays of a file of restart points.
_KEPT = ("restarts", "begins", "firsts", "sums")


class Records(NamedTuple):
    """A format: the begins of its records in a file, in arrays, last its end alone; and the data of
    the records in the bytes of a group."""

    starts: Callable[[io.BufferedReader], Iterator[Any]]
    split: Callable[[bytes], Decoded]


def _find_lines(file: io.BufferedReader) -> Iterator[Any]:
    import numpy as np

    at, pending = 0, [0]
    while chunk := file.read(_CHUNK):
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + (at + 1)
        at += len(chunk)
        starts = np.concatenate([pending, ends]).astype(np.int64)
        pending = starts[-1:].tolist() if len(starts) and starts[-1] == at else []
        yield starts[: len(starts) - len(pending)]
    yield at


def _split_lines(data: bytes) -> Decoded:
    """The lines without LF or CR LF. Much less memory than a list of lines takes."""
    import numpy as np

    memory = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(memory == ord("\n"))
    returns = ends[ends > 0] - 1
    returns = returns[memory[returns] == ord("\r")]
    kept = np.ones(len(memory), bool)
    kept[ends] = kept[returns] = False
    # The bytes that were removed up to the end of each line.
    removed = np.arange(1, len(ends) + 1) + returns.searchsorted(ends)
    offsets = np.concatenate([[0], ends + 1 - removed])
    memory = memory[kept]
    if data and not data.endswith(b"\n"):
        offsets = np.append(offsets, len(memory))
    return Decoded(memory, offsets)


def _find_tfrecords(file: io.BufferedReader) -> Iterator[Any]:
    at = 0
    while head := file.read(12):
        if len(head) < 12:
            raise ValueError("its last record is incomplete")
        left = _FRAME.unpack_from(head)[0] + 4
        yield [at]
        at += 12 + left
        while left:
            part = file.read(min(left, _CHUNK))
            if not part:
                raise ValueError("its last record is incomplete")
            left -= len(part)
    yield at


def _split_tfrecords(data: bytes) -> Decoded:
    records, at = [], 0
    while at < len(data):
        (length,) = _FRAME.unpack_from(data, at)
        records.append(data[at + 12 : at + 12 + length])
        at += length + 16
    if at != len(data):
        raise ValueError("its last record is incomplete")
    return join_records(records)


def _find_tar(file: Any) -> Iterator[Any]:
    """The first members of the keys; other members belong to the record before them."""
    key = None
    with tarfile.open(fileobj=file, mode="r|", tarinfo=Member) as archive:
        for member in archive:
            name, extension = split_name(member.name)
            if extension is not None and member.isfile() and name != key:
                key = name
                yield [member.offset]
        yield archive.offset


def _split_tar(data: bytes) -> Decoded:
    *starts, end = _find_tar(io.BytesIO(data))
    begins = [start for (start,) in starts]
    return join_records(data[begin:behind] for begin, behind in pairwise([*begins, end]))


FORMATS = {
    "lines": Records(_find_lines, _split_lines),
    "tfrecord": Records(_find_tfrecords, _split_tfrecords),
    "tar": Records(_find_tar, _split_tar),
}


class CompressedFile:
    """An open file. Any thread may use it, but not a forked child."""

    def __init__(self, path: str, format: str, package: str, verify: bool = True) -> None:
        self._source, self._records, self._verify = Input(path), FORMATS[format], verify
        if self._source.facts[0] == "0":
            raise ValueError("the file is empty")
        # Before the search: a file that changes during it gets no restart points of its own.
        self._facts = ["2", format, *self._source.facts]
        saved = load_restarts(self._source, self._facts)
        self._stream = STREAMS[package](self._source, saved["restarts"] if saved else None)
        if saved:
            self._groups, self._sums = Groups(saved["begins"], saved["firsts"]), saved["sums"]
            return
        with name_errors():
            self._groups = find_groups(self._records, self._stream)
            self._sums = self._find_checksums()
        self.save(str(cache_path("restarts", path, SUFFIX)))

    def groups(self) -> Groups:
        """The groups by their places in the decompressed bytes."""
        return self._groups

    def estimate_bytes(self, group: int) -> int:
        """Groups have bounded bytes."""
        return 0

    def decode(self, group: int, first: int, last: int) -> Iterator[Decoded]:
        """The records of a group."""
        begin, end = self.groups().begins[group : group + 2].tolist()
        with name_errors():
            data = self._stream.read(begin, end)
            if self._verify and zlib.crc32(data) != self._sums[group]:
                raise ValueError(f"group {group}: wrong checksum of its data")
            decoded = self._records.split(data) if data else join_records([])
        yield decoded

    def _find_checksums(self) -> NDArray[Any]:
        """The CRC-32 of the bytes of each group, read from its restart point."""
        import numpy as np

        begins = self._groups.begins.tolist()
        parts = (self._stream.read(*place) for place in pairwise(begins))
        return np.array([zlib.crc32(part) for part in parts], np.uint32)

    def save(self, path: str) -> int:
        """Writes groups and restart points to a file or an object; its size, 0 if it cannot be
        written."""
        return save_arrays(
            path,
            self._facts,
            restarts=self._stream.restarts,
            begins=self._groups.begins,
            firsts=self._groups.firsts,
            sums=self._sums,
        )


@contextmanager
def name_errors() -> Iterator[None]:
    """Converts exceptions of tarfile, zstandard and indexed_gzip to ValueError."""
    try:
        yield
    except (OSError, ValueError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def find_groups(records: Records, stream: Stream) -> Groups:
    """Reads all bytes of a file in order, and finds its records."""
    import numpy as np

    begins, firsts, count = [0], [0], 0
    found: Any = 0
    with io.BufferedReader(cast(Any, stream.open()), _CHUNK) as file:
        for found in records.starts(file):
            if isinstance(found, int):
                break
            at = 0
            while at < len(found):
                at += int(np.searchsorted(found[at:], stream.border(begins[-1])))
                if at < len(found):
                    begins.append(int(found[at]))
                    firsts.append(count + at)
            count += len(found)
        while file.read(_CHUNK):  # the rest behind the end of a tar file
            pass
        stream.finish()
        return Groups(np.array([*begins, found]), np.array([*firsts, count]))


def load_restarts(source: Input, facts: list[str]) -> dict[str, NDArray[Any]] | None:
    """Groups and restart points that were stored for this file; None: there are none."""
    places = (source.path + SUFFIX, str(cache_path("restarts", source.path, SUFFIX)))
    return next((found for place in places if (found := load_arrays(place, facts, *_KEPT))), None)


def write_restarts(path: str, format: str, package: str) -> tuple[int, int, int, bytes]:
    """Writes groups and restart points beside a file or an object, or of an object into the cache,
    if that is not allowed; records, groups, bytes, and the path."""
    file, place = CompressedFile(path, format, package), path + SUFFIX
    size = file.save(place)
    if not size and is_url(path):
        place = str(cache_path("restarts", path, SUFFIX))
        size = file.save(place)
    if not size:
        raise ParioError(f"{place}: cannot be written")
    firsts = file.groups().firsts
    return int(firsts[-1]), len(firsts) - 1, size, os.fsencode(place)
