"""Export a recorded run for other tools: Perfetto timelines, Parquet tables, JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pario.cli.arguments import add_logs, add_value
from pario.cli.paths import path, path_text
from pario.errors import ParioError
from pario.messages import print_note
from pario.publishing import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario export``."""
    add_logs(parser)
    parser.add_argument(
        "--perfetto",
        type=path,
        metavar="FILE",
        help="timeline for ui.perfetto.dev; compressed if FILE ends in .gz",
    )
    add_value(parser, "--parquet", path, "DIR", "one Parquet file per table")
    add_value(
        parser, "--json", path_text, "FILE", "the tables without events; - for standard output"
    )


def run(arguments: argparse.Namespace) -> int:
    """Writes the requested files."""
    if not (arguments.perfetto or arguments.parquet or arguments.json):
        raise ParioError(
            "nothing to export; expected at least one of --perfetto FILE, --parquet DIR, --json"
            " FILE"
        )
    from pario.see import export
    from pario.see.tables import read

    job = read(arguments.logs)
    for message in job.messages:
        print_note(f"pario export: {message}")
    if arguments.perfetto:
        export.perfetto(job, arguments.perfetto)
    if arguments.parquet:
        export.parquet(job, arguments.parquet)
    if arguments.json:
        _write(arguments.json, export.json(job))
    return 0


def _write(target: str, text: str) -> None:
    if target == "-":
        sys.stdout.write(text + "\n")
    else:
        write_text(Path(target), text + "\n")
