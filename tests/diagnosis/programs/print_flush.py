"""Prints each progress line to a file with flush=True."""

from pathlib import Path

from work import compute, repaired, size

with Path("progress.txt").open("w") as progress:
    for number in range(size):
        print("finished item", number, file=progress, flush=not repaired)
compute()
print(size, "items")
