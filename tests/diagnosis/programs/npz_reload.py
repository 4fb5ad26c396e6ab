"""Loads the same archive of weights for each batch."""

import numpy as np
from work import compute, repaired, size

weights = np.load("weights.npy")
total = 0
for batch in range(size):
    if not repaired:
        weights = np.load("weights.npy")
    total += int(weights[batch % len(weights)])
compute()
print(size, "batches, sum", total)
