"""Report on recorded runs: pario's own logs or Darshan logs (several process logs of one job are
merged)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pario import wording
from pario.cli.arguments import add_logs, add_page
from pario.cli.follow import add_follow, follow
from pario.cli.pages import append_text, write_page
from pario.cli.standard import until_reader_ends
from pario.cli.threshold import add_threshold, status_of
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import progress

if TYPE_CHECKING:
    from pario.see.analyze.model import Analysis


#: Formats beside the terminal page and JSON.
_FORMATS = {"github": "annotations and a summary for GitHub Actions (docs/exit-status.md)"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario report``."""
    add_logs(parser, meaning="run.pario, or one or more .darshan files of one job")
    add_page(parser, "report", "docs/report-json.md", "findings, functions and files", _FORMATS)
    add_threshold(parser, "the run")
    add_follow(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the report on standard output; the exit status depends on --fail-above."""
    if arguments.follow:
        follow(arguments.logs, arguments.interval)
    analysis = show(
        arguments.logs,
        html=arguments.html,
        format=arguments.format or ("json" if arguments.json else "terminal"),
        everything=arguments.all,
        stream=sys.stdout,
    )
    if arguments.fail_above is None:
        return 0
    return status_of(
        "report",
        arguments.fail_above,
        analysis.seconds_lost,
        analysis.job.wall,
        analysis.verdict.is_complete,
    )


def show(
    logs: Sequence[Path], html: Path | None, format: str, stream: TextIO, everything: bool = False
) -> Analysis:
    """Reads, analyses and renders. ``format``: terminal, json or github. Returns the analysis."""
    analysis = _analyze(logs)
    _render(analysis, html, format, stream, everything)
    return analysis


def _analyze(logs: Sequence[Path]) -> Analysis:
    from pario.see.analyze import analyze
    from pario.see.symbols import resolve
    from pario.see.tables import read

    with progress("pario: reading the logs"):
        return analyze(resolve(read(logs)))


def _render(
    analysis: Analysis, html: Path | None, format: str, stream: TextIO, everything: bool
) -> None:
    with until_reader_ends():
        _print(analysis, format, stream, everything)
    if html is None:
        return
    from pario.see.report import html as page

    with progress("pario: writing the HTML report"):
        write_page(html, page.render(analysis), "report")
    if format == "terminal":
        print(f"HTML report: {html}", file=stream)


def _print(analysis: Analysis, format: str, stream: TextIO, everything: bool) -> None:
    if format == "json":
        from pario.see.report import json

        print(json.render(analysis), file=stream)
    elif format == "github":
        from pario.see.report import github

        print(*github.commands(analysis, _repository()), sep="\n", file=stream)
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            append_text(Path(summary), github.summary(analysis), "summary")
    else:
        from pario.cli.console import make_console
        from pario.see.report import terminal

        terminal.render(analysis, make_console(stream), all=everything)


def _repository() -> str:
    """The directory of the checked-out repository, to which paths of annotations are relative."""
    return os.environ.get("GITHUB_WORKSPACE") or str(Path.cwd())


def show_recorded(
    directory: Path,
    arguments: argparse.Namespace,
    stream: TextIO | None = None,
    analysis: Callable[[], Analysis] | None = None,
) -> None:
    """Shows the report of a run that has just ended, by default on standard error; a report that
    fails must not hide the program's exit status. ``analysis`` returns the analysis of the run, or
    raises ParioError."""
    print(file=sys.stderr)  # the program may have left its last line open
    if not was_recorded(directory):
        return
    try:
        _render(
            analysis() if analysis else _analyze([directory]),
            arguments.html or directory / "report.html",
            "json" if arguments.json else "terminal",
            stream or sys.stderr,
            arguments.all,
        )
    except ParioError as error:
        print_note(f"pario: {error}")


def was_recorded(directory: Path) -> bool:
    """True if a run left logs; prints an error otherwise."""
    if any(directory.glob("*.plog")):
        return True
    print_note(
        f"pario: nothing was recorded in {directory}: the program cannot be traced, or its log"
        f" could not be written{_describe_io(directory)}"
    )
    return False


def _describe_io(directory: Path) -> str:
    """Return a clause on the bytes of the command by the kernel's counters; empty if the launcher
    has not read them."""
    try:
        io = json.loads((directory / "job.json").read_text("utf-8"))["io"]
        moved = [wording.size(int(io[name])) for name in ("rchar", "wchar")]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"; by the kernel's counters, its calls read {moved[0]} and wrote {moved[1]}"
