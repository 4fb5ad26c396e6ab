"""Checkpoints that are written while the program goes on: from a copy of its arrays, by one thread after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pario import interrupts
from pario.checkpoint.given import Given
from pario.checkpoint.owner import Owner
from pario.checkpoint.relay import Memory, Moves
from pario.checkpoint.types import Array

_ALIGNMENT = 64


class Snapshot:
    """Memory for a copy of what a rank gives. It is used again: touching new memory costs more than copying.

    ``seen``: by the other ranks of the node, one of which may write it.
    """

    def __init__(self, *, seen: bool = False) -> None:
        self._seen, self._bytes = seen, np.empty(0, np.uint8)
        #: Where others find the copy, where they do.
        self.memory: Memory | None = None
        #: For an arrangement that is known: what this rank writes of the copies of its node.
        self.moves: Moves | None = None

    def forget(self) -> None:
        """What is arranged otherwise from now on; also the copies of others, which will make new ones."""
        self.moves = None

    def take(self, given: Sequence[Given]) -> list[Given]:
        """The same with arrays that nobody else changes."""
        needed = sum(data.nbytes + _ALIGNMENT for one in given for data in one.data)
        if self._bytes.size < needed:
            self._allocate(needed)
        at, taken = 0, []
        for one in given:
            copies = []
            for data in one.data:
                copies.append(self._copy(data, at))
                at += -(-data.nbytes // _ALIGNMENT) * _ALIGNMENT
            taken.append(replace(one, data=tuple(copies)))
        return taken

    def _allocate(self, size: int) -> None:
        self._bytes, self.memory = np.empty(0, np.uint8), None  # never two at a time
        if self._seen:
            with suppress(OSError):
                self.memory = Memory(size)
        self._bytes = np.empty(size, np.uint8) if self.memory is None else self.memory.array

    def _copy(self, data: Array, at: int) -> Array:
        room = self._bytes[at : at + data.nbytes].view(data.dtype).reshape(data.shape)
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
        self.step, self._owner = step, Owner(f"the checkpoint of step {step}")
        self._previous = previous
        #: Whether what became of it was said.
        self.told = False
        self._write: Callable[[], Any] | None = write
        self._conclude: Callable[[Callable[[], Any]], Path] | None = conclude
        self._alone = alone
        self._written: Any = None
        self._failed: BaseException | None = None
        self._path: Path | None = None
        self._error: BaseException | None = None
        self._concluded = False
        # No daemon: the interpreter waits for it, so that what was begun is finished when a program ends.
        gate = threading.Lock()
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, args=(previous, gate), name="pario-checkpoint", daemon=False
        )
        with gate:  # else it would go on at once, with Python's lock, for which the program would wait some milliseconds
            self._thread.start()

    def done(self) -> bool:
        """Whether this rank has done what it does for it; :meth:`result` may wait for others."""
        return self._thread is None or not self._thread.is_alive()

    @interrupts.postponed()
    def result(self) -> Path:
        """Waits until the checkpoint is complete; its path. Collective."""
        self._owner.require()
        self._complete()
        self.told = True
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def join(self) -> None:
        """Waits for the thread; raises nothing, and is not collective."""
        if self._thread is not None:
            interrupts.join(self._thread)

    def _complete(self) -> None:
        """After those before it: the last that is complete is the newest."""
        due = [self]
        while (previous := due[-1]._previous) is not None:
            due.append(previous)
        for one in reversed(due):
            one.join()
            one._thread = None  # its weak references have callbacks, in which the program could be interrupted
            if not one._concluded:
                one._finish()

    def _run(self, previous: Pending | None, gate: threading.Lock) -> None:
        with gate:
            pass
        if previous is not None:
            previous.join()
        assert self._write is not None
        try:
            self._written = self._write()
        except BaseException as error:
            self._failed = error
        self._write = None  # it has the copies
        if self._alone:
            self._finish()

    def _finish(self) -> None:
        assert self._conclude is not None
        try:
            self._path = self._conclude(self._outcome)
        except BaseException as error:
            self._error = error
        self._conclude, self._previous, self._concluded = None, None, True

    def _outcome(self) -> Any:
        if self._failed is not None:
            raise self._failed
        return self._written


def done(pending: Sequence[Pending]) -> int:
    """How many of the oldest are."""
    return next((number for number, one in enumerate(pending) if not one.done()), len(pending))
