"""Show many runs as one table, by the seconds that they lose: pario's own logs and Darshan logs of
a day, a user or a project."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_count, add_flag, add_value
from pario.cli.numbers import moment, seconds
from pario.cli.pages import write_page
from pario.cli.paths import path, path_text
from pario.cli.standard import until_reader_ends
from pario.cli.threshold import add_threshold, status_of_many
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import CountLine
from pario.publishing import write_text

if TYPE_CHECKING:
    from pario.see.analyze.survey import Selection, Survey

_SORTS = ("lost", "io", "wall")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario survey``."""
    parser.add_argument(
        "logs",
        nargs="+",
        type=path_text,
        metavar="LOGS",
        help="logs, directories (searched to the bottom), or patterns in quotes; several Darshan"
        " logs of one job are one run",
    )
    parser.add_argument(
        "--sort",
        choices=_SORTS,
        default="lost",
        help="sort by seconds lost (default), seconds of I/O or wall time",
    )
    _add_filters(parser)
    add_value(parser, "--html", path, "FILE", "also write an HTML file")
    for name, content in (("csv", "a line for each run"), ("json", "docs/survey.md")):
        parser.add_argument(
            f"--{name}",
            type=path_text,
            metavar="FILE",
            help=f"also write {name.upper()} ({content}); - for standard output, without the table",
        )
    add_flag(parser, "--all", "show all runs, not one screen")
    add_count(
        parser,
        "--jobs",
        None,
        "processes that read logs (default: as many as pay, at most one per processor)",
    )
    add_threshold(parser, "any run")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    for name, meaning in (
        ("user", "of this user"),
        ("program", "of this program"),
        ("rule", "with this finding (docs/findings.md)"),
    ):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar=name[0].upper(),
            help=f"only runs {meaning}; * and ? match any characters; may be repeated",
        )
    parser.add_argument(
        "--since",
        type=moment,
        default=0.0,
        metavar="DATE",
        help="only runs that started at 2026-11-30 or 2026-11-30T18:00 (UTC) or later, or within"
        " the last days (7d)",
    )
    add_value(parser, "--min-seconds", seconds, "S", "only runs that lose at least S seconds", 0.0)


def run(arguments: argparse.Namespace) -> int:
    """Prints the survey; the exit status is 130 if it was interrupted."""
    if arguments.csv == arguments.json == "-":
        raise ParioError("--csv - and --json -; expected one of them on standard output")
    try:
        found = _survey(arguments)
        _write(found, arguments)
    except KeyboardInterrupt:
        print_note("pario survey: interrupted; no file was left half written")
        return wording.INTERRUPTED
    return _status(found, arguments)


def _survey(arguments: argparse.Namespace) -> Survey:
    from pario.see.survey import survey

    with CountLine("pario: reading logs") as line:
        return survey(
            arguments.logs, _selection(arguments), arguments.sort, arguments.jobs, line.show
        )


def _selection(arguments: argparse.Namespace) -> Selection:
    from pario.see.analyze.rules import RULES
    from pario.see.analyze.survey import Selection

    selection = Selection(
        users=tuple(arguments.user),
        programs=tuple(arguments.program),
        rules=tuple(arguments.rule),
        since=arguments.since,
        least_lost=arguments.min_seconds,
    )
    names = [rule.name for rule in RULES]
    if unknown := selection.unknown_rules(names):
        raise ParioError(f"--rule {unknown[0]}; expected one of {', '.join(sorted(names))}")
    return selection


def _write(found: Survey, arguments: argparse.Namespace) -> None:
    """Prints the table, and writes the files."""
    from pario.see.report import csv, json

    texts = {"csv": csv.render_survey, "json": json.render_survey}
    on_output = [name for name in texts if getattr(arguments, name) == "-"]
    with until_reader_ends():
        if on_output:
            sys.stdout.write(texts[on_output[0]](found))
        else:
            from pario.cli.console import make_console
            from pario.see.report import survey as page

            page.render(found, make_console(sys.stdout), all=arguments.all)
    for name, render in texts.items():
        target = getattr(arguments, name)
        if target and target != "-":
            write_text(Path(target), render(found), f"{name.upper()} survey")
    if arguments.html:
        from pario.see.report.html import survey as html_page

        write_page(arguments.html, html_page.render(found, arguments.logs), "survey")
        if not on_output:
            print(f"HTML survey: {arguments.html}")


def _status(found: Survey, arguments: argparse.Namespace) -> int:
    """The exit status: 2 if no log could be read, otherwise by --fail-above."""
    limit = arguments.fail_above
    if found.damaged == len(found.rows) > 0 and not found.left_out:
        raise ParioError(f"{found.rows[0].error} (none of the logs can be read)")
    if limit is None:
        return 0
    above = sum(limit.is_exceeded(row.lost, row.wall) for row in found.rows)
    return status_of_many("survey", above, found.not_judged + found.damaged, limit)
