"""Make files that consist of subfiles (hint pario_subfiles) single files that every program can read."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from pario.cli.paths import path_text
from pario.errors import ParioError
from pario.progress import Line

HELP = "make a file that consists of subfiles one file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario join``."""
    parser.add_argument(
        "files",
        nargs="+",
        type=path_text,
        metavar="FILE",
        help="a file that pario's MPI-IO wrote as subfiles; nobody may have it open",
    )


def run(arguments: argparse.Namespace) -> int:
    """Joins one file after the other; the first that fails ends it."""
    from pario._native import join

    with _ended_by_interrupts():
        for path in arguments.files:
            line = Line(path)
            try:
                join(os.fsencode(path), line.show)
            except OSError as error:
                raise ParioError(error.strerror) from error
            finally:
                line.clear()
    return 0


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Ctrl-C ends the process at once instead of after the file; nothing is lost by that."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
