"""Run a program under pario and report its I/O time.

The program's output, exit status and signals are its own; the report goes to standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.advise import parse_allowed
from pario.cli.options import add_options, chosen_variables
from pario.cli.report import show_recorded
from pario.errors import ParioError
from pario.messages import print_note

if TYPE_CHECKING:
    from pario.see.launch import Settings
    from pario.settings import SettingsFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario run``."""
    add_options(parser)
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND ...",
        help="the command and its arguments",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns its exit status, or dies of its signal."""
    from pario.see.launch import Settings, launch

    keys, words = parse_allowed(arguments.allow, arguments.program)
    program = [*words, *arguments.program]
    command = program[1:] if program[:1] == ["--"] else program
    if not command:
        raise ParioError("no command given; expected: pario run [options] -- COMMAND [ARGUMENTS]")
    settings = Settings(
        output=arguments.output,
        chosen=chosen_variables(arguments),
        hints=tuple(arguments.hint),
        verify=tuple(arguments.verify),
        stages=tuple(arguments.stage),
        file=_settings_file(arguments.file),
    )
    if arguments.fix:
        from pario.cli.fix import fix

        return fix(command, settings, arguments, keys)
    for option in ("dry_run", "allow"):
        if getattr(arguments, option):
            raise ParioError(
                f"--{option.replace('_', '-')} belongs to --fix; expected pario run --fix ... --"
                " COMMAND"
            )
    if arguments.repeat > 1:
        return _repeat(command, settings, arguments)
    outcome = launch(command, settings)
    if outcome.reports and not arguments.no_report:
        show_recorded(outcome.directory, arguments)
    return outcome.finish()


def _settings_file(path: Path | None) -> SettingsFile | None:
    if path is None:
        return None
    from pario.settings import load

    return load(path)


def _repeat(command: Sequence[str], settings: Settings, arguments: argparse.Namespace) -> int:
    """Runs until a run fails or all are done; reports on the one with the median time."""
    from pario.see.launch import Series

    series = Series(command, settings)
    outcomes = []
    for number in range(1, arguments.repeat + 1):
        outcomes.append(series.run(str(number)))
        if outcomes[-1].ending.status:
            break
    if not arguments.no_report:
        middle = sorted(outcomes, key=lambda outcome: outcome.seconds)[(len(outcomes) - 1) // 2]
        show_recorded(middle.directory, arguments)
    if not arguments.no_report and not arguments.json:
        times = ", ".join(wording.seconds(outcome.seconds) for outcome in outcomes)
        print_note(
            f"{wording.plural(len(outcomes), 'run')} in {series.directory}: {times}; reported:"
            f" {middle.directory.name}"
        )
    return outcomes[-1].finish()
