"""Makes docs/predictions.md: the gains that pario promised beside the gains that were measured.

Reads the rows of the last complete run of `bench/fix.py` (settings) and `bench/diagnosis.py`
(changes of the program) on each machine in bench/results, and contains no figures itself.

    python bench/predictions.py > docs/predictions.md
"""

from __future__ import annotations

import csv
import json
import math
import statistics
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from environment import RESULTS

from pario import wording
from pario.see.analyze.findings import RANGE

#: A gain below this share of the program's time is too small to compare a promise with.
LEAST_GAIN = 0.1
#: Ratios of promise and gain that count as right, and as wrong.
RIGHT, WRONG = 1.5, 3.0
HEAD = """\
# Predictions

This page compares the seconds that pario promises with those that a repair saves; use it to judge
how far to trust an advice. `python bench/predictions.py` makes it from the rows in `bench/results`;
it has no figures of its own.

Each program of the corpus (`tests/diagnosis`) has one I/O problem and a repaired twin. A promise
for settings is the gain that `pario advise` states ([settings.md](settings.md)): measured by
replays, or an estimate where the calls cannot be replayed. It is compared with the gain of the
same program with these settings. A promise for a change of the program is the estimate of the
finding ([findings.md](findings.md)), compared with the gain of the twin. Only programs whose repair
saves at least 10 % of their time count. Seconds are medians of the runs of each program. A ratio
from fewer than three runs may be noise, because one slow run moves the median.
"""


@dataclass(frozen=True)
class Prediction:
    """A promise beside the measured gain, in seconds."""

    rule: str
    program: str
    kind: str  # measured: by replays; estimate; change: of the program
    before: float  # the program's time
    promised: float
    gained: float
    runs: int  # of the program, whose median is its time

    @property
    def counts(self) -> bool:
        """True if the gain is large enough to compare with."""
        return self.gained >= LEAST_GAIN * self.before

    @property
    def ratio(self) -> float:
        """The promise relative to the gain."""
        return self.promised / self.gained

    @property
    def error(self) -> float:
        """The factor between promise and gain, at least 1; infinite without a promise."""
        return max(self.ratio, 1 / self.ratio) if self.promised > 0 else float("inf")


def read_last_run(results: Path, name: str) -> tuple[str, list[dict[str, str]]]:
    """Returns the directory and the rows of the last run recorded under a name."""
    for folder in sorted(results.glob("*/"), reverse=True):
        complete = {
            str(run["run"])
            for run in json.loads((folder / "env.json").read_text())["runs"]
            if run["benchmark"] == name and run["complete"]
        }
        for path in sorted(folder.glob(f"{name}*.csv"), reverse=True):
            with path.open(newline="") as file:
                rows = [row for row in csv.DictReader(file) if row["run"] in complete]
            if rows:
                return folder.name, [row for row in rows if row["run"] == rows[-1]["run"]]
    return "", []


def group_by_program(rows: Iterable[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Groups rows by program."""
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        groups[row["program"]].append(row)
    return groups


def find_median(rows: Iterable[dict[str, str]], column: str, **wanted: str) -> float | None:
    """Returns the median of a column over the rows with these values; None: there are none."""
    values = [
        float(row[column])
        for row in rows
        if all(row[key] == value for key, value in wanted.items())
    ]
    return statistics.median(values) if values else None


def list_settings(rows: Iterable[dict[str, str]]) -> Iterator[Prediction]:
    """Yields the promises for settings, from rows of bench/fix.py."""
    for program, of in group_by_program(rows).items():
        before, fixed = (find_median(of, "seconds", way=way) for way in ("bad", "fixed"))
        if before is not None and fixed is not None:
            promised = float(of[0]["promised_seconds"])
            rule = of[0]["rule"] or "(no finding)"
            runs = sum(row["way"] == "bad" for row in of)
            yield Prediction(
                rule, program, of[0]["promise"], before, promised, before - fixed, runs
            )


def list_changes(rows: Iterable[dict[str, str]]) -> Iterator[Prediction]:
    """Yields the promises for changes of the program, from rows of bench/diagnosis.py."""
    for program, of in group_by_program(row for row in rows if row["tool"] == "pario").items():
        before = find_median(of, "plain_seconds", way="bad")
        twin = find_median(of, "plain_seconds", way="repaired")
        promised = find_median(of, "promised_seconds", way="bad")
        if before is None or twin is None or promised is None:
            continue
        first = next(row["first_finding"] for row in of if row["way"] == "bad")
        rule = "(no finding)" if first in ("none", "healthy") else first
        runs = sum(row["way"] == "bad" for row in of)
        yield Prediction(rule, program, "change", before, promised, before - twin, runs)


def summarize(name: str, predictions: list[Prediction], source: str) -> Iterator[str]:
    """Yields a section: totals, a table by rule, and all programs."""
    counted = [one for one in predictions if one.counts]
    yield f"\n## {name}\n"
    if not counted:
        yield "Nothing is recorded."
        return
    made = [one for one in counted if one.promised > 0]
    right = sum(one.error <= RIGHT for one in made)
    wrong = sum(one.error > WRONG for one in made)
    least = min(one.runs for one in counted)
    text = (
        f"Each program has {wording.plural(least, 'run')} or more."
        f" Of {len(counted)} programs whose repair saves at least 10 %, {len(made)} had a promise."
        f" Of the promises, {right} are within a factor of {RIGHT:g} of the gain, and {wrong}"
        f" beyond a factor of {WRONG:g} (`bench/results/{source}`)."
    )
    if estimates := [one for one in made if one.kind != "measured"]:
        inside = sum(one.error <= math.sqrt(RANGE) for one in estimates)
        text += (
            f" Of {len(estimates)} estimates, whose ranges span a factor of {RANGE:g}, {inside}"
            " ranges include the gain."
        )
    yield textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False) + "\n"
    yield "| rule | programs | median of promise/gain | worst |"
    yield "|---|---|---|---|"
    for rule in sorted({one.rule for one in made}):
        of = [one for one in made if one.rule == rule]
        worst = max(of, key=lambda one: one.error)
        middle = statistics.median(one.ratio for one in of)
        yield f"| {rule} | {len(of)} | {middle:.2f} | {worst.ratio:.2f} ({worst.program}) |"
    yield "\n| program | rule | promise | time, s | promised, s | gained, s | promise/gain |"
    yield "|---|---|---|---|---|---|---|"
    for one in sorted(counted, key=lambda one: (one.rule, one.program)):
        yield (
            f"| {one.program} | {one.rule} | {one.kind} | {one.before:.2f} | {one.promised:.2f} |"
            f" {one.gained:.2f} | {one.ratio:.2f} |"
        )
    small = len(predictions) - len(counted)
    if small:
        yield f"\nOf the measured programs, {small} save less than 10 %, or nothing."


def render(results: Path) -> str:
    """Returns the page."""
    settings, changes = (read_last_run(results, name) for name in ("fix", "diagnosis"))
    lines = [
        HEAD.rstrip(),
        *summarize("Settings", list(list_settings(settings[1])), settings[0]),
        *summarize("Changes of the program", list(list_changes(changes[1])), changes[0]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render(RESULTS))
