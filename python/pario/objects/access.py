"""The functions by which the native file layer opens, reads and writes objects."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING

from pario.objects.hedging import Hedge
from pario.objects.stores import Change, Store, open_store

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Objects:
    """Access to all stores by any thread; a store is opened once. Errors are of type OSError."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()
        self._hedge = Hedge()

    def open(self, url: str, tail: int) -> tuple[int, int, str, Buffer]:
        """Size, nanoseconds since 1970, version, and at most ``tail`` last bytes."""
        store, name = self._locate(url)
        size, modified, version, data = store.open(name, tail)
        return size, modified, version, _require_bytes(data, min(tail, size))

    def read(self, url: str, version: str, size: int, begin: int, end: int) -> Buffer:
        """The bytes ``begin`` to ``end - 1`` of an object that was opened as this version."""
        store, name = self._locate(url)
        data = self._hedge.run(lambda: store.read(name, version, size, begin, end))
        return _require_bytes(data, end - begin)

    def write(self, url: str, data: bytes) -> None:
        """Writes a whole object."""
        store, name = self._locate(url)
        store.write(name, data)

    def update(self, url: str, change: Change) -> None:
        """Replaces a small object by the bytes that ``change`` makes of its bytes."""
        store, name = self._locate(url)
        store.update(name, change)

    def upload(self, path: str, url: str) -> None:
        """Writes a local file as an object, in parts."""
        store, name = self._locate(url)
        store.upload(name, path)

    def remove(self, url: str) -> None:
        """Removes an object."""
        store, name = self._locate(url)
        store.remove(name)

    def _locate(self, url: str) -> tuple[Store, str]:
        scheme, _, rest = url.partition("://")
        place, _, name = rest.partition("/")
        root = f"{scheme}://{place}"
        with self._lock:
            if root not in self._stores:
                self._stores[root] = open_store(root)
            return self._stores[root], name


def _require_bytes(data: Buffer, expected: int) -> Buffer:
    """The answer to a request for so many bytes. Raises OSError if it has another number."""
    found = memoryview(data).nbytes
    if found != expected:
        raise OSError(errno.EIO, f"{found} bytes came of {expected}")
    return data
