"""Temporary directories that are removed at the end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pario.publishing import temporary_directory
from pario.wording import BY_SIGNAL


@contextmanager
def scratch(directory: Path, name: str, *, interrupts: bool = True) -> Iterator[Path]:
    """A new directory ``.NAME.NUMBER.pario-part`` in another. It is removed afterwards, also if a
    signal ends the program (unless the signal is ignored, as under nohup). Further signals do not
    interrupt the removal. The directory of a killed process remains; the next one with its name
    removes it (:mod:`pario.publishing`).

    ``interrupts``: SIGINT ends the program, too; else it keeps its handler. For the main thread.
    Raises OSError if it cannot be created.
    """
    asking = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP, *([signal.SIGINT] if interrupts else []))
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    received: list[int] = []

    def hold(number: int, _frame: object) -> None:
        received.append(number)

    def end(number: int, _frame: object) -> None:
        for other in asking:
            signal.signal(other, hold)
        raise SystemExit(BY_SIGNAL + number)

    root: Path | None = None
    before = {number: signal.signal(number, end) for number in asking}
    try:
        with temporary_directory(directory.absolute() / name) as root:
            try:
                yield root
            finally:
                for number in asking:
                    signal.signal(number, hold)
    finally:
        if root and root.exists():
            print(f"pario: {root} could not be removed", file=sys.stderr)
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise SystemExit(BY_SIGNAL + received[0])
