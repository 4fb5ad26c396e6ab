"""The lock of a directory of checkpoints: one process at a time writes there."""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

#: Errors of file systems without locks.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.ENOLCK)


class DirectoryLock:
    """A lock, not taken at first. It is dropped with this object."""

    def __init__(self) -> None:
        self._descriptor = -1

    def take(self, directory: Path) -> None:
        """Locks a directory, if its file system has locks. Raises BlockingIOError if another
        process has locked it, OSError if it cannot be opened or locked."""
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        _taken.add(self)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise

    def drop(self) -> None:
        """Closes this process's descriptor of the lock, if it has one. Ignores errors: nothing was
        written by it, and the lock is released all the same."""
        _taken.discard(self)
        self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def __del__(self) -> None:
        self._close()


#: The locks that this process has taken. A forked child closes its copies of their descriptors,
#: which would otherwise keep the locks after this process has released them.
_taken: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


def _drop_inherited() -> None:
    for lock in list(_taken):
        lock.drop()


os.register_at_fork(after_in_child=_drop_inherited)
