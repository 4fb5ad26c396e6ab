"""The child of a fork that inherits an iteration over a Loader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pario.errors import ParioError


def expect_child_begins_its_own(held: list[Iterator[Any]], own: Callable[[], bool]) -> None:
    """Checks that a child of a fork cannot continue the only iteration in ``held``, but can drop it
    and begin its own, for which ``own()`` is true."""
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(ParioError, match="belongs to the process that began it"):
                next(held[0])
            held.clear()
            os._exit(0 if own() else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
