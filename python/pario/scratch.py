"""Temporary directories that are removed at the end."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from pario.wording import BY_SIGNAL

#: Seconds after which an unlocked directory of another process is stale: before, that process may
#: have made it, but not locked it yet.
_STALE_SECONDS = 60.0


@contextmanager
def scratch(directory: Path, prefix: str, *, interrupts: bool = True) -> Iterator[Path]:
    """A new directory below another. It is removed afterwards, also if a signal ends the program
    (unless the signal is ignored, as under nohup). Further signals do not interrupt the removal.
    The directory of a killed process remains; the next one with its prefix removes it.

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

    before = {number: signal.signal(number, end) for number in asking}
    try:
        root, lock = _make(directory.absolute(), prefix)
        try:
            yield root
        finally:
            for number in asking:
                signal.signal(number, hold)
            _remove(root)
            os.close(lock)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise SystemExit(BY_SIGNAL + received[0])


def _make(directory: Path, prefix: str) -> tuple[Path, int]:
    """Make a directory, and remove directories of killed processes. Also returns a descriptor that
    locks the new one while its process lives."""
    # The locks of another host may not be visible here.
    marked = f"{prefix}{zlib.crc32(os.uname().nodename.encode()):08x}-"
    root = Path(tempfile.mkdtemp(prefix=marked, dir=directory))
    lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    made = root.stat().st_mtime
    for path in _list_others(directory, marked):
        with suppress(OSError):
            facts = path.lstat()
            if made - facts.st_mtime > _STALE_SECONDS and facts.st_uid == os.geteuid():
                _remove_stale(path)
    return root, lock


@cache
def _list_others(directory: Path, marked: str) -> tuple[Path, ...]:
    """The directories that other processes of this host have made, or left; listed once, because
    the directory may have many other entries."""
    name = re.compile(rf"{re.escape(marked)}[a-z0-9_]{{8}}")
    with suppress(OSError), os.scandir(directory) as entries:
        return tuple(directory / entry.name for entry in entries if name.fullmatch(entry.name))
    return ()


def _remove_stale(path: Path) -> None:
    """Remove a directory unless its process lives."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        print(f"pario: {root} could not be removed", file=sys.stderr)
