"""``pario run --fix``: runs a program, finds settings that repair the lost time, runs it again with
them and once more as it is, and compares."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.advise import describe, write_settings
from pario.cli.report import show_recorded, was_recorded
from pario.errors import ParioError
from pario.wording import exit_status

if TYPE_CHECKING:
    from pario.see.analyze.advise import Advice
    from pario.see.analyze.comparison import Comparison
    from pario.see.analyze.model import Analysis
    from pario.see.launch import Outcome, Series, Settings

BEFORE, AFTER = "before", "after"
#: The first run counts no more if it takes this share longer than the same run after it.
SLOWER_AT_FIRST = 0.1


def fix(
    command: Sequence[str],
    settings: Settings,
    arguments: argparse.Namespace,
    allowed: Sequence[str],
) -> int:
    """Runs the loop. ``allowed``: keys of risky settings.

    The exit status is that of the last run with the settings, or of the first run if there was no
    other.
    """
    from pario.see.launch import Series

    loop = _Loop(Series(command, settings), command, settings, arguments, allowed)
    loop.announce()
    first = loop.run(BEFORE, 1)
    found = None if first.ending.status else loop.advise(first)
    if found is None or not found.advice.acts:
        loop.explain_why_not(first, found)
        return first.finish()
    loop.tell(found)
    print(f"pario: the settings are in {loop.file}", file=sys.stderr)
    if arguments.dry_run:
        print(
            f"pario: not run again (--dry-run). To use them: {loop.command_with_settings}",
            file=sys.stderr,
        )
        return first.finish()
    last = loop.run_again(first, found.analysis)
    loop.compare(last)
    return last.finish()


@dataclass(frozen=True)
class _Found:
    """The advice after the first run, and the lines on its measurement."""

    analysis: Analysis
    advice: Advice
    measured: Sequence[str]


@dataclass(frozen=True)
class _Loop:
    """One loop. Its runs are in ``before`` and ``after`` of a directory, with the settings and the
    comparison beside them."""

    series: Series
    command: Sequence[str]
    settings: Settings
    arguments: argparse.Namespace
    allowed: Sequence[str]

    @property
    def file(self) -> Path:
        """The file of the settings."""
        return self.series.directory / "pario.toml"

    @property
    def command_with_settings(self) -> str:
        """The command line that runs with the settings."""
        place = self.file
        if place.is_relative_to(Path.cwd()):
            place = place.relative_to(Path.cwd())
        return shlex.join(["pario", "run", "--with", str(place), "--", *self.command])

    def announce(self) -> None:
        """Prints how often the program will run, before its first run."""
        if self.arguments.dry_run:
            return
        times = self.arguments.repeat
        if times:
            each = wording.plural(times, "time")
            words = f"{each} as it is and {each} with settings"
        else:
            words = (
                "once as it is, once with settings, and if that is faster once more as it is, to"
                " separate the gain from noise and caches (--repeat 1: not)"
            )
        print(f"pario: the program will run {words}", file=sys.stderr)

    def run(self, side: str, number: int, settings: Settings | None = None) -> Outcome:
        """Runs the command for one side."""
        return self.series.run(side if self.arguments.repeat == 1 else f"{side}/{number}", settings)

    def advise(self, first: Outcome) -> _Found | None:
        """Finds the settings for the findings of the first run, and writes them to a file. Prints
        an error and returns None if its logs are unusable."""
        from pario.cli.measured import advise_by_replays
        from pario.see.analyze import analyze
        from pario.see.analyze.advise import render
        from pario.see.tables import read

        if not was_recorded(first.directory):
            return None
        try:
            job = read([first.directory])
            analysis = analyze(job)
            advice, lines = advise_by_replays(job, analysis, self.allowed, self.arguments.measure)
            write_settings(self.file, render(analysis, advice, lines))
        except ParioError as error:
            print(f"pario: {error}", file=sys.stderr)
            return None
        return _Found(analysis, advice, lines)

    def explain_why_not(self, first: Outcome, found: _Found | None) -> None:
        """Prints the report of the first run, and the reason why there was no second."""
        if not self.arguments.no_report:
            show_recorded(first.directory, self.arguments)
        if first.ending.status:
            print(
                f"pario: the program failed ({exit_status(first.ending.status)}): no settings are"
                " sought, it is not run again",
                file=sys.stderr,
            )
        elif found is not None:
            self.tell(found)
            print("pario: the command is not run again", file=sys.stderr)

    def tell(self, found: _Found) -> None:
        """Prints the measured remedies, the findings that the settings repair, and the others."""
        for line in (*found.measured, *describe(found.advice)):
            print(line, file=sys.stderr)

    def run_again(self, first: Outcome, analysis: Analysis) -> Outcome:
        """Runs with the settings, and between and after these runs as it is, so that a drift of the
        machine affects both sides. Returns the last run with the settings."""
        from pario.settings import load, merge_settings

        changed = replace(self.settings, file=merge_settings(self.settings.file, load(self.file)))

        def again(side: str, number: int) -> Outcome:
            equalise_caches(analysis)
            return self.run(side, number, changed if side == AFTER else None)

        last = again(AFTER, 1)
        if not self.arguments.repeat:
            if not last.ending.status and last.seconds < first.seconds:
                again(BEFORE, 2)
            return last
        for number in range(2, self.arguments.repeat + 1):
            if last.ending.status or again(BEFORE, number).ending.status:
                break
            last = again(AFTER, number)
        return last

    def compare(self, last: Outcome) -> None:
        """Prints the comparison and the next command. An error here must not hide the program's
        exit status."""
        from pario.cli.compare import show

        print(file=sys.stderr)
        try:
            comparison, remark = self._compare()
            page = self.arguments.html or self.series.directory / "compare.html"
            if not self.arguments.no_report:
                show(
                    comparison,
                    html=page,
                    as_json=self.arguments.json,
                    everything=self.arguments.all,
                    stream=sys.stderr,
                )
        except ParioError as error:
            print(f"pario: {error}", file=sys.stderr)
            return
        if self.arguments.json:
            return
        for line in (remark, self._conclusion(comparison, last)):
            if line:
                print(line, file=sys.stderr)

    def _compare(self) -> tuple[Comparison, str]:
        """Compares both sides. If the first run was slower than the same run after it, by caches or
        by the load of the machine, only the later one counts, and a remark says so."""
        from pario.cli.compare import compare_runs

        before, after = ((side, self.series.directory / side) for side in (BEFORE, AFTER))
        whole = compare_runs(before, after, subject="The run with settings")
        walls = whole.measures[0].a.values
        later = self.series.directory / BEFORE / "2"
        if self.arguments.repeat or len(walls) < 2 or walls[0] < (1 + SLOWER_AT_FIRST) * walls[1]:
            return whole, ""
        return compare_runs((BEFORE, later), after, subject="The run with settings"), (
            f"pario: the first run took {wording.seconds(walls[0])}, the same run later"
            f" {wording.seconds(walls[1])} (caches, or load of the machine): only the later one is"
            " compared"
        )

    def _conclusion(self, comparison: Comparison, last: Outcome) -> str:
        """The last line: what to do with the settings."""
        if last.ending.status:
            return (
                f"pario: with these settings the program failed: {exit_status(last.ending.status)}"
            )
        if comparison.outputs_differ:
            return (
                "pario: the outputs are not shown to be the same: look at them before you use these"
                " settings (--repeat 2 shows whether they differ from run to run anyway)"
            )
        if comparison.faster:
            return f"To use the settings: {self.command_with_settings}"
        return "pario: the settings are not recommended: no gain is shown"


def equalise_caches(analysis: Analysis) -> None:
    """Give the next run the caches of the first one: write the dirty pages of the run's files, and
    drop the pages of its files if it read them from storage."""
    from pario.copying import drop_from_cache

    for row in analysis.files:
        if row.stream or row.group or not (row.writes or (row.reads and analysis.cold)):
            continue
        with suppress(OSError):
            descriptor = os.open(row.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                (drop_from_cache if analysis.cold else os.fdatasync)(descriptor)
            finally:
                os.close(descriptor)
