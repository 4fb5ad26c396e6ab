"""Run a program under pario and say where its I/O time went.

The program's output, exit status and signals are its own; the report goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.advise import add_allow, allowed
from pario.cli.paths import path, path_text, staged_path_text
from pario.cli.report import show_recorded
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.launch import Settings
    from pario.settings import SettingsFile

MOST_REPETITIONS = 1000
HELP = "run a command and report its I/O"
_NO_ARGUMENTS = "record the names of programs without their arguments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario run``."""
    parser.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="DIR",
        help="log directory (default: run.pario, then run-2.pario, ...)",
    )
    parser.add_argument(
        "--html",
        type=path,
        metavar="FILE",
        help="where the HTML report goes (default: DIR/report.html)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON instead")
    parser.add_argument("--all", action="store_true", help="report all findings, functions and files, not one screen")
    parser.add_argument("--no-report", action="store_true", help="only record; `pario report DIR` shows it later")
    parser.add_argument("--events-limit", metavar="SIZE", help="bytes of events per process, 0 for counters only (default 256M)")
    parser.add_argument("--files-limit", metavar="N", help="files per process with rows of their own (default 100000)")
    parser.add_argument("--no-arguments", action="store_false", dest="arguments", help=_NO_ARGUMENTS)
    parser.add_argument("--mpiio", action="store_true", help="run the program's MPI_File_* calls on pario's own MPI-IO")
    parser.add_argument(
        "--hint",
        action="append",
        default=[],
        metavar="[GLOB:]KEY=VALUE",
        help="a hint for pario's MPI-IO, for all files or those that match; may be repeated (docs/mpiio.md lists them)",
    )
    parser.add_argument(
        "--with",
        type=path,
        dest="file",
        metavar="FILE",
        help="settings of I/O: a pario.toml (docs/settings.md)",
    )
    parser.add_argument("--fix", action="store_true", help="run, find the settings that repair it, run again with them, and compare")
    parser.add_argument("--dry-run", action="store_true", help="with --fix: write the settings and stop before the second run")
    add_allow(parser, "with --fix: apply risky settings, too")
    parser.add_argument("--repeat", type=_times, default=1, metavar="N", help="run the command N times: DIR/1 to DIR/N, for pario compare")
    parser.add_argument(
        "--verify",
        action="append",
        default=[],
        type=path_text,
        metavar="GLOB",
        help="keep checksums of the output files that match, for pario compare --verify; may be repeated",
    )
    parser.add_argument(
        "--stage",
        action="append",
        default=[],
        type=staged_path_text,
        metavar="DIR=LOCAL",
        help="new files in DIR are beneath LOCAL, on this node, until the command has ended; may be repeated (docs/move.md)",
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the command and its arguments")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns its exit status, or dies of its signal."""
    from pario.launch import Settings, launch

    keys, words = allowed(arguments.allow)
    program = [*words, *arguments.program]
    command = program[1:] if program[:1] == ["--"] else program
    if not command:
        raise ParioError("no command given; expected: pario run [options] -- COMMAND [ARGUMENTS]")
    settings = Settings(
        output=arguments.output,
        events_limit=arguments.events_limit,
        files_limit=arguments.files_limit,
        arguments=arguments.arguments,
        mpiio=arguments.mpiio or bool(arguments.hint),
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
            raise ParioError(f"--{option.replace('_', '-')} belongs to --fix; expected pario run --fix ... -- COMMAND")
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


def _times(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_REPETITIONS:
        raise argparse.ArgumentTypeError(f"{text}; expected 1 to {MOST_REPETITIONS}")
    return int(text)


def _repeat(command: Sequence[str], settings: Settings, arguments: argparse.Namespace) -> int:
    """Runs until a run fails or all are done; reports on the one whose time is in the middle."""
    from pario.launch import Series

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
        print(f"{wording.plural(len(outcomes), 'run')} in {series.directory}: {times}; reported: {middle.directory.name}", file=sys.stderr)
    return outcomes[-1].finish()
