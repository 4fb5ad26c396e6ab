"""Says what is being done, to a person who waits for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pario.errors import ParioError
from pario.progress import RateLine, Show
from pario.wording import printable

_PATIENCE = 1.0  # seconds before anything is shown


@contextmanager
def progress(text: str) -> Iterator[None]:
    """While the body runs longer than a second and standard error is a terminal: ``text`` there, erased afterwards."""
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
def shown(path: str) -> Iterator[Show]:
    """Progress on standard error while the body runs; an OSError is one for the user."""
    line = RateLine(path)
    try:
        yield line.show
    except BrokenPipeError:
        raise  # whoever read standard output has enough
    except OSError as error:
        named = f"{printable(os.fsdecode(error.filename))}: " if error.filename else ""
        raise ParioError(f"{named}{printable(str(error.strerror or error))}") from error
    finally:
        line.clear()
