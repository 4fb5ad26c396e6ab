"""Runs the traced command transparently: it has the standard streams of this process, receives its
signals, and decides its exit status."""

from __future__ import annotations

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
from pario.see.launch import program
from pario.wording import BY_SIGNAL

#: A terminal sends these to the command, too, which decides on them; this process waits.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
#: Signals to this process alone, which it passes on.
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
#: Signals that end a process without a handler.
_ENDING = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
#: Signals by which users and batch systems end a command.
_INTERRUPTING = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP)


class StartError(ParioError):
    """The system refuses to start a program that exists."""


@dataclass(frozen=True)
class Ending:
    """The end of a child: ``status`` as in a shell (128 + signal), ``signal`` 0 for an exit.

    ``late``: it was ended after its limit. ``pid``: 0 if not known. ``io``: the numbers of
    /proc/PID/io at its end; empty: not known. ``received``: the signal that this process received
    meanwhile and by which commands are interrupted; 0: none.
    """

    status: int
    signal: int
    late: bool = False
    pid: int = 0
    io: Mapping[str, int] = field(default_factory=dict)
    received: int = 0

    @staticmethod
    def of(
        status: int,
        *,
        late: bool = False,
        pid: int = 0,
        io: Mapping[str, int] | None = None,
        received: int = 0,
    ) -> Ending:
        """Make an ending from a wait status."""
        code = os.waitstatus_to_exitcode(status)
        number, by_signal = (BY_SIGNAL - code, -code) if code < 0 else (code, 0)
        return Ending(number, by_signal, late, pid, io or {}, received)

    @property
    def interrupted(self) -> int:
        """The signal that interrupted the command, from a user or a batch system, also if the
        command handled it or a launcher passed it on; 0: none."""
        return self.received or next(
            (
                number
                for number in _INTERRUPTING
                if number in (self.signal, self.status - BY_SIGNAL)
            ),
            0,
        )

    def repeat(self) -> int:
        """End this process by the signal that killed the child, without a second core file;
        otherwise return the status."""
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
class HeldSignals:
    """Signals that are held until the work after the end of the command is done."""

    numbers: list[int] = field(default_factory=list)

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Hold a signal; this is the signal handler."""
        self.numbers.append(number)

    def release(self) -> None:
        """Restore Python's handlers, and send the held signals to this process."""
        for number in _ENDING:
            interrupts = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupts else signal.SIG_DFL)
        for held in self.numbers:
            os.kill(os.getpid(), held)


def run_child(
    executable: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    held: HeldSignals | None = None,
) -> Ending:
    """Run the command and wait for it; from its end on ``held`` holds the signals. Raises
    StartError if a resolved program cannot be started.
    """
    sys.stdout.flush()
    handled = (*_PASSED_ON, *_FROM_TERMINAL)
    # Signals stay blocked until the PID of the child is known.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    try:
        child = spawn(executable, command, environment, setsigmask=list(mask))

        received: list[int] = []

        def receive(number: int, _frame: FrameType | None) -> None:
            received.append(number)
            if number in _PASSED_ON:
                with suppress(ProcessLookupError):  # the child has just ended
                    os.kill(child, number)

        before = {number: signal.signal(number, receive) for number in handled}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    io = read_io(child)
    _, status = os.waitpid(child, 0)
    for number, handler in before.items():
        own = signal.SIG_DFL if handler is None else handler
        signal.signal(number, held.take if held and number in _ENDING else own)
    interrupts = [number for number in received if number in _INTERRUPTING]
    return Ending.of(status, pid=child, io=io, received=next(iter(interrupts), 0))


def read_io(child: int) -> dict[str, int]:
    """Return the kernel's I/O counters of a child that is not reaped yet, by their names in
    /proc/PID/io; empty if the kernel has none."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{child}/io").read_text(encoding="ascii").splitlines()
        return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {}


def spawn(
    executable: Path, command: Sequence[str], environment: Mapping[str, str], **options: Any
) -> int:
    """Start a resolved program with further options of ``posix_spawn``; return its PID. Raises
    StartError if the system refuses."""

    def start(path: str, words: Sequence[str]) -> int:
        # Python ignores SIGPIPE and SIGXFSZ; the command starts with the defaults of the system.
        defaults = [signal.SIGPIPE, signal.SIGXFSZ]
        return os.posix_spawn(path, list(words), dict(environment), setsigdef=defaults, **options)

    try:
        return start(str(executable), command)
    except OSError as error:
        if reason := program.describe_failure(executable, error):
            raise StartError(reason) from error
    # A script without #!, which shells run, too.
    return start("/bin/sh", ["sh", str(executable), *command[1:]])
