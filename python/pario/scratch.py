"""Temporary directories that are removed at the end."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pario.wording import BY_SIGNAL


def _end(number: int, _frame: object) -> None:
    raise SystemExit(BY_SIGNAL + number)


@contextmanager
def scratch(directory: Path, prefix: str, *, interrupts: bool = True) -> Iterator[Path]:
    """A new directory below another. It is removed afterwards, also if a signal ends the program
    (unless the signal is ignored, as under nohup).

    ``interrupts``: SIGINT ends the program, too; else it keeps its handler. For the main thread.
    Raises OSError if it cannot be created.
    """
    asking = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP, *([signal.SIGINT] if interrupts else []))
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, _end) for number in asking}
    try:
        root = Path(tempfile.mkdtemp(prefix=prefix, dir=directory.absolute()))
        try:
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)
            if root.exists():
                print(f"pario: {root} could not be removed", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
