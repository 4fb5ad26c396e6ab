"""Keeps each result in a group of its own, with its value as an attribute."""

import h5py
import numpy as np
from work import compute, repaired, size

with h5py.File("results.h5", "w") as file:
    if repaired:
        file["values"] = np.arange(size) / 2
    else:
        for number in range(size):
            file.create_group(f"result{number}").attrs["value"] = number / 2
compute()
print(size, "results")
