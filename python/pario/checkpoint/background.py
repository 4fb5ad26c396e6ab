"""Checkpoints that are written while the program goes on: from a copy of its arrays, by one thread after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.given import Given
from pario.checkpoint.types import Array

_ALIGNMENT = 64


class Snapshot:
    """Memory for a copy of what a rank gives. It is used again: touching new memory costs more than copying."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, given: Sequence[Given]) -> list[Given]:
        """The same with arrays that nobody else changes."""
        needed = sum(data.nbytes + _ALIGNMENT for one in given for data in one.data)
        if self._memory.size < needed:
            self._memory = np.empty(0, np.uint8)  # never two at a time
            self._memory = np.empty(needed, np.uint8)
        at, taken = 0, []
        for one in given:
            copies = []
            for data in one.data:
                copies.append(self._copy(data, at))
                at += -(-data.nbytes // _ALIGNMENT) * _ALIGNMENT
            taken.append(replace(one, data=tuple(copies)))
        return taken

    def _copy(self, data: Array, at: int) -> Array:
        room = self._memory[at : at + data.nbytes].view(data.dtype).reshape(data.shape)
        np.copyto(room, data)
        return room


class Pending:
    """A checkpoint that is being written. What goes wrong is raised once: by :meth:`result`, or by the Writer's next call.

    ``write`` runs in a thread, after ``previous``. ``conclude``, which is collective, calls its argument to get, or have raised, what came
    of ``write``. It runs in the thread as well where ranks may meet there (``alone``), else in :meth:`result`.
    """

    def __init__(
        self, step: int, write: Callable[[], Any], conclude: Callable[[Callable[[], Any]], Path], previous: Pending | None, *, alone: bool
    ) -> None:
        self.step = step
        #: Whether what became of it was said.
        self.told = False
        self._write, self._conclude, self._alone = write, conclude, alone
        self._written: Any = None
        self._failed: Exception | None = None
        self._path: Path | None = None
        self._error: Exception | None = None
        self._concluded = False
        # No daemon: the interpreter waits for it, so that what was begun is finished when a program ends.
        self._thread = threading.Thread(target=self._run, args=(previous,), name="pario-checkpoint", daemon=False)
        self._thread.start()

    def done(self) -> bool:
        """Whether :meth:`result` need not wait for this rank's bytes."""
        return not self._thread.is_alive()

    def result(self) -> Path:
        """Waits until the checkpoint is complete; its path. Collective."""
        self._thread.join()
        if not self._concluded:
            self._finish()
        self.told = True
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def join(self) -> None:
        """Waits for the thread; raises nothing, and is not collective."""
        self._thread.join()

    def _run(self, previous: Pending | None) -> None:
        if previous is not None:
            previous.join()
        try:
            self._written = self._write()
        except Exception as error:
            self._failed = error
        if self._alone:
            self._finish()

    def _finish(self) -> None:
        try:
            self._path = self._conclude(self._outcome)
        except Exception as error:
            self._error = error
        self._concluded = True

    def _outcome(self) -> Any:
        if self._failed is not None:
            raise self._failed
        return self._written
