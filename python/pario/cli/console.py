"""The console that prints pages on terminals and into pipes."""

from __future__ import annotations

import errno
import os
from typing import NoReturn, TextIO

from rich.console import Console


class _PageConsole(Console):
    """A console that leaves a closed pipe to its caller; that of rich exits with status 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Raises BrokenPipeError, as print does."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def make_console(stream: TextIO) -> Console:
    """A console for pages; its prints raise BrokenPipeError if ``stream`` has no reader left."""
    return _PageConsole(file=stream, highlight=False)
