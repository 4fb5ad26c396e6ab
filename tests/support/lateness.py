"""Ranks that lose patience at a moment that the test determines, not the clock."""

from __future__ import annotations

import time
from typing import Any

from tests.support.waiting import PATIENCE


def give_up_after(ranks: Any, messages: int, patience: float) -> None:
    """Lets the next wait of rank 0's Ranks end when so many messages have come, however late.

    Its error names ``patience`` as the seconds waited. Later waits take their usual time.
    """
    receive, left = ranks._receive, messages

    def receive_or_give_up(rank: int, begin: float, limit: float) -> Any:
        nonlocal left
        if left == 0:
            ranks._receive = receive
            return receive(rank, time.monotonic(), 0.0)
        left -= 1
        return receive(rank, time.monotonic(), PATIENCE)

    ranks.patience = patience
    ranks._receive = receive_or_give_up
