"""The number of stripes that files should have: kept sweeps of their file system, the table of
src/core/layout/policy.def, and advice for the files of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pario.fix.stripe.layout import Part, Wanted
from pario.see.analyze.stripes import Choice as Choice
from pario.see.analyze.stripes import Expected as Expected
from pario.see.analyze.stripes import choose as choose
from pario.see.analyze.stripes import files_of
from pario.see.analyze.sweeps import load_sweeps as load_sweeps

if TYPE_CHECKING:
    from pario.see.tables.model import Job, Layout


@dataclass(frozen=True)
class Rule:
    """A row of src/core/layout/policy.def."""

    name: str
    begin: int
    end: int
    writers: int
    least: int
    most: int
    per_target: int
    unit: int
    reason: str


def make_request(choice: Choice) -> Wanted:
    """Convert a choice to a request."""
    return Wanted((Part(unit=choice.unit, count=choice.count),))


def rules() -> list[Rule]:
    """Return all rows of the table."""
    from pario import _native

    return [Rule(*row) for row in _native.stripe_rules()]


@dataclass(frozen=True)
class Advice:
    """A file of a recorded run: its layout, if the log holds it, and the stripes recommended for
    the next run."""

    path: str
    expected: Expected
    has: Layout | None
    choice: Choice

    @property
    def change(self) -> bool:
        """True if the recommended number of stripes differs from the present one by more than a
        factor of 1.5; smaller differences are not worth the change."""
        if self.has is None:
            return False
        few, many = sorted((max(self.has.stripe_count, 1), self.choice.count))
        return many > 1.5 * few


def advise(job: Job, targets: int = 0) -> list[Advice]:
    """Advise on each file that the job wrote to storage or read from it, largest first."""
    sweeps = load_sweeps()
    found = [
        Advice(job.path(file), expected, _layout(job, file), choose(expected, sweeps))
        for file, expected in files_of(job, targets)
    ]
    return sorted(found, key=lambda advice: advice.expected.size, reverse=True)


def _layout(job: Job, file: int) -> Layout | None:
    number = int(job.files["layout"][file])
    return job.layouts[number] if number >= 0 else None
