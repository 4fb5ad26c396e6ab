"""Compressed files as streams that are read from restart points: ``.gz`` by indexed_gzip, ``.zst``
by zstandard.
"""

from __future__ import annotations

import gzip
import io
import sys
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from pario.records.inputs import Input

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Decompressed bytes of a group, at least; and of one within a frame of zstd, whose reading may
#: decompress all bytes of the frame before it.
GROUP = 4 << 20
WITHIN = 64 << 20
#: Compressed bytes of zstd that are decompressed at a time.
_COMPRESSED = 16 << 10
#: A frame: the begins of it and of the next one, each in the file and of the decompressed bytes.
_Pair = tuple[tuple[int, int], tuple[int, int]]
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

    def __init__(self, source: Input, restarts: NDArray[Any] | None) -> None:
        import indexed_gzip
        import numpy as np

        self._source, self._kind = source, indexed_gzip.IndexedGzipFile
        #: The windows, in the format of indexed_gzip.
        self.restarts: NDArray[Any] = np.empty(0, np.uint8) if restarts is None else restarts
        self._local = threading.local()

    def open(self) -> io.RawIOBase:
        """All bytes in order."""
        return cast(io.RawIOBase, _OwningGzipFile(self._source.open()))

    def finish(self) -> None:
        """Finds the windows. A pass of its own, because indexed_gzip takes a truncated file for a
        whole one, while the standard library compares length and checksum."""
        import numpy as np

        content = io.BytesIO()
        with self._source.open() as raw, self._kind(fileobj=raw, spacing=GROUP) as file:
            file.build_full_index()
            file.export_index(fileobj=content)
        self.restarts = np.frombuffer(content.getvalue(), np.uint8)

    def border(self, begin: int) -> float:
        """The first place at which the group after one from ``begin`` on may begin."""
        return begin + GROUP

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from ``begin`` to ``end``; each thread has an open file."""
        local = self._local
        if not hasattr(local, "file"):
            local.object = self._source.open_object()
            # Without its buffer, which can read on to 4 MiB behind the group.
            local.file = self._kind(local.object or self._source.path, buffer_size=1)
            local.file.import_index(fileobj=io.BytesIO(self.restarts.tobytes()))
            local.points = list(local.file.seek_points()) if local.object else []
        if local.object:
            local.object.keep(*_find_compressed(local.points, begin, end))
        return bytes(local.file.pread(end - begin, begin))


def _find_compressed(points: list[tuple[int, int]], begin: int, end: int) -> tuple[int, int]:
    """The compressed bytes of a range, by the points (decompressed, compressed) of a file of gzip.
    A point can be within the byte before it; the header is read before the first one."""
    first = max(0, bisect_right(points, begin, key=itemgetter(0)) - 1)
    last = bisect_left(points, end, key=itemgetter(0))
    behind = points[last][1] if last < len(points) else sys.maxsize
    return points[first][1] - 1 if first else 0, behind


class _OwningGzipFile(gzip.GzipFile):
    """Closes the file that it reads, too."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        super().__init__(fileobj=file, mode="rb")

    def close(self) -> None:
        super().close()
        self._file.close()


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

    def __init__(self, source: Input, restarts: NDArray[Any] | None) -> None:
        import numpy as np
        import zstandard

        self._source, self._zstd = source, zstandard
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
        parts: list[bytes] = []
        one = max(0, bisect_right(self._frames, begin, key=itemgetter(1)) - 1)
        behind_last = bisect_left(self._frames, end, key=itemgetter(1))
        frames = self._frames[one : behind_last + 1]
        for is_long, some in groupby(pairwise(frames), _is_long):
            chosen = list(some)
            read = self._read_pieces if is_long else self._read_frames
            parts += read(chosen, begin, end)
        return b"".join(parts)

    def _read_frames(self, frames: list[_Pair], begin: int, end: int) -> Iterator[bytes]:
        """The bytes of neighbouring frames, which are read together."""
        with self._source.open_range(frames[0][0][0], frames[-1][1][0]) as file:
            for (at, out), (behind, _) in frames:
                content = self._decompressor().decompress(file.read(behind - at))
                yield content[max(0, begin - out) : max(0, end - out)]

    def _read_pieces(self, frames: list[_Pair], begin: int, end: int) -> Iterator[bytes]:
        for (at, out), (_, out_behind) in frames:
            yield self._read_piece(at, out, max(begin, out), min(end, out_behind))

    def _read_piece(self, at: int, out: int, first: int, last: int) -> bytes:
        """The bytes from ``first`` to ``last`` of the frame that begins ``at``, and at ``out`` of
        the decompressed bytes."""
        with self._lock, self._source.open() as file:
            if self._long.begin != at or self._long.place > first:
                self._long = _Frame(self._decompressor(), at, out)
            return self._long.read(file, first, last)

    def _decompressor(self) -> Any:
        return self._zstd.ZstdDecompressor().decompressobj()

    def _decompress(self) -> Iterator[bytes]:
        with self._source.open() as file:
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


def _is_long(frame: _Pair) -> bool:
    (_, out), (_, out_behind) = frame
    return out_behind - out > WITHIN


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


STREAMS: dict[str, Callable[[Input, NDArray[Any] | None], Stream]] = {
    "indexed_gzip": GzipStream,
    "zstandard": ZstdStream,
}
