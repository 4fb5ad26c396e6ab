"""Arguments that are paths: their types, and checks before the work.

All types reject unsupported schemes (:func:`pario.paths.local_path`); those with ``url`` in their
names accept URLs of objects.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pario.errors import ParioError
from pario.paths import is_url, local_path
from pario.wording import printable


def path(text: str) -> Path:
    """Converts an argument to a path."""
    try:
        return local_path(text)
    except ParioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def path_text(text: str) -> str:
    """A path or a pattern of paths, unchanged."""
    path(text)
    return text


def path_or_url_text(text: str) -> str:
    """A path, or the URL of an object of a store, unchanged."""
    from pario import objects

    try:
        return objects.use(text)
    except ParioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def path_or_host_text(text: str) -> str:
    """A path here, or HOST:PATH, unchanged."""
    from pario.move.rsync import host_path

    try:
        if is_url(text) or not host_path(text):
            local_path(text)
    except ParioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def staged_path_text(text: str) -> str:
    """Two paths DIR=LOCAL, unchanged."""
    for one in text.split("=", 1):
        path(one)
    return text


def require_path(path: str | os.PathLike[str], expected: str) -> None:
    """Raises ParioError that names the path and the ``expected`` kind of file if it does not exist
    or cannot be examined. URLs are examined when they are opened."""
    if is_url(path):
        return
    try:
        os.stat(path)  # noqa: PTH116
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ParioError(f"{printable(os.fspath(path))}: {reason}; expected {expected}") from error


def require_directory(path: str | os.PathLike[str], expected: str) -> None:
    """Raises ParioError as :func:`require_path` if the path is no directory."""
    require_path(path, expected)
    if not Path(path).is_dir():
        raise ParioError(f"{printable(os.fspath(path))}: not a directory; expected {expected}")


def require_archive(path: str) -> None:
    """Raises ParioError if the path is no archive of ``pario pack``."""
    expected = "a directory written by pario pack"
    require_directory(path, expected)
    if not Path(path, "index").exists():
        raise ParioError(f"{printable(path)}: a directory without an index; expected {expected}")
