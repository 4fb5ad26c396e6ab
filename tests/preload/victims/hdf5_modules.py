"""Calls the HDF5 of h5py, which other modules of the process do not see."""

import h5py
import numpy as np

with h5py.File("python.h5", "w") as file:
    group = file.create_group("runs")
    group["first"] = np.arange(10)
    elements = group.create_dataset("elements", (20,), "f8")
    for number in range(20):
        elements[number] = number
with h5py.File("python.h5") as file:
    print(file["runs/first"][...].sum(), file["runs"]["elements"][5:10].sum())
