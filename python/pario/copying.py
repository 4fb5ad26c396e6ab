"""Copies bytes between files with several threads, keeps holes, and verifies the copy."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from pario.errors import ParioError

#: One read and one write.
PIECE = 8 << 20
#: The unit in which zeros are searched if the file system does not report holes.
GRAIN = 1 << 20
_ZEROS = bytes(GRAIN)

Extent = tuple[int, int]
#: CRC-32 of the bytes written to each extent.
Sums = dict[Extent, int]


def extents_with_data(descriptor: int, begin: int, end: int) -> Iterator[Extent]:
    """The extents between the holes; the whole range if the file system does not report holes."""
    at = begin
    while at < end:
        try:
            data = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole follows
                return
            data = at  # holes are not reported
        if data >= end:
            return
        try:
            hole = min(os.lseek(descriptor, data, os.SEEK_HOLE), end)
        except OSError:
            hole = end
        yield data, hole
        at = hole


def pieces_with_data(descriptor: int, begin: int, end: int) -> list[Extent]:
    """The extents with data, divided into pieces."""
    return [
        (at, min(at + PIECE, last))
        for first, last in extents_with_data(descriptor, begin, end)
        for at in range(first, last, PIECE)
    ]


class Copier:
    """Copies ranges from one descriptor to another with several threads. Raises the first error.

    ``sums`` receives the CRC-32 of each piece by its extent, for :func:`verify`.
    """

    def __init__(
        self,
        source: int,
        target: int,
        threads: int,
        look_for_zeros: bool = False,
        sums: Sums | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._look = look_for_zeros
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(threads)
        self._sums = sums

    def __enter__(self) -> Copier:
        return self

    def __exit__(self, *_: Any) -> None:
        self._pool.shutdown(cancel_futures=True)

    def copy(self, begin: int, end: int, moved: Callable[[int], None]) -> None:
        """Copies [begin, end) of the source; calls ``moved`` with the offset reached."""
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
            self._write(buffer[first : first + grain], begin + first)
        if self._sums is not None:
            self._sums[begin, end] = zlib.crc32(buffer)

    def _write(self, data: memoryview, offset: int) -> None:
        if self._look and data == _ZEROS[: len(data)]:
            return
        write_all(self._target, offset, data)

    def _buffer(self) -> memoryview:
        if not hasattr(self._own, "buffer"):
            self._own.buffer = memoryview(bytearray(PIECE))
        return self._own.buffer  # type: ignore[no-any-return]


def read_available(descriptor: int, offset: int, buffer: memoryview) -> int:
    """Fills the buffer as far as the file goes; returns the bytes read."""
    done = 0
    while done < len(buffer) and (got := os.preadv(descriptor, [buffer[done:]], offset + done)):
        done += got
    return done


def read_exactly(descriptor: int, offset: int, buffer: memoryview) -> None:
    """Fills the buffer. Raises ParioError at the end of the file."""
    if read_available(descriptor, offset, buffer) < len(buffer):
        raise ParioError("it became shorter while it was copied; it is unchanged")


def copy_piece(source: int, target: int, begin: int, end: int, shift: int = 0) -> int:
    """Copies a piece in the calling thread; returns its CRC-32."""
    data = memoryview(bytearray(end - begin))
    read_exactly(source, begin, data)
    write_all(target, begin + shift, data)
    return zlib.crc32(data)


def write_all(descriptor: int, offset: int, data: memoryview | bytes) -> None:
    """Writes all bytes, by as many calls as are needed."""
    left = memoryview(data)
    while left:
        done = os.pwrite(descriptor, left, offset)
        left, offset = left[done:], offset + done


def copy_range(source: int, target: int, begin: int, end: int, shift: int) -> None:
    """Copies a range in the calling thread, by ``copy_file_range`` where possible, so that files
    share blocks if the file system can."""
    for first, last in extents_with_data(source, begin, end):
        at = first
        with suppress(OSError):
            while at < last and (
                done := os.copy_file_range(source, target, last - at, at, at + shift)
            ):
                at += done
        for piece in range(at, last, PIECE):
            copy_piece(source, target, piece, min(piece + PIECE, last), shift)


def compare(source: int, target: int, begin: int, end: int, shift: int) -> bool:
    """True if a range of one file has the bytes of another's."""
    for at in range(begin, end, PIECE):
        ours, theirs = bytearray(min(PIECE, end - at)), bytearray(min(PIECE, end - at))
        read_exactly(source, at, memoryview(ours))
        read_exactly(target, at + shift, memoryview(theirs))
        if ours != theirs:
            return False
    return True


def drop_from_cache(descriptor: int) -> None:
    """Write the dirty pages of a file, and ask the kernel to drop all of its pages."""
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def verify(descriptor: int, sums: Sums, threads: int) -> None:
    """Reads a copy back, from the disk if the kernel drops its pages, and compares the checksums.
    Raises ParioError if they differ."""
    drop_from_cache(descriptor)
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
        raise ParioError(
            f"the bytes from {begin} to {end} of the copy are not those that were written"
        )
