"""The error of checkpoints."""

from __future__ import annotations

from pario.errors import ParioError


class CheckpointError(ParioError):
    """A checkpoint that cannot be written or read.

    The text names the array, the rank and the extent, or the file. Errors of collective calls are
    raised on all ranks.
    """
