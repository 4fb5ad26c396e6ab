"""Writes pages to files."""

from __future__ import annotations

import os
from pathlib import Path

from pario.errors import ParioError


def write_page(path: Path, text: str, what: str) -> None:
    """Writes an HTML page. Raises ParioError with the file, and ``what`` as its kind."""
    write_text(path, text, f"HTML {what}")


def write_text(path: Path, text: str, what: str) -> None:
    """Writes a file of UTF-8: a regular one all at once, so that an interrupt leaves no part of it.

    Raises ParioError with the file, and ``what`` as its kind.
    """
    try:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise ParioError(f"cannot write the {what} {path}: {error.strerror}") from error


def append_text(path: Path, text: str, what: str) -> None:
    """Appends to a file of UTF-8, which need not exist. Raises ParioError with the file, and
    ``what`` as its kind."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ParioError(f"cannot write the {what} {path}: {error.strerror}") from error


def _replace(target: Path, text: str) -> None:
    from pario.publishing import new_file

    with new_file(target) as (part, descriptor):
        with os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        part.replace(target)
