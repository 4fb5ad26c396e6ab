"""Join the subfiles of files (hint pario_subfiles) into single files that every program can
read."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from pario.cli.paths import path_text, require_path
from pario.errors import ParioError
from pario.progress import Line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario join``."""
    parser.add_argument(
        "files",
        nargs="+",
        type=path_text,
        metavar="FILE",
        help="a file that pario's MPI-IO wrote as subfiles; no process may have it open",
    )


def run(arguments: argparse.Namespace) -> int:
    """Joins one file after the other; stops at the first error."""
    from pario._native import join

    for path in arguments.files:
        require_path(path, "a file that pario's MPI-IO wrote as subfiles")
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
    """Lets Ctrl-C end the process at once instead of after the file; no data is lost."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
