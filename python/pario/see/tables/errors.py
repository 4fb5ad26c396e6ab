"""The error of a reader for an unreadable log."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError


class ReadError(ParioError):
    """An unreadable log: its path, its contents, and the expected contents."""

    def __init__(self, path: Path | str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)

    def __str__(self) -> str:
        path, found, expected = self.args
        return f"{path}: {found}; expected {expected}"
