"""Saves an array as text."""

import numpy as np
from work import compute, repaired, size

array = 1.0 / np.arange(1, 4 * size + 1, dtype="f8").reshape(size, 4)
if repaired:
    np.save("array.npy", array)
else:
    np.savetxt("array.txt", array)
compute()
print(array.size, "values")
