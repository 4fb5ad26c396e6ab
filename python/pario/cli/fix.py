"""``pario run --fix``: runs a program, finds settings that repair the lost time, runs it again with
them, compares."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pario.cli.advise import describe, write_settings
from pario.cli.report import show_recorded, was_recorded
from pario.errors import ParioError
from pario.wording import exit_status

if TYPE_CHECKING:
    from pario.see.analyze.advise import Advice
    from pario.see.launch import Outcome, Series, Settings

BEFORE, AFTER = "before", "after"


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
    first = loop.run(BEFORE, 1)
    advice = None if first.ending.status else loop.advise(first)
    if advice is None or not advice.acts:
        loop.explain_why_not(first, advice)
        return first.finish()
    loop.tell(advice)
    print(f"pario: the settings are in {loop.file}", file=sys.stderr)
    if arguments.dry_run:
        print(
            f"pario: not run again (--dry-run). To use them: {loop.command_with_settings}",
            file=sys.stderr,
        )
        return first.finish()
    last = loop.run_again()
    loop.compare(last)
    return last.finish()


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

    def run(self, side: str, number: int, settings: Settings | None = None) -> Outcome:
        """Runs the command for one side."""
        return self.series.run(f"{side}/{number}" if self.arguments.repeat > 1 else side, settings)

    def advise(self, first: Outcome) -> Advice | None:
        """Finds the settings for the findings of the first run, and writes them to a file. Prints
        an error and returns None if its logs are unusable."""
        from pario.see.analyze import analyze
        from pario.see.analyze.advise import advise, render
        from pario.see.tables import read

        if not was_recorded(first.directory):
            return None
        try:
            analysis = analyze(read([first.directory]))
            advice = advise(analysis, self.allowed)
            write_settings(self.file, render(analysis, advice))
        except ParioError as error:
            print(f"pario: {error}", file=sys.stderr)
            return None
        return advice

    def explain_why_not(self, first: Outcome, advice: Advice | None) -> None:
        """Prints the report of the first run, and the reason why there was no second."""
        if not self.arguments.no_report:
            show_recorded(first.directory, self.arguments)
        if first.ending.status:
            print(
                f"pario: the program failed ({exit_status(first.ending.status)}): nothing is"
                " repaired, it is not run again",
                file=sys.stderr,
            )
        elif advice is not None:
            self.tell(advice)
            print("pario: the command is not run again", file=sys.stderr)

    def tell(self, advice: Advice) -> None:
        """Prints the findings that the settings repair, and the others."""
        for line in describe(advice):
            print(line, file=sys.stderr)

    def run_again(self) -> Outcome:
        """Runs with the settings, and in between the further runs without, so that a drift of the
        machine affects both sides."""
        from pario.settings import load, merge_settings

        repaired = replace(self.settings, file=merge_settings(self.settings.file, load(self.file)))
        last = self.run(AFTER, 1, repaired)
        for number in range(2, self.arguments.repeat + 1):
            if last.ending.status or self.run(BEFORE, number).ending.status:
                break
            last = self.run(AFTER, number, repaired)
        return last

    def compare(self, last: Outcome) -> None:
        """Prints the comparison and the next command. An error here must not hide the program's
        exit status."""
        from pario.cli.compare import compare_runs, show

        print(file=sys.stderr)
        try:
            before, after = ((side, self.series.directory / side) for side in (BEFORE, AFTER))
            comparison = compare_runs(before, after, subject="The repaired run")
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
        if last.ending.status:
            print(
                f"pario: with these settings the program failed: {exit_status(last.ending.status)}",
                file=sys.stderr,
            )
        elif comparison.outputs_differ:
            print(
                "pario: the outputs are not shown to be the same: look at them before you use these"
                " settings (--repeat 2 shows whether they differ from run to run anyway)",
                file=sys.stderr,
            )
        elif comparison.saved > 0:
            print(f"To use the settings: {self.command_with_settings}", file=sys.stderr)
