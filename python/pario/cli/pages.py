"""Writes pages, and appends to summaries."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError
from pario.publishing import write_text


def write_page(path: Path, text: str, kind: str) -> None:
    """Writes an HTML page. Raises ParioError with the file, and its ``kind``."""
    write_text(path, text, f"HTML {kind}")


def append_text(path: Path, text: str, kind: str) -> None:
    """Appends to a file of UTF-8, which need not exist. Raises ParioError with the file, and
    its ``kind``."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ParioError(f"cannot write the {kind} {path}: {error.strerror}") from error
