"""How far something is, for a person who waits for it: on standard error where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pario import wording
from pario.wording import printable

#: Told how many of how many bytes are done.
Show = Callable[[int, int], object]

#: Seconds after which a library speaks.
_LONG = 3.0


def silent(done: int, whole: int) -> None:
    """Shows nothing."""


class Line:
    """How far a file is: a line on standard error where that is a terminal."""

    def __init__(self, path: str) -> None:
        self._path = printable(path)
        self._shown = -1  # percent

    def show(self, done: int, whole: int) -> None:
        """So many of all bytes."""
        percent = 100 * done // whole if whole else 100
        if percent != self._shown and sys.stderr.isatty():
            self._shown = percent
            print(f"\r{self._path}: {percent} %", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Nothing of it stays."""
        if self._shown >= 0:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._shown = -1


class RateLine(Line):
    """The same with bytes per second and the time that is left, for what takes long."""

    def __init__(self, path: str, patience: float = 1.0) -> None:
        super().__init__(path)
        self._patience = patience  # seconds before anything is shown
        self._start, self._said = time.monotonic(), 0.0

    def show(self, done: int, whole: int) -> None:
        """So many of all bytes; at most a few times a second."""
        now = time.monotonic()
        if not done or now - self._start < self._patience or now - self._said < 0.2 or not sys.stderr.isatty():
            return
        self._shown, self._said = 0, now
        rate = done / (now - self._start)
        left = wording.seconds(max(0, whole - done) / rate)
        text = f"{self._path}: {100 * done // max(whole, 1)} %, {wording.size(rate)}/s, {left} left"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def told(text: str, *, here: bool) -> Iterator[Show]:
    """What takes long in a library that a program calls; ``here``: in this process, one of several."""
    line = RateLine(text, _LONG)
    try:
        yield line.show if here else silent
    finally:
        line.clear()
