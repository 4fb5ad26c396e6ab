"""Loads a column of numbers from text."""

import numpy as np
from work import compute, repaired, size

values = np.fromfile("matrix.bin") if repaired else np.loadtxt("matrix.txt")
compute()
print(size, "values, sum", round(float(values.sum()), 6))
