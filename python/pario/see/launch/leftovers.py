"""Memory that processes of a node share about files (src/layers/buffers/node_memory.cpp): removed
where all that had it were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

_FOLDER = Path("/dev/shm")
_USES = ("once", "mapped")
_LOCK = struct.Struct("hh4xqqi4x")  # struct flock


def sweep() -> None:
    """Removes the files that no process has open."""
    for use in _USES:
        for path in _FOLDER.glob(f"pario-{os.geteuid()}-{use}-*"):
            with contextlib.suppress(OSError):
                _remove_unused(path)


def _remove_unused(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # All that have it lock its first byte.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        path.unlink()
    finally:
        os.close(descriptor)
