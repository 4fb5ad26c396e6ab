"""Compressed files of lines, TFRecord and WebDataset, read from restart points: ``.gz`` by
indexed_gzip, ``.zst`` by zstandard.

A group is the records between two restart points. The groups and restart points are found by one
pass over the file, and kept beside it (``pario records index``) or in the cache directory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import tarfile
import threading
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol, cast

from pario.errors import ParioError
from pario.publishing import replacing
from pario.records.decoded import Decoded, Groups, join_records
from pario.records.samples import split_name
from pario.state import cache_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Decompressed bytes of a group, at least; and of one within a frame of zstd, whose reading may
#: decompress all bytes of the frame before it.
GROUP = 4 << 20
WITHIN = 64 << 20
SUFFIX = ".restarts"
_CHUNK = 1 << 20
#: Compressed bytes of zstd that are decompressed at a time.
_COMPRESSED = 16 << 10
_FRAME = struct.Struct("<Q")
_INCOMPLETE = "its last frame is incomplete"


class Stream(Protocol):
    """The decompressed bytes of a file. Any thread may call ``read``."""

    @property
    def restarts(self) -> NDArray[Any]:
        """The restart points, to be stored."""

    def open(self) -> io.RawIOBase:
        """All bytes in order, with all checks of the format."""

    def finish(self) -> None:
        """Finds the restart points, after the file was read to its end."""

    def border(self, begin: int) -> float:
        """The first place at which the group after one from ``begin`` on may begin."""

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from ``begin`` to ``end``."""


class GzipStream:
    """A file of gzip with windows of its decompressed bytes, one every ``GROUP`` bytes."""

    def __init__(self, path: str, restarts: NDArray[Any] | None) -> None:
        import indexed_gzip
        import numpy as np

        self._path, self._kind = path, indexed_gzip.IndexedGzipFile
        #: The windows, in the format of indexed_gzip.
        self.restarts: NDArray[Any] = np.empty(0, np.uint8) if restarts is None else restarts
        self._local = threading.local()

    def open(self) -> io.RawIOBase:
        """All bytes in order."""
        return cast(io.RawIOBase, gzip.open(self._path))

    def finish(self) -> None:
        """Finds the windows. A pass of its own, because indexed_gzip takes a truncated file for a
        whole one, while the standard library compares length and checksum."""
        import numpy as np

        content = io.BytesIO()
        with self._kind(self._path, spacing=GROUP) as file:
            file.build_full_index()
            file.export_index(fileobj=content)
        self.restarts = np.frombuffer(content.getvalue(), np.uint8)

    def border(self, begin: int) -> float:
        """The first place at which the group after one from ``begin`` on may begin."""
        return begin + GROUP

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from ``begin`` to ``end``; each thread has an open file."""
        if not hasattr(self._local, "file"):
            self._local.file = self._kind(self._path)
            self._local.file.import_index(fileobj=io.BytesIO(self.restarts.tobytes()))
        return bytes(self._local.file.pread(end - begin, begin))


class _Frame:
    """Decompresses a frame of zstd from its begin on, in pieces of ascending places. It keeps no
    file open."""

    def __init__(self, decompressor: Any, begin: int, place: int) -> None:
        self._decompressor, self.begin, self._behind = decompressor, begin, begin
        #: The last bytes that were decompressed, and their place among those of the file.
        self._content, self.place = b"", place

    def read(self, file: BinaryIO, first: int, last: int) -> bytes:
        """The decompressed bytes from ``first``, at least ``place``, to ``last``."""
        parts = []
        file.seek(self._behind)
        while True:
            parts.append(self._content[max(0, first - self.place) : max(0, last - self.place)])
            if self.place + len(self._content) >= last:
                return b"".join(parts)
            data = file.read(_COMPRESSED)
            if not data:
                raise ValueError(_INCOMPLETE)
            self._behind, self.place = self._behind + len(data), self.place + len(self._content)
            self._content = self._decompressor.decompress(data)


class ZstdStream:
    """A file of zstd frames. ``restarts``: for each frame its begin in the file, and that of its
    decompressed bytes; last the ends.

    A frame that is longer than ``WITHIN`` is decompressed piece by piece, by one thread at a time,
    from the end of its last piece or from its begin.
    """

    def __init__(self, path: str, restarts: NDArray[Any] | None) -> None:
        import numpy as np
        import zstandard

        self._path, self._zstd = path, zstandard
        self._lock, self._long = threading.Lock(), _Frame(None, -1, 0)
        self._frames: list[tuple[int, int]] = [(0, 0)]
        if restarts is not None:
            self._frames = [(int(a), int(b)) for a, b in restarts.view(np.uint64).reshape(-1, 2)]

    def open(self) -> io.RawIOBase:
        """All bytes in order."""
        return _Chunks(self._decompress())

    def finish(self) -> None:
        """Nothing: the table is complete when the file was read."""

    @property
    def restarts(self) -> NDArray[Any]:
        """The table of frames."""
        import numpy as np

        return np.array(self._frames, np.uint64).ravel().view(np.uint8)

    def border(self, begin: int) -> float:
        """The first place at which the group after one from ``begin`` on may begin: in another
        frame, because reading a frame decompresses all of it, unless the frame is long."""
        later = bisect_left(self._frames, begin + GROUP, key=itemgetter(1))
        outs = [out for _, out in self._frames[later : later + 1]]
        return min([*outs, begin + WITHIN])

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from ``begin`` to ``end``."""
        parts = []
        one = max(0, bisect_right(self._frames, begin, key=itemgetter(1)) - 1)
        behind_last = bisect_left(self._frames, end, key=itemgetter(1))
        for (at, out), (behind, out_behind) in pairwise(self._frames[one : behind_last + 1]):
            first, last = max(begin, out), min(end, out_behind)
            if out_behind - out > WITHIN:
                parts.append(self._read_piece(at, out, first, last))
            else:
                parts.append(self._read_frame(at, behind)[first - out : last - out])
        return b"".join(parts)

    def _read_frame(self, at: int, behind: int) -> bytes:
        with open(self._path, "rb") as file:  # noqa: PTH123
            file.seek(at)
            return bytes(self._decompressor().decompress(file.read(behind - at)))

    def _read_piece(self, at: int, out: int, first: int, last: int) -> bytes:
        """The bytes from ``first`` to ``last`` of the frame that begins ``at``, and at ``out`` of
        the decompressed bytes."""
        with self._lock, open(self._path, "rb") as file:  # noqa: PTH123
            if self._long.begin != at or self._long.place > first:
                self._long = _Frame(self._decompressor(), at, out)
            return self._long.read(file, first, last)

    def _decompressor(self) -> Any:
        return self._zstd.ZstdDecompressor().decompressobj()

    def _decompress(self) -> Iterator[bytes]:
        with open(self._path, "rb") as file:  # noqa: PTH123
            frame, at, out = None, 0, 0
            while data := file.read(_COMPRESSED):
                while data:
                    frame = frame or self._decompressor()
                    content = frame.decompress(data)
                    used = len(data) - len(frame.unused_data)
                    at, out, data = at + used, out + len(content), frame.unused_data
                    if frame.eof:
                        self._frames.append((at, out))
                        frame = None
                    yield content
            if frame is not None:
                raise ValueError(_INCOMPLETE)


