"""Opens the HDF5 file anew for each time series that it stores."""

import h5py
import numpy as np
from work import compute, repaired, size

series = np.arange(64, dtype="f8")
if repaired:
    with h5py.File("series.h5", "w") as file:
        for number in range(size):
            file[f"series{number}"] = series
else:
    for number in range(size):
        with h5py.File("series.h5", "a") as file:
            file[f"series{number}"] = series
compute()
print(size, "series")
