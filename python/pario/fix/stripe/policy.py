"""How many stripes files should have: of the table in src/core/layout/policy.def, and for the files
of a recorded run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pario.fix.stripe.layout import Part, Wanted
from pario.see.analyze.stripes import Choice as Choice
from pario.see.analyze.stripes import Expected as Expected
from pario.see.analyze.stripes import choose as choose
from pario.see.analyze.stripes import files_of

if TYPE_CHECKING:
    from pario.see.tables.model import Job, Layout


@dataclass(frozen=True)
class Rule:
    """A row of the table."""

    name: str
    begin: int
    end: int
    writers: int
    least: int
    most: int
    per_target: int
    unit: int
    reason: str


def wanted(choice: Choice) -> Wanted:
    """A choice as a request."""
    return Wanted((Part(unit=choice.unit, count=choice.count),))


def rules() -> list[Rule]:
    """The whole table."""
    from pario import _native

    return [Rule(*row) for row in _native.stripe_rules()]


@dataclass(frozen=True)
class Advice:
    """A file of a recorded run: what it has, as far as the log knows, and what one like it should
    get next time."""

    path: str
    expected: Expected
    has: Layout | None
    choice: Choice

    @property
    def change(self) -> bool:
        """Whether that is something else: by more than a factor of one and a half, as half a stripe
        more is worth nobody's time."""
        if self.has is None:
            return False
        few, many = sorted((max(self.has.stripe_count, 1), self.choice.count))
        return many > 1.5 * few


def advise(job: Job, targets: int = 0) -> list[Advice]:
    """For each file that the job has written or read on storage, largest first."""
    found = [
        Advice(job.path(file), expected, _layout(job, file), choose(expected))
        for file, expected in files_of(job, targets)
    ]
    return sorted(found, key=lambda advice: advice.expected.size, reverse=True)


def _layout(job: Job, file: int) -> Layout | None:
    number = int(job.files["layout"][file])
    return job.layouts[number] if number >= 0 else None
