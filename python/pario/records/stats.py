"""Counts and times of a Loader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Waits for batches that are kept for percentiles.
_MOST_WAITS = 100_000


class Progress(NamedTuple):
    """The position of all ranks after a batch, and the batch's counts."""

    position: int
    #: The place of each record within the batch, of which failed records are left out.
    places: NDArray[Any]
    #: Records of the batch, with those that failed.
    whole: int
    bytes: int
    skipped: int
    #: The error of the first record that was skipped.
    error: str = ""

    @property
    def records(self) -> int:
        """Records that the batch has."""
        return len(self.places)

    def without(self, errors: list[str], kept: list[int]) -> Progress:
        """The progress without the records that filters left out, and those that a transform failed
        on, with these errors."""
        return self._replace(
            skipped=self.skipped + len(errors),
            error=self.error or next(iter(errors), ""),
            places=self.places[kept],
        )


@dataclass
class LoaderStats:
    """Counts and times of a Loader since its creation.

    Times are in seconds. ``waited``: waiting for batches other than the first of an epoch;
    ``worked``: between batches; ``first``: waiting for the first batches of all ``epochs`` begun.
    ``first_skipped``: the error of the first record that was skipped.
    """

    epochs: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    skipped: int = 0
    first_skipped: str = ""
    waited: float = 0.0
    worked: float = 0.0
    first: float = 0.0
    threads: int = 0
    waits: list[float] = field(default_factory=list, repr=False)

    @property
    def stalled(self) -> float:
        """The fraction of the time spent waiting, without the first batches."""
        return self.waited / (self.waited + self.worked) if self.waited else 0.0

    def percentile(self, percent: float) -> float:
        """A percentile of the waits for a batch.

        Parameters
        ----------
        percent : float
            From 0 to 100; 50 is the median.

        Returns
        -------
        float
            Seconds; 0 before the second batch.
        """
        waits = sorted(self.waits)
        return waits[min(len(waits) - 1, int(len(waits) * percent / 100))] if waits else 0.0

    def add_wait(self, seconds: float, first: bool) -> None:
        """Adds a wait for a batch; ``first``: for the first batch of an epoch."""
        if first:
            self.first += seconds
            self.epochs += 1
            return
        self.waited += seconds
        if len(self.waits) < _MOST_WAITS:
            self.waits.append(seconds)

    def add(self, progress: Progress) -> None:
        """Adds the counts of a batch."""
        self.batches += 1
        self.records += progress.records
        self.bytes += progress.bytes
        self.skipped += progress.skipped
        self.first_skipped = self.first_skipped or progress.error

    def __str__(self) -> str:
        first = self.first / max(1, self.epochs)
        seconds = self.first + self.waited + self.worked
        rate = (
            f"{self.records / seconds:,.0f} samples/s, {self.bytes / seconds / 1e6:,.1f} MB/s, "
            if seconds
            else ""
        )
        return (
            f"waited {self.stalled:.1%} of step time (first batch {first * 1e3:.1f} ms, then p50"
            f" {self.percentile(50) * 1e3:.2f} ms, p99 {self.percentile(99) * 1e3:.2f} ms),"
            f" {rate}{self.threads} threads" + (f", {self.skipped} skipped" if self.skipped else "")
        )
