"""An object as a file of Python, for packages that read files."""

from __future__ import annotations

import io
from typing import Any

from pario.objects.access import Objects

#: Bytes of the end that come with the size and the version: the footers of most files.
_TAIL = 64 << 10


class ObjectReader(io.RawIOBase):
    """The version of an object that was opened. Each read is one request, except in its end and in
    the range of :meth:`keep`, which are in memory. One thread uses it at a time; :meth:`again`
    makes another one.

    Raises OSError; ESTALE if the object was changed after it was opened.
    """

    def __init__(self, store: Objects, url: str) -> None:
        super().__init__()
        self._store, self._url, self._at = store, url, 0
        self._size, _, self._version, tail = store.open(url, _TAIL)
        self._tail = memoryview(tail)
        #: The begin of the range that is kept, and its bytes.
        self._kept: tuple[int, memoryview] = (0, memoryview(b""))

    @property
    def identity(self) -> tuple[int, str]:
        """The bytes and the version of the object."""
        return self._size, self._version

    def again(self) -> ObjectReader:
        """A reader of the same version, at its begin; makes no request."""
        other = ObjectReader.__new__(ObjectReader)
        other.__dict__.update(self.__dict__)
        other._at, other._kept = 0, (0, memoryview(b""))
        return other

    def keep(self, begin: int, end: int) -> None:
        """Requests a range, from which later reads are served, instead of the range before."""
        end = min(end, self._size)
        if begin < end and begin < self._size - len(self._tail):
            found = self._store.read(self._url, self._version, self._size, begin, end)
            self._kept = begin, memoryview(found)

    def readable(self) -> bool:
        """Returns True: readinto() works."""
        return True

    def seekable(self) -> bool:
        """Returns True: seek() works."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the offset of the next read, and returns it."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        """The offset of the next read."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer up to the end of the object."""
        view = memoryview(buffer).cast("B")
        begin, end = self._at, min(self._at + len(view), self._size)
        if begin >= end:
            return 0
        first = self._size - len(self._tail)
        kept_at, kept = self._kept
        if begin >= first:
            content = self._tail[begin - first : end - first]
        elif kept_at <= begin < kept_at + len(kept):
            content = kept[begin - kept_at : end - kept_at]
            end = begin + len(content)
        else:
            found = self._store.read(self._url, self._version, self._size, begin, end)
            content = memoryview(found)
        view[: end - begin] = content
        self._at = end
        return end - begin
