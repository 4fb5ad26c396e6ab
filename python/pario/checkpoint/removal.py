"""Removal of checkpoints in the background: unlinking large files is slow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pario import interrupts
from pario.publishing import remove

#: The ending of a name that is being removed.
GONE = ".gone"


def gone_path(path: Path) -> Path:
    """The name of a file or directory while it is removed."""
    return path.with_name(path.name.removesuffix(GONE) + GONE)


class Removal:
    """Removes files and directories, one list at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def start(self, paths: Sequence[Path]) -> None:
        """Renames files now, so that they are no checkpoints any more, and deletes them in a
        thread."""
        if not paths:
            return
        self.wait()
        for path in paths:
            if path == gone_path(path):
                continue
            remove(gone_path(path))
            with suppress(FileNotFoundError):
                path.replace(gone_path(path))
        gone = list(map(gone_path, paths))
        thread = threading.Thread(target=_delete_all, args=(gone,), name="pario-checkpoint-remove")
        try:
            thread.start()
        except RuntimeError:  # Python is ending
            _delete_all(gone)
        else:
            self._thread = thread  # other threads may wait for it

    def wait(self) -> None:
        """Waits until removed files occupy no space any more."""
        if self._thread is not None:
            interrupts.join(self._thread)


def _delete_all(paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # the next Writer tries again
            remove(path)
