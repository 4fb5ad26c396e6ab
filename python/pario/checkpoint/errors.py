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


def require_positive(name: str, value: object) -> None:
    """Raises CheckpointError unless a parameter is a whole number from 1 on."""
    if not hasattr(value, "__index__") or value.__index__() < 1:
        raise CheckpointError(f"{name}={value!r}; expected a number from 1 on")
