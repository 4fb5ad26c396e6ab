"""Arguments and computation of the Python programs: PROGRAM SIZE [repaired]. Does no I/O."""

import sys

size = int(sys.argv[1])
repaired = sys.argv[2:3] == ["repaired"]


def compute(rounds: int = 3_000_000) -> int:
    """Returns a sum; a million rounds take about 0.1 s."""
    total = 0
    for i in range(rounds):
        total += i & 7
    return total
