"""Time limits of replays: a replay that hangs, or is far slower than the one beside it, is
ended."""

from __future__ import annotations

from dataclasses import dataclass

#: The limit of the first replay as a multiple of the run's time, perhaps on another machine, and
#: the least limit in seconds; then the same relative to the slowest original.
FIRST_FACTOR, FIRST_LEAST = 20.0, 600.0
FACTOR, LEAST = 5.0, 60.0


def first_limit(run_seconds: float, asked: float | None) -> float:
    """The limit of the first replay, in seconds; ``asked``: the user's limit."""
    return asked or max(FIRST_LEAST, FIRST_FACTOR * run_seconds)


@dataclass
class Limits:
    """The limits of consecutive replays, in seconds."""

    run_seconds: float
    asked: float | None = None  # the user's limit
    slowest: float = 0.0  # of the originals so far

    def now(self) -> float:
        """The limit of the next replay."""
        return self.asked or (
            max(FACTOR * self.slowest, LEAST)
            if self.slowest
            else first_limit(self.run_seconds, None)
        )

    def original_took(self, seconds: float) -> None:
        """Record the whole time of a replay without settings."""
        self.slowest = max(self.slowest, seconds)
