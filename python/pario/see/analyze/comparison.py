"""What comparing two runs finds. Plain data, JSON-able by ``dataclasses.asdict``."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from pario.see.analyze.model import Split
from pario.see.analyze.noise import Noise

Unit = Literal["seconds", "count", "bytes"]
Change = Literal["gone", "smaller", "same", "larger", "new"]
OutputState = Literal["identical", "differs", "only in A", "only in B", "not written", "varies"]


@dataclass(frozen=True)
class Sample:
    """One figure of all repetitions of a run, in their order."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one; of an even number the mean of the two in the middle."""
        return float(median(self.values))

    @property
    def spread(self) -> float:
        """Between the least and the most."""
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
        """B's part of A's that is more (0.5: half as much again) or less (-0.5: half); infinite
        where A has none."""
        a, b = self.a.median, self.b.median
        return 0.0 if a == b else (b - a) / a if a else float("inf")


@dataclass(frozen=True)
class FileChange:
    """One file in both sides: medians over repetitions; seconds are those of the mean rank that
    uses it."""

    path: str  # relative to the directory of the run where it lies below it
    seconds_a: float
    seconds_b: float
    calls_a: int
    calls_b: int
    bytes_a: int
    bytes_b: int
    system_writes_a: int  # by pario's MPI-IO and beneath buffers; 0 where another wrote
    system_writes_b: int

    @property
    def saved(self) -> float:
        """Seconds that B needs less."""
        return self.seconds_a - self.seconds_b


@dataclass(frozen=True)
class FindingChange:
    """One cause in both sides: seconds lost, median over repetitions, 0 where it was not found."""

    rule: str
    title: str  # of A, or where it is new, of B
    seconds_a: float
    seconds_b: float
    change: Change


@dataclass(frozen=True)
class OutputChange:
    """One output file of both sides, by checksum."""

    path: str
    state: OutputState
    size_a: int  # -1: not there
    size_b: int


@dataclass(frozen=True)
class Side:
    """A or B."""

    name: str
    source: str
    command: str
    runs: int
    ranks: int
    exit_status: int | None  # of the run that failed, if one did
    settings: tuple[tuple[str, str], ...]
    split: Split  # of the median run


@dataclass(frozen=True)
class Comparison:
    """All that a page about two runs shows."""

    sentence: str
    certainty: str  # what is known of noise, in a sentence
    a: Side
    b: Side
    measures: tuple[Measure, ...]
    findings: tuple[FindingChange, ...]  # most seconds first
    files: tuple[FileChange, ...]  # by seconds that changed, most first
    file_total: int
    outputs: tuple[OutputChange, ...] | None  # what differs first; None: not recorded on both sides
    messages: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Seconds of wall time that B needs less."""
        wall = self.measures[0]
        return wall.a.median - wall.b.median

    @property
    def outputs_differ(self) -> bool:
        """Whether a recorded output is not shown to be the same on both sides."""
        return any(output.state != "identical" for output in self.outputs or ())
