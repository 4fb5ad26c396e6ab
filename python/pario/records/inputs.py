"""Files that Python packages read: local ones, and objects by requests for ranges."""

from __future__ import annotations

import io
import os
from typing import BinaryIO, cast

from pario.objects import ObjectReader, is_url, open_reader

#: Bytes of a request, where an object is read in order.
REQUEST = 8 << 20


class Input:
    """A local file, or the version of an object that was opened. Any thread may use it.

    Raises OSError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._object = open_reader(path) if is_url(path) else None

    @property
    def facts(self) -> list[str]:
        """The bytes, and the time or version, for which an index of the file holds."""
        if self._object is not None:
            size, version = self._object.identity
            return [str(size), version]
        facts = os.stat(self.path)  # noqa: PTH116
        return [str(facts.st_size), str(facts.st_mtime_ns)]

    def open(self) -> BinaryIO:
        """The file at its begin, to be read in order."""
        if self._object is None:
            return open(self.path, "rb")  # noqa: PTH123
        return cast(BinaryIO, io.BufferedReader(self._object.again(), REQUEST))

    def open_object(self) -> ObjectReader | None:
        """The object, to be read by ranges; None: the file is local."""
        return self._object and self._object.again()

    def open_range(self, begin: int, end: int) -> BinaryIO:
        """The file at ``begin``, to be read up to ``end``: of an object by one request."""
        if self._object is None:
            file: BinaryIO = open(self.path, "rb")  # noqa: PTH123, SIM115
        else:
            reader = self._object.again()
            reader.keep(begin, end)
            file = cast(BinaryIO, reader)
        file.seek(begin)
        return file
