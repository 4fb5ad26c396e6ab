"""Writes and reads a chunked, compressed, growing dataset."""

import h5py
import numpy as np

with h5py.File("chunks.h5", "w") as file:
    data = file.create_dataset(
        "data", (0, 64), maxshape=(None, 64), chunks=(16, 64), compression="gzip", dtype="f8"
    )
    for step in range(20):
        data.resize((step + 1) * 16, axis=0)
        data[step * 16 :] = np.arange(16 * 64).reshape(16, 64) + step
    file["contiguous"] = np.arange(1 << 17, dtype="i8")
with h5py.File("chunks.h5") as file:
    print(file["data"][:].sum(), file["data"].shape, file["contiguous"][:].sum())
