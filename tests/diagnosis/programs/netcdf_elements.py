"""Writes the values of a netCDF variable one by one."""

import netCDF4
import numpy as np
from work import compute, repaired, size

values = np.sqrt(np.arange(size, dtype="f8"))
with netCDF4.Dataset("values.nc", "w") as file:
    file.createDimension("number", size)
    variable = file.createVariable("root", "f8", ("number",))
    if repaired:
        variable[:] = values
    else:
        for number in range(size):
            variable[number] = values[number]
with netCDF4.Dataset("values.nc") as file:
    total = float(file["root"][:].sum())
compute()
print(size, "values,", f"{total:.3f}")
