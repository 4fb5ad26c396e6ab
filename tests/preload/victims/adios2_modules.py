"""Writes and reads variables with ADIOS2's Python module, one value a step, and tries a file that
does not exist."""

import numpy as np
from adios2 import Adios, Stream, bindings

with Stream("python.bp", "w") as stream:
    for step in stream.steps(5):
        stream.write("value", float(step.current_step()))
        stream.write("block", np.arange(100, dtype=np.int32), [100], [0], [100])
io = Adios().declare_io("missing")
for _ in range(3):
    try:
        io.open("missing.bp", bindings.Mode.Read)
    except RuntimeError:
        print("missing")
with Stream("python.bp", "r") as stream:
    print(sum(int(stream.read("block").sum()) for _ in stream.steps()))
