"""Runs the traced command as if we were not there: its streams, signals and exit status are the
caller's."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from pario.errors import ParioError

#: A terminal sends these to the command as well as to us: we wait and let it decide.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
#: These reach us alone: passed on.
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
#: These end a process that does not handle them.
_ENDING = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class Ending:
    """How a child ended: ``status`` as a shell would say it (128 + signal), ``signal`` 0 when it
    exited.

    ``late``: after its limit. ``pid``: its number, 0 where that is not known.
    """

    status: int
    signal: int
    late: bool = False
    pid: int = 0

    @staticmethod
    def of(status: int, *, late: bool = False, pid: int = 0) -> Ending:
        """From the status that waiting for the child has given."""
        code = os.waitstatus_to_exitcode(status)
        return Ending(128 - code, -code, late, pid) if code < 0 else Ending(code, 0, late, pid)

    def repeat(self) -> int:
        """Ends this process as the child ended: dies of the same signal, without a second core
        file, else returns the status."""
        if self.signal:
            sys.stdout.flush()
            sys.stderr.flush()
            resource.setrlimit(
                resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
            )
            signal.signal(self.signal, signal.SIG_DFL) if self.signal not in (
                signal.SIGKILL,
                signal.SIGSTOP,
            ) else None
            os.kill(os.getpid(), self.signal)
        return self.status


@dataclass
class Held:
    """Signals that wait: what has to be done when the command has ended is done first."""

    numbers: list[int] = field(default_factory=list)

    def take(self, number: int, _frame: FrameType | None) -> None:
        """A handler."""
        self.numbers.append(number)

    def let_go(self) -> None:
        """From now on none waits, and those that did arrive."""
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        for held in self.numbers:
            os.kill(os.getpid(), held)


def run_child(
    executable: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    held: Held | None = None,
) -> Ending:
    """Runs the command and waits for it; from its end on ``held`` takes the signals. Raises
    ParioError where even a resolved program cannot be started.
    """
    sys.stdout.flush()
    handled = (*_PASSED_ON, *_FROM_TERMINAL)
    mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, handled
    )  # a signal that comes before the child is known waits
    try:
        child = spawn(executable, command, environment, setsigmask=list(mask))

        def pass_on(number: int, _frame: FrameType | None) -> None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(child, number)

        before = {
            number: signal.signal(number, pass_on if number in _PASSED_ON else lambda *_: None)
            for number in handled
        }
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _, status = os.waitpid(child, 0)
    for number, handler in before.items():  # Python's own for Ctrl-C would show a traceback
        own = signal.SIG_DFL if handler in (None, signal.default_int_handler) else handler
        signal.signal(number, held.take if held and number in _ENDING else own)
    return Ending.of(status, pid=child)


def spawn(
    executable: Path, command: Sequence[str], environment: Mapping[str, str], **options: Any
) -> int:
    """Starts a resolved program, with further options of ``posix_spawn``. Raises ParioError where
    it cannot be started."""

    def start(path: str, words: Sequence[str]) -> int:
        # Python ignores SIGPIPE and SIGXFSZ for itself; the command starts with the system's
        # defaults.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawn(path, list(words), dict(environment), setsigdef=defaults, **options)

    try:
        return start(str(executable), command)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise ParioError(f"cannot start {executable}: {error.strerror}") from error
    return start(
        "/bin/sh", ["sh", str(executable), *command[1:]]
    )  # a script without #!, which shells run, too
