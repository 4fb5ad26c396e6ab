"""Replays with settings beside replays without: the one judgement of both ``pario tune`` and
``pario advise``."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pario.see.analyze.comparison import Sample
from pario.see.analyze.noise import LEAST_RUNS, noise

#: The least gain of a setting, as a share of the original's seconds; with fewer than LEAST_RUNS
#: replays it must be larger.
LEAST_GAIN = 0.03
LEAST_UNCERTAIN_GAINS = {1: 0.2, 2: 0.1}
#: A remedy that takes this share longer in few replays may still be faster.
UNCLEAR = 0.25


@dataclass(frozen=True)
class Pairs:
    """The seconds of replays with settings, and of those without beside them."""

    seconds: Sample
    original: Sample

    @property
    def ratio(self) -> float:
        """The seconds relative to those without settings; infinite if these are not known."""
        return self.seconds.median / self.original.median if self.original.median else inf

    @property
    def range(self) -> tuple[float, float]:
        """The largest and the smallest ratio of a round."""
        pairs = zip(self.seconds.values, self.original.values, strict=True)
        ratios = [seconds / original for seconds, original in pairs if original]
        return (max(ratios), min(ratios)) if ratios else (self.ratio, self.ratio)

    @property
    def pays(self) -> bool:
        """True if the settings are faster beyond noise."""
        count = len(self.seconds.values)
        if self.ratio > 1 - LEAST_UNCERTAIN_GAINS.get(count, LEAST_GAIN):
            return False
        if count >= LEAST_RUNS:
            return noise(self.seconds.values, self.original.values) == "beyond"
        return max(self.seconds.values) < min(self.original.values)

    @property
    def verdict(self) -> str:
        """Why the settings do not pay, in words."""
        if len(self.seconds.values) < LEAST_RUNS and self.ratio <= 1 + UNCLEAR:
            return "not shown to be faster"
        return "not faster" if self.ratio > 1 - LEAST_GAIN else "not faster beyond noise"
