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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from pario.errors import ParioError
from pario.publishing import replacing
from pario.records.decoded import Decoded, Groups, join_records
from pario.records.samples import split_name
from pario.state import cache_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Decompressed bytes of a group, at least.
GROUP = 4 << 20
SUFFIX = ".restarts"
_CHUNK = 1 << 20
_FRAME = struct.Struct("<Q")


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


class ZstdStream:
    """A file of zstd frames. ``restarts``: for each frame its begin in the file, and that of its
    decompressed bytes; last the ends."""

    def __init__(self, path: str, restarts: NDArray[Any] | None) -> None:
        import numpy as np
        import zstandard

        self._path, self._zstd = path, zstandard
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
        frame, because reading a frame decompresses all of it."""
        later = (out for _, out in self._frames[:-1] if out >= begin + GROUP)
        return next(later, float("inf"))

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from ``begin`` to ``end``."""
        parts = []
        with open(self._path, "rb") as file:  # noqa: PTH123
            for (at, out), (behind, out_behind) in zip(
                self._frames, self._frames[1:], strict=False
            ):
                if out < end and begin < out_behind:
                    file.seek(at)
                    content = self._decompressor().decompress(file.read(behind - at))
                    parts.append(content[max(0, begin - out) : end - out])
        return b"".join(parts)

    def _decompressor(self) -> Any:
        return self._zstd.ZstdDecompressor().decompressobj()

    def _decompress(self) -> Iterator[bytes]:
        with open(self._path, "rb") as file:  # noqa: PTH123
            frame, at, out = None, 0, 0
            while data := file.read(_CHUNK):
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
                raise ValueError("its last frame is incomplete")


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
    split: Callable[[bytes], list[bytes]]


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


def _split_lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    return [*lines, last] if last else lines


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


def _split_tfrecords(data: bytes) -> list[bytes]:
    records, at = [], 0
    while at < len(data):
        (length,) = _FRAME.unpack_from(data, at)
        records.append(data[at + 12 : at + 12 + length])
        at += length + 16
    if at != len(data):
        raise ValueError("its last record is incomplete")
    return records


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


def _split_tar(data: bytes) -> list[bytes]:
    *starts, end = _find_tar(io.BytesIO(data))
    begins = [start for (start,) in starts]
    return [data[begin:behind] for begin, behind in zip(begins, [*begins[1:], end], strict=True)]


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

    def decode(self, group: int, first: int, last: int) -> Iterator[Decoded]:
        """The records of a group."""
        begin, end = self.groups().begins[group : group + 2].tolist()
        with name_errors():
            data = self._stream.read(begin, end)
            if self._verify and zlib.crc32(data) != self._sums[group]:
                raise ValueError(f"group {group}: wrong checksum of its data")
            records = self._records.split(data) if data else []
        yield join_records(records)

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
    return ["1", format, str(facts.st_size), str(facts.st_mtime_ns)]
