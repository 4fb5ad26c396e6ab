"""How long a replay may take: what hangs, or is far slower than what it is compared with, is
ended."""

from __future__ import annotations

from dataclasses import dataclass

#: Of the first replay, as a multiple of what the run took, perhaps on another machine, and at
#: least; then of the slowest original.
FIRST_FACTOR, FIRST_LEAST = 20.0, 600.0
FACTOR, LEAST = 5.0, 60.0


def first_limit(run_seconds: float, asked: float | None) -> float:
    """Of a replay of which nothing is known but the run."""
    return asked or max(FIRST_LEAST, FIRST_FACTOR * run_seconds)


@dataclass
class Limits:
    """Of replays beside each other."""

    run_seconds: float
    asked: float | None = None  # what the user said
    slowest: float = 0.0  # of the originals that have been played

    def now(self) -> float:
        """Of the next one."""
        return self.asked or (
            max(FACTOR * self.slowest, LEAST)
            if self.slowest
            else first_limit(self.run_seconds, None)
        )

    def original_took(self, seconds: float) -> None:
        """A replay without settings, all of it."""
        self.slowest = max(self.slowest, seconds)
