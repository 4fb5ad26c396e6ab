"""Judgement of a diagnosis: compares pario's statements about a run with the label in the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pario.see.analyze import analyze
from pario.see.analyze.model import Analysis
from pario.see.tables import read
from tests.diagnosis.corpus import Program

#: A finding below this share of the run is not one for which a program is changed.
SIGNIFICANT = 0.02
#: Verdicts that are no plain "healthy", even without a finding.
_DOUBTS = ("unknown", "io")


@dataclass(frozen=True)
class Diagnosis:
    """The statements of a tool about one run."""

    rules: tuple[str, ...]  # of significant findings, the most expensive first
    seconds: tuple[float, ...]  # that each of them promises
    wall: float
    healthy: bool  # the tool says that nothing need be changed
    sentence: str
    ranked: bool = True  # False: the order of the findings means nothing

    @property
    def first(self) -> str:
        """The rule of the first finding; "healthy" or "none" if there is no finding."""
        return self.rules[0] if self.rules else "healthy" if self.healthy else "none"

    def is_right(self, program: Program) -> bool:
        """True if the first finding names the program's problem."""
        return bool(set(self.rules[:1] if self.ranked else self.rules) & set(program.rules))

    def promise(self, program: Program) -> float:
        """Returns the seconds that a repair of the program's problem would save."""
        pairs = zip(self.rules, self.seconds, strict=True)
        return sum(seconds for rule, seconds in pairs if rule in program.rules)


def diagnose(log: Path) -> Diagnosis:
    """Returns pario's diagnosis of a recorded run."""
    return judge(analyze(read([log])))


def judge(analysis: Analysis) -> Diagnosis:
    """Returns the statements of an analysis that the corpus judges."""
    wall = analysis.job.wall
    found = [finding for finding in analysis.findings if finding.seconds > SIGNIFICANT * wall]
    return Diagnosis(
        rules=tuple(finding.rule for finding in found),
        seconds=tuple(finding.seconds for finding in found),
        wall=wall,
        healthy=not found and analysis.verdict.bound not in _DOUBTS,
        sentence=analysis.verdict.sentence,
    )
