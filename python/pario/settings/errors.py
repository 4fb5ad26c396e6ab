"""What is wrong with a settings file."""

from __future__ import annotations

from pathlib import Path

from pario.errors import ParioError


class SettingsError(ParioError):
    """Names the file, the line (0: the file as a whole) and what was found and expected."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}" if line else f"{path}: {text}")
