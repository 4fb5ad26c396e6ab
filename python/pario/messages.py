"""Lines for the user, on standard output or on standard error.

Characters that cannot be displayed, which names of files may have, are escaped
(:func:`pario.wording.printable`).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pario.wording import printable


def print_line(text: str) -> None:
    """Prints a line of the result on standard output."""
    print(printable(text))


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines of the result."""
    for line in lines:
        print_line(line)


def print_note(text: str) -> None:
    """Prints a line about the work on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def print_json(document: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Prints a document on standard output. ``default`` as of :func:`json.dumps`."""
    print(json.dumps(document, indent=2, default=default))


@contextmanager
def warnings_as_notes(command: str) -> Iterator[None]:
    """Prints the warnings of the block as notes of a command, without a line of its source."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: printable(f"{command}: {message}") + "\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
