"""Writes texts to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pario.errors import ParioError


def write_page(path: Path, text: str, kind: str) -> None:
    """Writes an HTML page. Raises ParioError with the file, and its ``kind``."""
    write_text(path, text, f"HTML {kind}")


def write_text(path: Path, text: str, kind: str = "") -> None:
    """Writes a file of UTF-8: a regular one all at once, so that an interrupt leaves no part of it.

    Raises ParioError with the file, and its ``kind`` if it has one.
    """
    from pario.publishing import replacing

    with _name_errors(path, kind) as name:
        if path.exists() and not path.is_file():  # a device or a pipe
            path.write_text(text, encoding="utf-8")
        else:
            with replacing(path.resolve(), name=name) as file:
                file.write(text.encode())


def append_text(path: Path, text: str, kind: str) -> None:
    """Appends to a file of UTF-8, which need not exist. Raises ParioError with the file, and
    its ``kind``."""
    with _name_errors(path, kind), path.open("a", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def _name_errors(path: Path, kind: str) -> Iterator[str]:
    name = f"the {kind} {path}" if kind else str(path)
    try:
        yield name
    except OSError as error:
        raise ParioError(f"cannot write {name}: {error.strerror}") from error
