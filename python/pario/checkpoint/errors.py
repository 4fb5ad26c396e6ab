"""The errors of checkpoints."""

from __future__ import annotations

from pario.errors import ParioError


class CheckpointError(ParioError):
    """A checkpoint that cannot be written or read.

    The text names the array, the rank and the extent, or the file. Errors of collective calls are
    raised on all ranks.
    """


class DamageError(CheckpointError):
    """Compressed bytes that cannot be decompressed. ``text``: without the path."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.text = text
