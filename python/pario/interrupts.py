"""Interrupts (Ctrl-C) are raised where they reach the program, and where no other rank waits for this one.

Python swallows a KeyboardInterrupt that is raised within ``__del__`` or the callback of a weak reference ("Exception
ignored in"). So a call of the API postpones an interrupt to its next :func:`check`, or to its end.

All of this is for interrupts of the main thread; nothing changes where the program has a handler of its own.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: An interrupt that is postponed, until it is raised.
_postponed: list[BaseException] = []
#: Whether a body of :func:`postponed` runs; it may be within another one.
_is_active = False
#: Seconds after which a wait looks for an interrupt.
_BREATH = 0.2


def _postpone(number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT within :func:`postponed`. A second interrupt is raised at once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _postponed.append(KeyboardInterrupt())


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def postponed() -> Iterator[None]:
    """An interrupt of the body is raised by its next :func:`check`, or at its end. A second one is raised at once."""
    global _is_active
    if _is_active or not _is_main() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    try:  # in which an interrupt may come after any line
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
    """Raises a postponed interrupt. Called where exceptions are expected: between two pieces of work, and while waiting."""
    if _postponed and _is_main():
        raise _postponed.pop()


def join(thread: threading.Thread) -> None:
    """Waits for the end of a thread, or for an interrupt, which is raised."""
    if not _is_main():
        thread.join()
        return
    while thread.is_alive():
        thread.join(_BREATH)
        check()


@contextmanager
def kept(failed: list[BaseException]) -> Iterator[None]:
    """Keeps an exception of the body for later; of interrupts only the first one."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and any(isinstance(one, KeyboardInterrupt) for one in failed):
            raise
        failed.append(error)


@contextmanager
def deferred(failed: list[BaseException] | None = None) -> Iterator[None]:
    """Puts an interrupt of the body into ``failed``, of which the body must take notice, or raises it at the end.

    For bodies with collective calls, which a rank may not leave out. A second interrupt is raised at once. Within another one the
    outer one has it.
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
