"""Looks for new input with a glob over a full directory in each step."""

from pathlib import Path

from work import compute, repaired, size

found = list(Path("items").glob("0*"))
total = 0
for _ in range(size):
    if not repaired:
        found = list(Path("items").glob("0*"))
    total += len(found)
compute()
print(size, "steps,", total, "names")
