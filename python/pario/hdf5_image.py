"""HDF5 files made in memory: HDF5 ends the process where a write fails while it closes a file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

_PAGE = 4096

#: Place in a file, and the bytes there.
Piece = tuple[int, bytes]


class Image(io.RawIOBase):
    """A file in memory for ``h5py.File(image, ...)``. Bytes never written take no memory."""

    def __init__(self, pieces: Iterable[Piece] = (), size: int = 0) -> None:
        super().__init__()
        self._pages: dict[int, bytearray] = {}
        self._at = self.size = 0
        for place, content in pieces:
            self.seek(place)
            self.write(content)
        self.size = max(self.size, size)

    def seekable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """True."""
        return True

    def writable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the place of the next read or write, which may lie beyond the end; returns it."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        """The place of the next read or write."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer; beyond the end with zeros, which HDF5 never reads otherwise."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view):
            number, begin = divmod(self._at + done, _PAGE)
            count = min(_PAGE - begin, len(view) - done)
            page = self._pages.get(number)
            view[done : done + count] = page[begin : begin + count] if page else bytes(count)
            done += count
        self._at += done
        return done

    def write(self, content: Any) -> int:
        """Writes all bytes of a buffer."""
        view = memoryview(content).cast("B")
        done = 0
        while done < len(view):
            number, begin = divmod(self._at + done, _PAGE)
            count = min(_PAGE - begin, len(view) - done)
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = bytearray(_PAGE)
            page[begin : begin + count] = view[done : done + count]
            done += count
        self._at += done
        self.size = max(self.size, self._at)
        return done

    def truncate(self, size: int | None = None) -> int:
        """Sets the size; HDF5 gives files their size when it closes them."""
        self.size = self._at if size is None else size
        return self.size

    def pieces(self) -> list[Piece]:
        """The pages that were written, in order; those side by side as one."""
        found: list[tuple[int, list[bytearray]]] = []
        end = -1
        for number in sorted(self._pages):
            if number != end:
                found.append((number * _PAGE, []))
            found[-1][1].append(self._pages[number])
            end = number + 1
        joined = ((place, b"".join(pages)) for place, pages in found)
        return [(place, content[: self.size - place]) for place, content in joined]
