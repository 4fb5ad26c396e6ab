"""Compare two runs, or repetitions of them: wall time, I/O time, calls, bytes, files, findings,
output files.

A and B are run.pario directories, directories of repetitions (pario run --repeat), or Darshan logs.
docs/compare.md says how noise is judged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pario.cli.arguments import add_page
from pario.cli.pages import write_page
from pario.cli.paths import path, path_text
from pario.cli.standard import until_reader_ends
from pario.errors import ParioError
from pario.progress import progress

if TYPE_CHECKING:
    from pario.see.analyze.compare import Runs
    from pario.see.analyze.comparison import Comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario compare``."""
    parser.add_argument(
        "a",
        type=path,
        metavar="A",
        help="the run before: run.pario, a directory of repetitions, or a .darshan file",
    )
    parser.add_argument("b", type=path, metavar="B", help="the run after")
    add_page(parser, "comparison", "docs/compare.md", "findings and files")
    parser.add_argument(
        "--verify",
        action="append",
        default=[],
        type=path_text,
        metavar="GLOB",
        help=(
            "fail (status 1) unless these output files, recorded by pario run --verify, are"
            " identical; may be repeated"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the comparison; returns 1 if outputs to verify differ."""
    comparison = _compare(arguments.a, arguments.b, arguments.verify)
    show(
        comparison,
        html=arguments.html,
        as_json=arguments.json,
        everything=arguments.all,
        stream=sys.stdout,
    )
    return int(bool(arguments.verify) and (not comparison.outputs or comparison.outputs_differ))


def _compare(a: Path, b: Path, patterns: Sequence[str]) -> Comparison:
    """Compares the runs at two paths. Raises ParioError if they cannot be compared."""
    from pario.see.analyze.compare import compare

    with progress("pario: reading the logs"):
        comparison = compare(_runs("A", a, patterns), _runs("B", b, patterns))
    if patterns and comparison.outputs is None:
        raise ParioError(
            f"{a}, {b}: no checksums were recorded on both sides; expected runs of pario run"
            " --verify GLOB"
        )
    return comparison


def _runs(name: str, path: Path, patterns: Sequence[str]) -> Runs:
    from pario import outputs
    from pario.see.analyze import analyze
    from pario.see.analyze.compare import Runs, select_outputs
    from pario.see.tables import read
    from pario.see.tables.runs import runs_at

    places = runs_at(path)
    runs = Runs(
        name,
        str(path),
        [analyze(read([place])) for place in places],
        [outputs.read(place) for place in places],
    )
    return (
        select_outputs(runs, lambda file: any(fnmatchcase(file, pattern) for pattern in patterns))
        if patterns
        else runs
    )


def show(
    comparison: Comparison,
    html: Path | None,
    as_json: bool,
    stream: TextIO,
    everything: bool = False,
) -> None:
    """Renders a comparison."""
    with until_reader_ends():
        if as_json:
            from pario.see.report import json

            print(json.render_comparison(comparison), file=stream)
        else:
            from pario.cli.console import make_console
            from pario.see.report import comparison as page

            page.render(comparison, make_console(stream), all=everything)
    if html is None:
        return
    from pario.see.report.html import comparison as html_page

    write_page(html, html_page.render(comparison), "comparison")
    if not as_json:
        print(f"HTML comparison: {html}", file=stream)
