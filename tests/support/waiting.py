"""Waits for conditions with one limit for all tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from tests.support.processes import describe_processes

Found = TypeVar("Found")
#: Multiplies all limits; larger than 1 on a loaded or slow machine.
FACTOR = float(os.environ.get("PARIO_TEST_PATIENCE") or 1)
#: Seconds that any single wait of a test may take. A test that passes takes far less.
PATIENCE = 120 * FACTOR
_FIRST_NAP, _LONGEST_NAP = 0.001, 0.05


class LateError(AssertionError):
    """A limit was exceeded; the text holds the state at that time."""


def wait_until(
    condition: Callable[[], Found], description: str, *, limit: float = PATIENCE
) -> Found:
    """Polls a condition and returns its first true value.

    Raises LateError after ``limit`` seconds, with the description and this process's descendants.
    """
    deadline = time.monotonic() + limit
    nap = _FIRST_NAP
    while not (found := condition()):
        if time.monotonic() > deadline:
            state = describe_processes(os.getpid())
            raise LateError(f"not within {limit:g} s: {description}\n{state}")
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP)
    return found
