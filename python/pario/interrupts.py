"""Interrupts (Ctrl-C): raised only where they reach the program and no other rank waits.

Python swallows a KeyboardInterrupt that is raised within ``__del__`` or the callback of a weak
reference ("Exception ignored in"). So a call of the API postpones an interrupt to its next
:func:`check`, or to its end. This concerns the main thread only, and programs without a handler of
their own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: The postponed interrupt, if there is one.
_postponed: list[BaseException] = []
#: True while a body of :func:`postpone_interrupt` runs; bodies may be nested.
_is_active = False
#: Seconds between two checks for an interrupt during a wait.
_CHECK_INTERVAL = 0.2


def _postpone(number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT in :func:`postpone_interrupt`. Raises a second interrupt at once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _postponed.append(KeyboardInterrupt())


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def postpone_interrupt() -> Iterator[None]:
    """Postpones an interrupt of the body to its next :func:`check`, or to its end. A second one is
    raised at once."""
    global _is_active
    if (
        _is_active
        or not _is_main()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    try:  # an interrupt may come after any line
        _is_active = True
        _postponed.clear()
        signal.signal(signal.SIGINT, _postpone)
        yield
    except Exception as error:
        if _postponed:
            raise _postponed.pop() from error
        raise
    finally:
        _is_active = False
        signal.signal(signal.SIGINT, signal.default_int_handler)
    check()


def check() -> None:
    """Raises a postponed interrupt. Called where exceptions are safe: between two pieces of work,
    and during waits."""
    if _postponed and _is_main():
        raise _postponed.pop()


def keep_waiting() -> None:
    """Takes the place of :func:`check` in a wait of several ranks that none may leave: the next
    :func:`check` raises a postponed interrupt. A second one is raised at once."""


def join(thread: threading.Thread) -> None:
    """Waits for the end of a thread. Raises an interrupt."""
    if not _is_main():
        thread.join()
        return
    while thread.is_alive():
        thread.join(_CHECK_INTERVAL)
        check()


@contextmanager
def keep_error(failed: list[BaseException]) -> Iterator[None]:
    """Appends an exception of the body to ``failed``; a second interrupt is raised instead."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and any(
            isinstance(one, KeyboardInterrupt) for one in failed
        ):
            raise
        failed.append(error)


@contextmanager
def defer_interrupt(failed: list[BaseException] | None = None) -> Iterator[None]:
    """Appends an interrupt of the body to ``failed``, which the body must check, or raises it at
    the end.

    For bodies with collective calls, none of which a rank may omit. A second interrupt is raised at
    once. In nested bodies the outer one receives it.
    """
    noted: list[BaseException] = [] if failed is None else failed
    before = signal.getsignal(signal.SIGINT)
    if not _is_main() or before not in (signal.default_int_handler, _postpone):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        noted.append(KeyboardInterrupt())

    noted += _postponed
    _postponed.clear()
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
    if failed is None and noted:
        raise noted[0]
