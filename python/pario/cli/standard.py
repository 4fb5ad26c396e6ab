"""The standard streams of the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TextIO, cast


class Patient:
    """Standard error, on which nothing fails: where it is closed or full there is nobody to tell,
    and a program that runs under pario keeps its exit status. Descriptor 2 stays what it is, for
    the program.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or _nowhere()

    def write(self, text: str) -> int:
        """As of any stream of text; what cannot be written is gone."""
        try:
            return self._stream.write(text)
        except OSError:
            self._stream = _nowhere()
            return len(text)

    def flush(self) -> None:
        """Writes what is held back, or forgets it."""
        try:
            self._stream.flush()
        except OSError:
            self._stream = _nowhere()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare() -> None:
    """Lets standard error be patient from now on, and standard output be there where it was
    closed."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if not isinstance(sys.stderr, Patient):
        sys.stderr = cast(TextIO, Patient(sys.stderr))


def silence_output() -> None:
    """What is left to be written to standard output goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
