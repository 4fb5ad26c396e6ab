"""Picks random samples of a data set that is mapped by NumPy and not in memory."""

import mmap

import numpy as np
from work import compute, repaired, size

WIDTH = 1024
samples = np.memmap("samples.f32", dtype=np.uint32, mode="r").reshape(-1, WIDTH)
if repaired:
    samples = np.fromfile("samples.f32", dtype=np.uint32).reshape(-1, WIDTH)
else:
    samples.base._mmap.madvise(mmap.MADV_RANDOM)
total = 0
for number in range(size):
    total += int(samples[(number * 2654435761 + 12345) % len(samples)][0])
compute()
print(size, "samples, sum", total)
