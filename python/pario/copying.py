"""The bytes of a file into another, by several threads; holes stay holes. What was written can be read back and compared."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from pario.errors import ParioError

#: One read and one write.
PIECE = 8 << 20
#: Zeros are looked for in units of this where the file system does not tell its holes.
GRAIN = 1 << 20
_ZEROS = bytes(GRAIN)
_PART = re.compile(r"\.[0-9a-f]{20}\.pario-part")

Extent = tuple[int, int]
#: CRC-32 of what was written there.
Sums = dict[Extent, int]


def part_of(target: Path, maker: str) -> Path:
    """The name of what becomes ``target`` when it is whole: beside it, never too long, another for each maker, and the same next time."""
    digest = hashlib.sha256(os.fsencode(f"{maker}:{target.name}")).hexdigest()
    return target.with_name(f".{digest[:20]}.pario-part")


def is_part(name: str) -> bool:
    """Whether a file has such a name."""
    return _PART.fullmatch(name) is not None


def extents_with_data(descriptor: int, begin: int, end: int) -> Iterator[Extent]:
    """What lies between the holes, as far as the file system tells; else all of it."""
    at = begin
    while at < end:
        try:
            data = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            data = at  # holes are not told
        if data >= end:
            return
        try:
            hole = min(os.lseek(descriptor, data, os.SEEK_HOLE), end)
        except OSError:
            hole = end
        yield data, hole
        at = hole


def pieces_with_data(descriptor: int, begin: int, end: int) -> list[Extent]:
    """The same in pieces."""
    return [(at, min(at + PIECE, last)) for first, last in extents_with_data(descriptor, begin, end) for at in range(first, last, PIECE)]


class Copier:
    """Copies ranges from one descriptor to another with a few threads. The first error ends it and is raised.

    ``shift``: what lies at an offset of the source comes so much later in the target. ``sums`` receives the CRC-32 of each piece by its
    place in the target, for :func:`verify`.
    """

    def __init__(
        self, source: int, target: int, threads: int, look_for_zeros: bool = False, shift: int = 0, sums: Sums | None = None
    ) -> None:
        self._source = source
        self._target = target
        self._look = look_for_zeros
        self._shift = shift
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(threads)
        self._sums = sums

    def __enter__(self) -> Copier:
        return self

    def __exit__(self, *_: Any) -> None:
        self._pool.shutdown(cancel_futures=True)

    def copy(self, begin: int, end: int, moved: Callable[[int], None]) -> None:
        """All of [begin, end) of the source; tells now and then how far it is."""
        pieces = pieces_with_data(self._source, begin, end)
        futures = [self._pool.submit(self._piece, *piece) for piece in pieces]
        try:
            for (_, last), future in zip(pieces, futures, strict=True):
                future.result()
                moved(last)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        moved(end)

    def _piece(self, begin: int, end: int) -> None:
        buffer = self._buffer()[: end - begin]
        read_exactly(self._source, begin, buffer)
        grain = GRAIN if self._look else PIECE
        for first in range(0, len(buffer), grain):
            self._write(buffer[first : first + grain], begin + self._shift + first)
        if self._sums is not None:
            self._sums[begin + self._shift, end + self._shift] = zlib.crc32(buffer)

    def _write(self, data: memoryview, offset: int) -> None:
        if self._look and data == _ZEROS[: len(data)]:
            return
        write_all(self._target, offset, data)

    def _buffer(self) -> memoryview:
        if not hasattr(self._own, "buffer"):
            self._own.buffer = memoryview(bytearray(PIECE))
        return self._own.buffer  # type: ignore[no-any-return]


def read_exactly(descriptor: int, offset: int, buffer: memoryview) -> None:
    """Fills the buffer. Raises ParioError at the end of the file."""
    done = 0
    while done < len(buffer):
        got = os.preadv(descriptor, [buffer[done:]], offset + done)
        if got == 0:
            raise ParioError("it became shorter while it was copied; it is as somebody made it")
        done += got


def copy_piece(source: int, target: int, begin: int, end: int, shift: int = 0) -> int:
    """A piece by the calling thread; its CRC-32."""
    data = memoryview(bytearray(end - begin))
    read_exactly(source, begin, data)
    write_all(target, begin + shift, data)
    return zlib.crc32(data)


def write_all(descriptor: int, offset: int, data: memoryview) -> None:
    """Over partial writes."""
    while data:
        done = os.pwrite(descriptor, data, offset)
        data, offset = data[done:], offset + done


def copy_range(source: int, target: int, begin: int, end: int, shift: int) -> None:
    """By the calling thread; by the kernel where it can, which lets files share bytes where the file system can."""
    for first, last in extents_with_data(source, begin, end):
        at = first
        with suppress(OSError):
            while at < last and (done := os.copy_file_range(source, target, last - at, at, at + shift)):
                at += done
        for piece in range(at, last, PIECE):
            copy_piece(source, target, piece, min(piece + PIECE, last), shift)


def compare(source: int, target: int, begin: int, end: int, shift: int) -> bool:
    """Whether a range of one file has the bytes of another's."""
    for at in range(begin, end, PIECE):
        ours, theirs = bytearray(min(PIECE, end - at)), bytearray(min(PIECE, end - at))
        read_exactly(source, at, memoryview(ours))
        read_exactly(target, at + shift, memoryview(theirs))
        if ours != theirs:
            return False
    return True


def verify(descriptor: int, sums: Sums, threads: int) -> None:
    """Reads what was copied back, from the disk where the kernel lets go of its pages. Raises ParioError when it is not what was read."""
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    if threads == 1:
        for item in sums.items():
            _check(descriptor, *item)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda item: _check(descriptor, *item), sums.items()):
            pass


def _check(descriptor: int, place: Extent, expected: int) -> None:
    begin, end = place
    data = memoryview(bytearray(end - begin))
    read_exactly(descriptor, begin, data)
    if zlib.crc32(data) != expected:
        raise ParioError(f"the bytes from {begin} to {end} of the copy are not those that were written")
