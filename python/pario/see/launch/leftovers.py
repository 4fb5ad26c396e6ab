"""Removal of memory that processes of a node share (src/layers/buffers/node_memory.cpp), after all
of them were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from pario.see.launch import node_cache

_FOLDER = Path("/dev/shm")
_USES = ("once", "mapped")
_LOCK = struct.Struct("hh4xqqi4x")  # struct flock


def remove_unused_memory() -> None:
    """Remove the files of node memory that no process has open."""
    for use in _USES:
        for path in _FOLDER.glob(f"pario-{os.geteuid()}-{use}-*"):
            with contextlib.suppress(OSError):
                _remove_unused(path)
    node_cache.remove_unused()


def _remove_unused(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Every process that uses the file holds a lock on its first byte.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        path.unlink()
    finally:
        os.close(descriptor)
