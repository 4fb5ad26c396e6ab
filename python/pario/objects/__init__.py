"""Objects of stores by their URLs: ``s3://``, ``gs://``, ``az://``, ``http://``, and the file
systems of fsspec, such as ``hf://``.

The native file layer opens, reads and writes a URL by calls of :class:`Objects`, which is set once
in a process (:func:`use`). The requests are made by obstore, and by fsspec for the schemes that
obstore lacks; both are optional, ``pip install obstore fsspec``.

The native readers plan the requests: they coalesce ranges, read ahead and bound the memory. A
request is one blocking call from one of their threads, which takes about 10 microseconds with the
GIL and one copy, from obstore's buffer to the reader's memory; with a possible second request it
takes about 25. obstore's asynchronous calls take 80 to 260 (measured with a store in memory). A
planner in Python would copy each record once more, and save nothing.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from pario import _native
from pario.errors import add_path
from pario.objects.access import Objects
from pario.objects.reader import ObjectReader
from pario.objects.stores import PART, Change
from pario.paths import is_url, local_path

__all__ = [
    "Change",
    "ObjectReader",
    "Objects",
    "download",
    "facts_of",
    "is_url",
    "open_reader",
    "read",
    "read_head",
    "remove",
    "size_of",
    "update",
    "upload",
    "use",
    "write",
]

#: Ranges that a download requests at the same time.
_RANGES = 4
#: Bytes of an object that come with its facts.
_SMALL = 1 << 20

_objects = Objects()


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes of a local file, or of the object at a URL. Raises OSError."""
    if not is_url(path):
        return os.stat(path).st_size  # noqa: PTH116
    return facts_of(os.fspath(path))[0]


def facts_of(url: str) -> tuple[int, int, str]:
    """Bytes, nanoseconds since 1970 and version of the object at a URL. Raises OSError."""
    with add_path(url):
        return _objects.open(url, 1)[:3]


def read_head(path: str | os.PathLike[str], most: int) -> bytes:
    """The first bytes, at most ``most``, of a local file, or of the object at a URL. Raises
    OSError."""
    if not is_url(path):
        with add_path(path), open(path, "rb") as file:  # noqa: PTH123
            return file.read(most)
    url = os.fspath(path)
    with add_path(url):
        size, _, version, _ = _objects.open(url, 1)
        return bytes(_objects.read(url, version, size, 0, min(size, most))) if size else b""


def open_reader(url: str) -> ObjectReader:
    """Opens an object as a file of Python. Raises OSError."""
    with add_path(url):
        return ObjectReader(_objects, url)


def read(url: str) -> bytes:
    """A small object, by one request. Raises OSError."""
    with add_path(url):
        size, _, version, tail = _objects.open(url, _SMALL)
        content = memoryview(tail)
        if len(content) < size:
            content = memoryview(_objects.read(url, version, size, 0, size))
        return bytes(content)


def upload(path: str | os.PathLike[str], url: str) -> None:
    """Writes a local file as the object at a URL, in parts and bounded memory.

    The object is complete, or not visible. After an error no part remains; after a kill parts can
    remain until the store removes them.

    Raises
    ------
    OSError
        The file cannot be read, or the object cannot be written.
    """
    with add_path(url):
        _objects.upload(os.fspath(path), url)


def download(url: str, path: str | os.PathLike[str]) -> None:
    """Writes an object as a new local file, in ranges and bounded memory.

    Raises
    ------
    OSError
        The object cannot be read or changes meanwhile, or the file exists or cannot be written.
    """
    with add_path(url):
        size, _, version, _ = _objects.open(url, 1)
    name = os.fspath(path)
    with add_path(name):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def copy(begin: int) -> None:
        with add_path(url):
            content = memoryview(_objects.read(url, version, size, begin, min(begin + PART, size)))
        with add_path(name):
            while content:
                done = os.pwrite(file, content, begin)
                begin, content = begin + done, content[done:]

    pool = ThreadPoolExecutor(_RANGES, "pario-download")
    try:
        for _ in pool.map(copy, range(0, size, PART)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
        os.close(file)


def write(url: str, data: bytes) -> None:
    """Writes a small object. Raises OSError."""
    with add_path(url):
        _objects.write(url, data)


def update(url: str, change: Change) -> None:
    """Replaces a small object by the bytes that ``change`` makes of its bytes, or of None if there
    is none. Raises OSError, ESTALE if another program has replaced it meanwhile and the store knows
    conditional requests."""
    with add_path(url):
        _objects.update(url, change)


def remove(url: str) -> None:
    """Removes an object. Raises OSError."""
    with add_path(url):
        _objects.remove(url)


def use(path: str | os.PathLike[str]) -> str:
    """The path as a text; for a URL, the native file layer is given access to stores.

    Parameters
    ----------
    path : str or PathLike
        A local path or a URL. A ``pathlib.Path`` cannot be a URL: it drops a slash.

    Raises
    ------
    ParioError
        The text has a scheme, but is no URL: ``s3:/bucket``.
    """
    text = os.fspath(path)
    if is_url(text):
        _native.set_object_store(_objects)
    else:
        local_path(text)
    return text
