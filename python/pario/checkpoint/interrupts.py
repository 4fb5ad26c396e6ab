"""What is raised where other ranks wait for this one in calls that it must not leave out: kept until it may be raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def kept(failed: list[BaseException]) -> Iterator[None]:
    """Keeps what is raised, for later; but of interrupts the first one only."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and any(isinstance(one, KeyboardInterrupt) for one in failed):
            raise
        failed.append(error)


@contextmanager
def deferred(failed: list[BaseException] | None = None) -> Iterator[None]:
    """An interrupt (Ctrl-C) of the body is put into ``failed``, of which the body must take notice, or raised at its end. A second one is
    raised at once. Nothing changes where the program has its own way with interrupts, or they come to another thread.
    """
    noted: list[BaseException] = [] if failed is None else failed
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        noted.append(KeyboardInterrupt())

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if failed is None and noted:
        raise noted[0]
