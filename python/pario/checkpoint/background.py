"""Saves in the background: from a copy of the arrays, by one thread after the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pario import interrupts
from pario.checkpoint.arrays import Given
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.relay import Memory, Moves

_ALIGNMENT = 64


class Owner:
    """The process that made an object. A forked child has a copy, with which it would undo its
    parent's work. ``thing``: the object's name in errors."""

    def __init__(self, thing: str) -> None:
        self._process, self._thing = os.getpid(), thing

    @property
    def is_here(self) -> bool:
        """True in the process that made the object."""
        return os.getpid() == self._process

    def require(self) -> None:
        """Raises CheckpointError in a forked child."""
        if not self.is_here:
            here = f"process {os.getpid()} was forked from it, or from a child of it"
            raise CheckpointError(
                f"{self._thing} belongs to process {self._process}; {here}, and needs a Writer of"
                " its own"
            )


class Snapshot:
    """Memory for a copy of a rank's arrays. It is reused, because touching new memory costs more
    than copying. ``shared``: other ranks of the node can read it, one of which may write it."""

    def __init__(self, *, shared: bool) -> None:
        self._shared, self._bytes = shared, np.empty(0, np.uint8)
        #: The shared memory; None if it is private.
        self.memory: Memory | None = None
        #: For the present plan: the writes of this rank from the copies of its node.
        self.moves: Moves | None = None

    def forget(self) -> None:
        """Forgets the writes, because the plan changes."""
        self.moves = None

    def copy(self, given: Sequence[Given]) -> list[Given]:
        """Copies arrays. Raises MemoryError."""
        needed = sum(data.nbytes + _ALIGNMENT for one in given for data in one.data)
        if self._bytes.size < needed:
            self._allocate(needed)
        at, copied = 0, []
        for one in given:
            copies = []
            for data in one.data:
                target = self._bytes[at : at + data.nbytes].view(data.dtype).reshape(data.shape)
                np.copyto(target, data)
                copies.append(target)
                at += -(-data.nbytes // _ALIGNMENT) * _ALIGNMENT
            copied.append(replace(one, data=tuple(copies)))
        return copied

    def _allocate(self, size: int) -> None:
        self._bytes, self.memory = np.empty(0, np.uint8), None  # frees the old memory first
        if self._shared:
            with suppress(OSError):
                self.memory = Memory(size)
        self._bytes = np.empty(size, np.uint8) if self.memory is None else self.memory.array


class Pending:
    """A checkpoint that is saved in the background, as :meth:`Writer.save_async` returns it.

    An error is raised once: by :meth:`result`, or by the next call of the Writer.

    Parameters
    ----------
    step : int
        Step of the checkpoint.
    write : callable
        Writes this rank's part. Runs in a thread, after ``previous``.
    conclude : callable
        Completes the checkpoint; collective. Calls its argument to get the result of ``write``, or
        to raise its error. Runs in the thread if ``alone``, else in :meth:`result`.
    previous : Pending or None
        The checkpoint saved before.
    alone : bool
        True if the ranks can meet in threads (``MPI_THREAD_MULTIPLE``).

    Examples
    --------
    >>> import tempfile
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as path, checkpoint.Writer(None, path) as writer:
    ...     pending = writer.save_async(1, {"t": 0.5})
    ...     pending.result().name
    'step-00000001.h5'
    """

    def __init__(
        self,
        step: int,
        write: Callable[[], Any],
        conclude: Callable[[Callable[[], Any]], Path],
        previous: Pending | None,
        *,
        alone: bool,
    ) -> None:
        self.step, self._owner = step, Owner(f"the checkpoint of step {step}")
        self._previous = previous
        #: True if the result or the error was returned to the program.
        self.reported = False
        self._write: Callable[[], Any] | None = write
        self._conclude: Callable[[Callable[[], Any]], Path] | None = conclude
        self._alone = alone
        self._written: Any = None
        self._failed: BaseException | None = None
        self._path: Path | None = None
        self._error: BaseException | None = None
        self._concluded = False
        # Not a daemon: the interpreter waits for it, so that the save completes at the program's
        # end.
        gate = threading.Lock()
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, args=(previous, gate), name="pario-checkpoint", daemon=False
        )
        # Without the gate the thread would take Python's lock at once, and the program would wait
        # for it some milliseconds.
        with gate:
            self._thread.start()

    def done(self) -> bool:
        """Returns whether this rank has written its part. Not collective.

        Returns
        -------
        bool
            True if :meth:`result` waits for other ranks at most.
        """
        return self._thread is None or not self._thread.is_alive()

    @interrupts.postpone_interrupt()
    def result(self) -> Path:
        """Waits until the checkpoint, and those before it, are complete.

        Collective over the ranks of the Writer.

        Returns
        -------
        pathlib.Path
            The checkpoint's file, or its directory if it has several files.

        Raises
        ------
        CheckpointError
            If a rank could not write its part, on all ranks.
        """
        self._owner.require()
        self._complete()
        self.reported = True
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def join(self) -> None:
        """Waits for the thread. Raises no error of it, and is not collective."""
        if self._thread is not None:
            interrupts.join(self._thread)

    def _complete(self) -> None:
        """Concludes the earlier checkpoints first: the last complete one is the newest."""
        due = [self]
        while (previous := due[-1]._previous) is not None:
            due.append(previous)
        for one in reversed(due):
            one.join()
            # its weak references have callbacks, in which the program could be interrupted
            one._thread = None
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
        self._write = None  # it refers to the copies
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


def count_done(pending: Sequence[Pending]) -> int:
    """The number of oldest checkpoints that this rank has written."""
    return next((number for number, one in enumerate(pending) if not one.done()), len(pending))
