"""What goes wrong with checkpoints, said so that a user can put it right."""

from __future__ import annotations

from pario.errors import ParioError


class CheckpointError(ParioError):
    """A checkpoint that cannot be written or read. The text names array, rank and extent, or the file; all ranks raise it."""
