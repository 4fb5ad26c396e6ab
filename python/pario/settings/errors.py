"""The error of an invalid settings file."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError


class SettingsError(ParioError):
    """An error with file, line (0: the whole file), contents and expectation."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}" if line else f"{path}: {text}")
