"""The base class of the errors that a user can correct."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class ParioError(Exception):
    """An error that the user can correct. Its text names the thing, its value and the expected
    value; commands print it and exit with status 2."""


def raise_error(error: OSError) -> NoReturn:
    """Raises an error: for ``onerror`` of ``os.walk``, which ignores errors otherwise."""
    raise error


@contextmanager
def name_errors(
    path: str | os.PathLike[str], error: type[ParioError] = ParioError
) -> Iterator[None]:
    """Raises ``error`` in place of an OSError of the body. It names the file of the OSError, or
    ``path`` if that has none."""
    try:
        yield
    except OSError as cause:
        name = os.fsdecode(cause.filename) if isinstance(cause.filename, str | bytes) else path
        raise error(f"{name}: {cause.strerror or cause}") from cause


@contextmanager
def add_path(path: str | os.PathLike[str]) -> Iterator[None]:
    """Adds a path to the OSErrors of the body that name no file, as those of reads and closes."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or os.fspath(path)
        raise
