"""``pario run --fix``: runs a program, finds settings that repair the lost time, runs it again with
them and once more as it is, and compares."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pario import wording
from pario.cli.advise import describe
from pario.cli.report import show_recorded, was_recorded
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import progress
from pario.publishing import write_text
from pario.wording import exit_status

if TYPE_CHECKING:
    from pario.see.analyze.advise import Advice
    from pario.see.analyze.compare import Runs
    from pario.see.analyze.comparison import Comparison
    from pario.see.analyze.model import Analysis
    from pario.see.launch import Outcome, Series, Settings
    from pario.see.tables.model import Job

BEFORE, AFTER = "before", "after"
#: The first run counts no more if it takes this share longer than the same run after it.
SLOWER_AT_FIRST = 0.1


def fix(
    command: Sequence[str],
    settings: Settings,
    arguments: argparse.Namespace,
    allowed: Sequence[str],
) -> int:
    """Runs the loop. ``allowed``: keys of risky settings. JSON is alone on standard output: the
    program's output then goes to standard error.

    The exit status is that of the last run with the settings, of the first run if there was no
    other, or of the run that was interrupted.
    """
    from pario.see.launch import Series

    with _reserve_output() if arguments.json else nullcontext(sys.stderr) as stream:
        loop = _Loop(Series(command, settings), command, settings, arguments, allowed, stream)
        loop.announce()
        last = _run_all(loop)
    return last.finish()


def _run_all(loop: _Loop) -> Outcome:
    """Runs the program as often as needed, and prints the results. Returns the run that decides the
    exit status."""
    first = loop.run(BEFORE, 1)
    found = None if first.failed else loop.advise(first)
    if found is None or not found.advice.acts:
        loop.explain_why_not(first, found)
        return first.outcome
    loop.tell(found)
    print_note(f"pario: the settings are in {loop.file}")
    if loop.arguments.dry_run:
        print_note(f"pario: not run again (--dry-run). To use them: {loop.command_with_settings}")
        return first.outcome
    if first.has_emptied_pipe:
        print_note(
            "pario: not run again: the program read its standard input from a pipe, and another run"
            " would receive no bytes (expected a file: < FILE). To use the settings:"
            f" {loop.command_with_settings}"
        )
        return first.outcome
    before, after = loop.run_again(first)
    if interrupted := next((one for one in (*before, *after) if one.interrupted), None):
        print_note(f"pario: interrupted by {interrupted.interrupted}: the settings are not judged")
        return interrupted.outcome
    loop.compare(found, before, after)
    return after[-1].outcome


@contextmanager
def _reserve_output() -> Iterator[TextIO]:
    """Yields standard output for a document; meanwhile all other output to it, that of the program
    included, goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with os.fdopen(kept, "w", encoding="utf-8", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


@dataclass(frozen=True)
class _Run:
    """One run of the program."""

    outcome: Outcome

    @property
    def failed(self) -> bool:
        """True if it failed or was interrupted: then it may not have done all the work."""
        return bool(self.outcome.ending.status or self.outcome.ending.interrupted)

    @property
    def interrupted(self) -> str:
        """The name of the signal that interrupted it; empty: none."""
        number = self.outcome.ending.interrupted
        return signal.Signals(number).name if number else ""

    @cached_property
    def job(self) -> Job:
        """Its tables. Raises ParioError."""
        from pario.see.symbols import resolve
        from pario.see.tables import read

        return resolve(read([self.outcome.directory]))

    @cached_property
    def analysis(self) -> Analysis:
        """Its analysis. Raises ParioError."""
        from pario.see.analyze import analyze

        return analyze(self.job)

    @property
    def has_emptied_pipe(self) -> bool:
        """True if standard input is a pipe, and the command itself has read it. Raises
        ParioError."""
        from pario.see.launch.standard_input import is_pipe

        job = self.job
        pids, parents = set(job.processes["pid"].tolist()), job.processes["parent"].tolist()
        own = {number for number, parent in enumerate(parents) if parent not in pids}
        return is_pipe() and any(
            int(row["process"]) in own and job.path(int(row["file"])) == "<stdin>"
            for row in job.records[job.records["reads"] > 0]
        )


@dataclass(frozen=True)
class _Found:
    """The advice after the first run, and the lines on its measurement."""

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
    stream: TextIO  # of the report or the comparison

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
        return wording.command_line(["pario", "run", "--with", str(place), "--", *self.command])

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
        print_note(f"pario: the program will run {words}")

    def run(self, side: str, number: int, settings: Settings | None = None) -> _Run:
        """Runs the command for one side."""
        name = side if self.arguments.repeat == 1 else f"{side}/{number}"
        return _Run(self.series.run(name, settings))

    def advise(self, first: _Run) -> _Found | None:
        """Finds the settings for the findings of the first run, and writes them to a file. Prints
        an error and returns None if its logs are unusable."""
        from pario.cli.measured import advise_by_replays
        from pario.see.analyze.advise import render

        if not was_recorded(first.outcome.directory):
            return None
        try:
            advice, lines = advise_by_replays(
                first.job, first.analysis, self.allowed, self.arguments.measure
            )
            write_text(self.file, render(first.analysis, advice, lines))
        except ParioError as error:
            print_note(f"pario: {error}")
            return None
        return _Found(advice, lines)

    def explain_why_not(self, first: _Run, found: _Found | None) -> None:
        """Prints the report of the first run, and the reason why there was no second."""
        if not self.arguments.no_report:
            self._report(first)
        if first.failed:
            how = (
                f"was interrupted by {first.interrupted}"
                if first.interrupted
                else f"failed ({exit_status(first.outcome.ending.status)})"
            )
            print_note(f"pario: the program {how}: no settings are sought, it is not run again")
        elif found is not None:
            self.tell(found)
            print_note("pario: the command is not run again")

    def _report(self, run: _Run) -> None:
        """Prints the report of a run. An error here must not hide the program's exit status."""
        show_recorded(run.outcome.directory, self.arguments, self.stream, lambda: run.analysis)

    def tell(self, found: _Found) -> None:
        """Prints the measured remedies, the findings that the settings repair, and the others."""
        for line in (*found.measured, *describe(found.advice)):
            print_note(line)

    def run_again(self, first: _Run) -> tuple[list[_Run], list[_Run]]:
        """Runs with the settings, and between and after these runs as it is, so that a drift of the
        machine affects both sides. Returns the runs as it is and those with the settings; only the
        last of all may have failed."""
        from pario.settings import load, merge_settings

        changed = replace(self.settings, file=merge_settings(self.settings.file, load(self.file)))
        before, after = [first], list[_Run]()

        def again(side: list[_Run]) -> bool:
            """Run for a side; return False if the run failed."""
            equalise_caches(first.job, cold=first.analysis.cold)
            side.append(
                self.run(AFTER, len(after) + 1, changed)
                if side is after
                else self.run(BEFORE, len(before) + 1)
            )
            return not side[-1].failed

        going_on = again(after)
        if not self.arguments.repeat:
            if going_on and after[0].outcome.seconds < first.outcome.seconds:
                again(before)
            return before, after
        while going_on and len(after) < self.arguments.repeat:
            going_on = again(before) and again(after)
        return before, after

    def compare(self, found: _Found, before: list[_Run], after: list[_Run]) -> None:
        """Prints the comparison and the next command. An error here must not hide the program's
        exit status."""
        from pario.cli.compare import show

        print(file=sys.stderr)
        try:
            comparison, remark = self._compare(before, after)
            page = self.arguments.html or self.series.directory / "compare.html"
            if not self.arguments.no_report:
                show(
                    comparison,
                    html=page,
                    as_json=self.arguments.json,
                    everything=self.arguments.all,
                    stream=self.stream,
                )
        except ParioError as error:
            print_note(f"pario: {error}")
            return
        self._keep_judgement(found, before[0], comparison, after[-1].outcome)
        if self.arguments.json:
            return
        for line in (remark, self._conclusion(comparison, after[-1].outcome)):
            if line:
                print_note(line)

    def _keep_judgement(
        self, found: _Found, first: _Run, comparison: Comparison, last: Outcome
    ) -> None:
        """Keeps the settings if they did not pay: the next advice for such a run leaves them
        out. A run whose computation alone took longer does not judge them."""
        from pario.prove.tune.history import keep_rejected
        from pario.prove.tune.remedies import find_directory

        if last.ending.status or comparison.outputs_differ:
            return
        if comparison.slowed_by_computation and not comparison.faster:
            return
        lines = (line for proposal in found.advice.proposals for line in proposal.lines)
        tried = [(line.table, line.key, line.value) for line in lines if line.applied]
        with suppress(OSError, ParioError):
            directory = find_directory(first.analysis)
            keep_rejected(first.job, directory, tried, paid=comparison.faster)

    def _compare(self, before: list[_Run], after: list[_Run]) -> tuple[Comparison, str]:
        """Compares both sides. If the first run was slower than the same run after it, by caches or
        by the load of the machine, only the later one counts, and a remark says so."""
        from pario.see.analyze.compare import compare

        with progress("pario: reading the logs"):
            walls, remark = [run.analysis.job.wall for run in before], ""
            if (
                not self.arguments.repeat
                and len(walls) > 1
                and walls[0] >= (1 + SLOWER_AT_FIRST) * walls[1]
            ):
                remark = (
                    f"pario: the first run took {wording.seconds(walls[0])}, the same run later"
                    f" {wording.seconds(walls[1])} (caches, or load of the machine): only the later"
                    " one is compared"
                )
                before = before[1:]
            sides = (self._runs(BEFORE, before), self._runs(AFTER, after))
        return compare(*sides, subject="The run with settings"), remark

    def _runs(self, name: str, runs: Sequence[_Run]) -> Runs:
        from pario import outputs
        from pario.see.analyze.compare import Runs

        place = runs[0].outcome.directory if len(runs) == 1 else self.series.directory / name
        return Runs(
            name,
            str(place),
            [run.analysis for run in runs],
            [outputs.read(run.outcome.directory) for run in runs],
        )

    def _conclusion(self, comparison: Comparison, last: Outcome) -> str:
        """The last line: advice on the use of the settings."""
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
        if comparison.slowed_by_computation:
            return (
                "pario: no gain is shown, but the computation itself took longer, such as on a busy"
                " machine: the settings are not judged (--repeat 3 separates the gain from noise)"
            )
        return "pario: the settings are not recommended: no gain is shown"


def equalise_caches(job: Job, *, cold: bool) -> None:
    """Give the next run the caches of the first one: write the dirty pages of all files that the
    run wrote. ``cold``: it read them from storage, so drop the pages of all files that it used."""
    from pario.copying import drop_from_cache

    records = job.records
    used = (records["writes"] > 0) | (cold & (records["reads"] > 0))
    for file in sorted(set(records["file"][used].tolist())):
        path = Path(job.path(file))
        with suppress(OSError):
            if not path.is_file():  # a stream, a device, or removed
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                (drop_from_cache if cold else os.fdatasync)(descriptor)
            finally:
                os.close(descriptor)
