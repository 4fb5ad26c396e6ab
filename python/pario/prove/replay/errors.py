"""The errors of replays."""

from __future__ import annotations

from pario.errors import ParioError


class ReplayError(ParioError):
    """A log is incomplete for a replay, or a replay failed; the text names the cause and the
    remedy."""


class ApartError(ReplayError):
    """Ranks do not share a directory that they need; all of them raise it."""


class LateError(ReplayError):
    """A replay exceeded its time limit and was ended."""
