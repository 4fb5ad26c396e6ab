"""Standard input of a command that runs several times: if it is seekable, each run reads it from
the same position."""

from __future__ import annotations

import os
import stat
import sys


class Beginning:
    """The position of standard input before the first run."""

    def __init__(self) -> None:
        self._runs = 0
        try:
            self._offset: int | None = os.lseek(0, 0, os.SEEK_CUR)
        except OSError:  # a pipe, a terminal, or closed
            self._offset = None

    def restore(self) -> None:
        """Restore the position before each run. Prints a warning, once, for a pipe, which cannot be
        read again."""
        self._runs += 1
        if self._offset is not None:
            os.lseek(0, self._offset, os.SEEK_SET)
        elif self._runs == 2 and is_pipe():
            print(
                "pario: standard input is a pipe: the next run does not receive the bytes that the"
                " first one read",
                file=sys.stderr,
            )


def is_pipe() -> bool:
    """Return True if standard input is a pipe, whose bytes only one reader gets."""
    try:
        return stat.S_ISFIFO(os.fstat(0).st_mode)
    except OSError:
        return False
