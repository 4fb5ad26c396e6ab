"""The standard streams of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from pario.messages import print_line


class Patient:
    """Standard error that ignores errors, such as a closed stream or a full disk, so that a program
    under pario keeps its exit status. Descriptor 2 is unchanged, for the program.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or _nowhere()

    def write(self, text: str) -> int:
        """Writes a text; after an error this and all later ones are discarded."""
        try:
            return self._stream.write(text)
        except OSError:
            self._stream = _nowhere()
            return len(text)

    def flush(self) -> None:
        """Writes buffered text, or discards it after an error."""
        try:
            self._stream.flush()
        except OSError:
            self._stream = _nowhere()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare() -> None:
    """Makes standard error Patient, and opens a missing standard output on /dev/null."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if not isinstance(sys.stderr, Patient):
        sys.stderr = cast(TextIO, Patient(sys.stderr))


@contextmanager
def until_reader_ends() -> Iterator[None]:
    """Flushes the text that the block prints; if the reader of standard output has ended, ends the
    block there and discards all later text, so that the command keeps its exit status."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # `pario report ... | head`
        silence_output()


def print_finding(text: str) -> None:
    """Prints a line of a search that continues without a reader, for its exit status."""
    with until_reader_ends():
        print_line(text)


def silence_output() -> None:
    """Discards the text that is still to be written to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
