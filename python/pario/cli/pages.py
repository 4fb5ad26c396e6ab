"""Writes pages to files."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError


def write_page(path: Path, text: str, what: str) -> None:
    """Writes an HTML page. Raises ParioError with the file, and ``what`` as its kind."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ParioError(f"cannot write the HTML {what} {path}: {error.strerror}") from error
