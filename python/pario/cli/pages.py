"""Writes pages to files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pario.errors import ParioError


def write_page(path: Path, text: str, kind: str) -> None:
    """Writes an HTML page. Raises ParioError with the file, and its ``kind``."""
    write_text(path, text, f"HTML {kind}")


def write_text(path: Path, text: str, kind: str) -> None:
    """Writes a file of UTF-8: a regular one all at once, so that an interrupt leaves no part of it.

    Raises ParioError with the file, and its ``kind``.
    """
    with _name_errors(path, kind):
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)


def append_text(path: Path, text: str, kind: str) -> None:
    """Appends to a file of UTF-8, which need not exist. Raises ParioError with the file, and
    its ``kind``."""
    with _name_errors(path, kind), path.open("a", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def _name_errors(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ParioError(f"cannot write the {kind} {path}: {error.strerror}") from error


def _replace(target: Path, text: str) -> None:
    from pario.publishing import new_file

    with new_file(target) as (part, descriptor):
        with os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        part.replace(target)
