"""Writes a few values in each of many steps of ADIOS2, instead of several time steps in one."""

import adios2
import numpy as np
from work import compute, repaired, size

VALUES = 16
steps, each = (1, size) if repaired else (size, 1)
history = np.arange(size * VALUES, dtype="f8").reshape(size, VALUES)
with adios2.Stream("history.bp", "w") as stream:
    for step in range(steps):
        stream.begin_step()
        part = history[step * each : (step + 1) * each]
        stream.write("values", part, list(part.shape), [0, 0], list(part.shape))
        stream.end_step()
compute()
with adios2.Stream("history.bp", "r") as stream:
    total = sum(float(stream.read("values").sum()) for _ in stream.steps())
print(size, "time steps, sum", total)
