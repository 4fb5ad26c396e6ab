"""Fills an HDF5 data set element by element."""

import h5py
import numpy as np
from work import compute, repaired, size

values = np.arange(size, dtype="f8")
with h5py.File("values.h5", "w") as file:
    data = file.create_dataset("values", (size,), "f8")
    if repaired:
        data[:] = values
    else:
        for number in range(size):
            data[number] = values[number]
compute()
print(size, "values")
