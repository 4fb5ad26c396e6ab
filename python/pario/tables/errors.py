"""What a reader raises when a log cannot be read at all."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError


class ReadError(ParioError):
    """A log that cannot be read: names the path, what was found there, and what was expected."""

    def __init__(self, path: Path | str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)

    def __str__(self) -> str:
        path, found, expected = self.args
        return f"{path}: {found}; expected {expected}"
