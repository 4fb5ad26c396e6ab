"""Locks by which the users of a path hold it, so that the last one can remove it (flock)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: Attempts to open a path that is missing each time: more than last users that remove it.
_MOST_ATTEMPTS = 1000


def hold(path: Path, make: Callable[[], int], *, alone: bool = False) -> int:
    """Locks a path for this user; returns the descriptor that holds the lock.

    ``make`` makes the path, unless it exists, and opens it; it is repeated if the last user removes
    the path meanwhile. Raises BlockingIOError if this user must be ``alone`` and is not; otherwise
    waits while the last user removes the path. Raises FileNotFoundError if ``make`` does so each
    time, as where the directory of the path is missing.
    """
    attempts = 0
    while True:
        try:
            descriptor = make()
        except FileNotFoundError:
            attempts += 1
            if attempts == _MOST_ATTEMPTS:
                raise
            continue
        is_held = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            is_held = _is_at(descriptor, path)
        finally:
            if not is_held:
                os.close(descriptor)
        if is_held:
            return descriptor


def is_last(path: Path, descriptor: int) -> bool:
    """True if no other process of this node uses the path; then it is locked until the descriptor
    is closed, and may be removed. Of several users that ask, one is the last."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _is_at(descriptor, path)
    return False


def _is_at(descriptor: int, path: Path) -> bool:
    """True unless the path was removed, and perhaps made again, after it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