class _Chunks(io.RawIOBase):
    """A file of the bytes of an iterator."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)


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
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            name, extension = split_name(member.name)
            if extension and member.isfile() and name != key:
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
STREAMS: dict[str, Callable[[str, NDArray[Any] | None], Stream]] = {
    "indexed_gzip": GzipStream,
    "zstandard": ZstdStream,
}


class CompressedFile:
    """An open file. Any thread may use it, but not a forked child."""

    def __init__(self, path: str, format: str, package: str, verify: bool = True) -> None:
        self._path, self._records, self._verify = path, FORMATS[format], verify
        saved = load_restarts(path, format)
        self._stream = STREAMS[package](path, saved["restarts"] if saved else None)
        if saved:
            self._groups, self._sums = Groups(saved["begins"], saved["firsts"]), saved["sums"]
            return
        with name_errors():
            self._groups = find_groups(self._records, self._stream)
            self._sums = self._find_checksums()
        self.save(_cache_path(path), format)

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

    def save(self, path: Path, format: str) -> int:
        """Writes groups and restart points; the size of the file. A directory that cannot be
        written is left as it is: 0."""
        import numpy as np

        facts, groups, restarts = _facts(self._path, format), self.groups(), self._stream.restarts
        begins, firsts = groups.begins, groups.firsts
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path, durable=False) as file:
                np.savez(
                    file,
                    facts=np.array(facts),
                    restarts=restarts,
                    begins=begins,
                    firsts=firsts,
                    sums=self._sums,
                )
        except (OSError, ParioError):
            return 0
        return path.stat().st_size


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


def load_restarts(path: str, format: str) -> dict[str, NDArray[Any]] | None:
    """Groups and restart points that were stored for this file; None: there are none."""
    import numpy as np

    for place in (Path(path + SUFFIX), _cache_path(path)):
        try:
            with np.load(place, allow_pickle=False) as saved:
                if saved["facts"].tolist() == _facts(path, format):
                    return dict(saved)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            continue
    return None


def write_restarts(path: str, format: str, package: str) -> tuple[int, int, int, bytes]:
    """Writes groups and restart points beside a file; records, groups, bytes, and the path."""
    file, place = CompressedFile(path, format, package), Path(path + SUFFIX)
    size = file.save(place, format)
    if not size:
        raise ParioError(f"{place}: cannot be written")
    firsts = file.groups().firsts
    return int(firsts[-1]), len(firsts) - 1, size, os.fsencode(place)


def _cache_path(path: str) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    return cache_folder("restarts") / (name + SUFFIX)


def _facts(path: str, format: str) -> list[str]:
    facts = os.stat(path)  # noqa: PTH116
    return ["2", format, str(facts.st_size), str(facts.st_mtime_ns)]
