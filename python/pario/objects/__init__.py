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
from collections.abc import Iterator
from contextlib import contextmanager

from pario import _native
from pario.objects.access import Objects
from pario.paths import is_url, local_path

__all__ = ["Objects", "facts_of", "is_url", "read_head", "size_of", "upload", "use"]

_objects = Objects()


def size_of(path: str | os.PathLike[str]) -> int:
    """Bytes of a local file, or of the object at a URL. Raises OSError."""
    if not is_url(path):
        return os.stat(path).st_size  # noqa: PTH116
    return facts_of(os.fspath(path))[0]


def facts_of(url: str) -> tuple[int, int, str]:
    """Bytes, nanoseconds since 1970 and version of the object at a URL. Raises OSError."""
    with _name_in_errors(url):
        return _objects.open(url, 1)[:3]


def read_head(path: str | os.PathLike[str], most: int) -> bytes:
    """The first bytes, at most ``most``, of a local file, or of the object at a URL. Raises
    OSError."""
    if not is_url(path):
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(most)
    url = os.fspath(path)
    with _name_in_errors(url):
        size, _, version, _ = _objects.open(url, 1)
        return bytes(_objects.read(url, version, size, 0, min(size, most))) if size else b""


def upload(path: str | os.PathLike[str], url: str) -> None:
    """Writes a local file as the object at a URL, in parts and bounded memory.

    The object is complete, or not visible. After an error no part remains; after a kill parts can
    remain until the store removes them.

    Raises
    ------
    OSError
        The file cannot be read, or the object cannot be written.
    """
    with _name_in_errors(url):
        _objects.upload(os.fspath(path), url)


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


@contextmanager
def _name_in_errors(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{url}: {error.strerror or error}") from error
