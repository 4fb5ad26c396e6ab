"""Flushes each line of a journal to the disk."""

import os
from pathlib import Path

from work import compute, repaired, size

with Path("journal.txt").open("w") as journal:
    for number in range(size):
        journal.write(f"transaction {number}\n")
        if not repaired:
            journal.flush()
            os.fsync(journal.fileno())
    journal.flush()
    os.fsync(journal.fileno())
compute()
print(size, "transactions")
