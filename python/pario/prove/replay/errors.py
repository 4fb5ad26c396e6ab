"""What goes wrong with replays."""

from __future__ import annotations

from pario.errors import ParioError


class ReplayError(ParioError):
    """A log that does not hold what a replay needs, or a replay that could not be performed; says
    what is missing and what to do."""


class ApartError(ReplayError):
    """Ranks that do not share a directory which they need; all of them raise it."""


class LateError(ReplayError):
    """A replay that was ended because it took longer than it may."""
