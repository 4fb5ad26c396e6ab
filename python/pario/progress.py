"""Progress on standard error, for a user who waits; only where standard error is a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pario import wording
from pario.errors import ParioError
from pario.interrupts import check
from pario.wording import printable

#: Receives the bytes done so far and the bytes of the whole work.
Show = Callable[[int, int], object]

#: Seconds after which a library shows progress.
_LONG = 3.0
#: Seconds after which a command shows progress.
_PATIENCE = 1.0
#: Seconds between two updates of a line.
_PAUSE = 0.2


def silent(done: int, whole: int) -> None:
    """A :data:`Show` that shows no progress."""


class Line:
    """A line with the progress of a file in percent."""

    def __init__(self, path: str) -> None:
        self._path = printable(path)
        self._shown = -1  # percent

    def show(self, done: int, whole: int) -> None:
        """Shows the percentage when it has changed."""
        percent = 100 * done // whole if whole else 100
        if percent != self._shown and sys.stderr.isatty():
            self._shown = percent
            print(f"\r{self._path}: {percent} %", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erases the line."""
        if self._shown >= 0:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._shown = -1


class CountLine:
    """A line with the steps of long work that are done; a context manager that erases it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start, self._updated = time.monotonic(), 0.0

    def __enter__(self) -> CountLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._updated:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def show(self, done: int, whole: int) -> None:
        """Shows the steps and the remaining time, at most five times a second."""
        now = time.monotonic()
        if now - self._start < _PATIENCE or now - self._updated < _PAUSE or not done:
            return
        if not sys.stderr.isatty():
            return
        self._updated = now
        left = wording.seconds((whole - done) * (now - self._start) / done)
        text = f"{self._text}: {wording.count(done)} of {wording.count(whole)}, {left} left"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class RateLine(Line):
    """A line with percent, bytes per second and remaining time, for long work."""

    def __init__(self, path: str, patience: float = _PATIENCE) -> None:
        super().__init__(path)
        self._patience = patience  # seconds before the line appears
        self._start, self._updated = time.monotonic(), 0.0

    def show(self, done: int, whole: int) -> None:
        """Shows the progress, at most five times a second."""
        now = time.monotonic()
        if (
            not done
            or now - self._start < self._patience
            or now - self._updated < _PAUSE
            or not sys.stderr.isatty()
        ):
            return
        self._shown, self._updated = 0, now
        rate = done / (now - self._start)
        left = wording.seconds(max(0, whole - done) / rate)
        text = f"{self._path}: {100 * done // max(whole, 1)} %, {wording.size(rate)}/s, {left} left"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def show_long_work(text: str, *, here: bool) -> Iterator[Show]:
    """Shows progress of a library call that takes more than a few seconds.

    ``here``: True in the process that shows it, one of several.
    """
    line = RateLine(text, _LONG)
    try:
        yield line.show if here else silent
    finally:
        line.clear()


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Shows ``text`` while the body of a command takes more than a second, then erases it."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(text)
    timer = threading.Timer(_PATIENCE, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextmanager
def show_progress(path: str) -> Iterator[Show]:
    """Shows the progress of a command's body, and raises a postponed interrupt there; OSErrors of
    the body become ParioErrors."""
    line = RateLine(path)

    def show(done: int, whole: int) -> None:
        check()
        line.show(done, whole)

    try:
        yield show
    except BrokenPipeError:
        raise  # the reader of standard output has ended
    except OSError as error:
        named = f"{printable(os.fsdecode(error.filename))}: " if error.filename else ""
        raise ParioError(f"{named}{printable(str(error.strerror or error))}") from error
    finally:
        line.clear()
