"""Reads the records of a file one by one with np.fromfile."""

from pathlib import Path

import numpy as np
from work import compute, repaired, size

RECORD = 96

total = 0
with Path("records.bin").open("rb") as file:
    if repaired:
        total = int(np.fromfile(file, np.uint8, RECORD * size)[::RECORD].sum(dtype=np.int64))
    else:
        for _ in range(size):
            total += int(np.fromfile(file, np.uint8, RECORD)[0])
compute()
print(size, "records, sum", total)
