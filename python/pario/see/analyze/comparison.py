"""The result of comparing two runs. Plain data, JSON-able by ``dataclasses.asdict``."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from pario.see.analyze.model import Split
from pario.see.analyze.noise import Noise

Unit = Literal["seconds", "count", "bytes"]
Change = Literal["gone", "smaller", "same", "larger", "new"]
OutputState = Literal["identical", "differs", "only in A", "only in B", "not written", "varies"]


#: Relative changes of the wall time below which it counts as unchanged.
SAME_WALL = 0.005
#: More computation than this share of the wall time is not that of settings for I/O.
BUSY = 0.1


@dataclass(frozen=True)
class Sample:
    """One figure of all repetitions of a run, in their order."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median; of an even number of values the mean of the middle two."""
        return float(median(self.values))

    @property
    def spread(self) -> float:
        """The difference between the largest and the smallest value."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Measure:
    """One figure of both sides."""

    key: str
    name: str
    unit: Unit
    a: Sample
    b: Sample
    noise: Noise

    @property
    def change(self) -> float:
        """The relative change from A to B (0.5: half as much again, -0.5: half); infinite if A has
        0."""
        a, b = self.a.median, self.b.median
        return 0.0 if a == b else (b - a) / a if a else float("inf")


@dataclass(frozen=True)
class FileChange:
    """One file in both sides: medians over repetitions. Seconds are the mean over the ranks that
    use it."""

    path: str  # relative to the directory of the run if it lies below that
    seconds_a: float
    seconds_b: float
    calls_a: int
    calls_b: int
    bytes_a: int
    bytes_b: int
    system_writes_a: int  # by pario's MPI-IO and buffers; 0 for a file that these did not write
    system_writes_b: int

    @property
    def saved(self) -> float:
        """Seconds of A minus those of B."""
        return self.seconds_a - self.seconds_b


@dataclass(frozen=True)
class FindingChange:
    """One cause in both sides: seconds lost, median over repetitions, 0 without a finding."""

    rule: str
    title: str  # of A, or for a new one, of B
    seconds_a: float
    seconds_b: float
    change: Change


@dataclass(frozen=True)
class OutputChange:
    """One output file of both sides, by checksum."""

    path: str
    state: OutputState
    size_a: int  # -1: missing
    size_b: int


@dataclass(frozen=True)
class Side:
    """A or B."""

    name: str
    source: str
    command: str
    runs: int
    ranks: int
    exit_status: int | None  # of the failed run; None: none failed
    settings: tuple[tuple[str, str], ...]
    split: Split  # of the median run


@dataclass(frozen=True)
class Comparison:
    """The content of a page about two runs."""

    sentence: str
    certainty: str  # a sentence on noise
    a: Side
    b: Side
    measures: tuple[Measure, ...]
    findings: tuple[FindingChange, ...]  # most seconds first
    files: tuple[FileChange, ...]  # by seconds that changed, most first
    file_total: int
    outputs: tuple[OutputChange, ...] | None  # differing first; None: not recorded on both sides
    messages: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Wall seconds of A minus those of B."""
        wall = self.measures[0]
        return wall.a.median - wall.b.median

    @property
    def faster(self) -> bool:
        """True if B takes less wall time by more than the known noise, and no more I/O time."""
        wall = self.measures[0]
        io = next((measure for measure in self.measures if measure.key == "io"), None)
        return (
            wall.noise != "within"
            and wall.change <= -SAME_WALL
            and (io is None or io.b.median <= io.a.median)
        )

    @property
    def slowed_by_computation(self) -> bool:
        """True if B is a single run that took longer in its computation alone, such as on a busy
        machine: much longer, or with less time in I/O. It says nothing about settings for I/O."""
        wall = self.measures[0]
        found = {measure.key: measure for measure in self.measures}
        compute, io = found.get("compute"), found.get("io")
        if compute is None or wall.noise != "unknown":
            return False
        more = compute.b.median - compute.a.median
        faster_io = io is not None and io.b.median < io.a.median
        is_much = more >= BUSY * wall.a.median
        return more > 0 and -self.saved <= more and (is_much or faster_io)

    @property
    def outputs_differ(self) -> bool:
        """True unless every recorded output is the same on both sides."""
        return any(output.state != "identical" for output in self.outputs or ())
