"""A pool of processes that perform tasks. A task that kills its process, as some damaged logs do,
fails alone."""

from __future__ import annotations

import pickle
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pario.errors import ParioError
from pario.interrupts import postpone_interrupt
from pario.see.survey.tasks import Answer, Failure, Identify, Judge, Task
from pario.see.tables.darshan.apart import describe_end, environment

SomeTask = TypeVar("SomeTask", Identify, Judge)
#: The libraries' own threads would only compete with the other processes of the pool.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class _Worker:
    """One process. It has a session of its own, so that Ctrl-C reaches only the parent, and ends
    with its standard input when the parent is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pario.see.survey"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(), **_ONE_THREAD},
            start_new_session=True,
        )
        self.task: Task | None = None
        self.is_ready = False

    def fileno(self) -> int:
        """The descriptor on which answers arrive."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def give(self, task: Task) -> None:
        """Send a task. The end of the process is noticed when its answer is received."""
        assert self._process.stdin is not None
        self.task = task
        with suppress(BrokenPipeError):
            pickle.dump(task, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()

    def receive(self) -> Any:
        """Return the answer to the task, or that the process is ready; Failure if it died."""
        assert self._process.stdout is not None
        try:
            answer = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            answer = Failure(f"{self.task}: reading failed ({describe_end(self._process.wait())})")
        self.is_ready, self.task = not self.is_dead(), None
        return answer

    def is_dead(self) -> bool:
        """True if the process has ended."""
        return self._process.returncode is not None

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()


class Pool:
    """Up to ``size`` processes; a context manager that ends them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._remove(worker)
        self._selector.close()

    def perform(self, tasks: Sequence[SomeTask]) -> Iterator[tuple[SomeTask, Answer]]:
        """Yield tasks with their answers, in the order in which they end.

        Raises ParioError if a process cannot start.
        """
        waiting: deque[SomeTask] = deque(tasks)
        self._start(len(waiting))
        for idle in self._workers:
            if idle.is_ready and waiting:
                idle.give(waiting.popleft())
        while waiting or any(worker.task for worker in self._workers):
            for key, _ in self._selector.select():
                worker: _Worker = key.data
                task, answer = worker.task, worker.receive()
                if worker.is_dead():
                    self._remove(worker)
                    if task is None:
                        raise ParioError(f"a process that reads logs did not start: {answer.text}")
                    self._start(len(waiting))
                elif waiting:
                    worker.give(waiting.popleft())
                if task is not None:
                    yield task, answer  # type: ignore[misc]

    def _start(self, tasks: int) -> None:
        """Start the processes that ``tasks`` need. An interrupt waits until each is known."""
        while len(self._workers) < min(self._size, tasks):
            with postpone_interrupt():
                worker = _Worker()
                self._workers.append(worker)
                self._selector.register(worker, selectors.EVENT_READ, worker)

    def _remove(self, worker: _Worker) -> None:
        self._selector.unregister(worker)
        self._workers.remove(worker)
        worker.stop()
