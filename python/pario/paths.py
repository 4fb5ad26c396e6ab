"""Paths of users: schemes of URLs are checked."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from pario.errors import ParioError

#: "s3://bucket", "s3:/bucket" as pathlib has it, and chains such as "simplecache::s3://bucket".
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*([A-Za-z][A-Za-z0-9+.-]*):/")


#: "s3://bucket", but not a chain.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(path: str | os.PathLike[str]) -> bool:
    """True for ``SCHEME://REST``, by which pario.objects finds an object of a store."""
    return bool(_URL.match(os.fspath(path)))


def local_path(path: str | os.PathLike[str], error: type[ParioError] = ParioError) -> Path:
    """Converts a text to a path. Raises ``error`` if it has the scheme of a URL, which would become
    a local directory such as ``s3:``."""
    text = os.fspath(path)
    scheme = _SCHEME.match(text)
    if scheme:
        hint = f"a local directory called '{scheme[1]}:' needs its absolute path"
        raise error(f"{text}: '{scheme[1]}:' is not supported; expected a local path ({hint})")
    return Path(path)


def resolve(path: str | os.PathLike[str]) -> Path:
    """The absolute path without symbolic links, as far as it exists. A loop of links stays as it
    is: opening it is the error (``Path.resolve`` raises RuntimeError before Python 3.13)."""
    return Path(os.path.realpath(path))


def kind_of(mode: int) -> str:
    """The kind of a file that is not regular, from its mode: "a directory", "a pipe"."""
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a symbolic link",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
