"""Writes and reads a variable with netCDF4-python, an element a call."""

import netCDF4

with netCDF4.Dataset("python.nc", "w") as file:
    file.createDimension("place", 20)
    variable = file.createGroup("runs").createVariable("elements", "f8", ("place",))
    for i in range(20):
        variable[i] = i
with netCDF4.Dataset("python.nc") as file:
    print(file["runs/elements"][:5].sum())
