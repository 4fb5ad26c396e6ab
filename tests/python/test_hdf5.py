"""HDF5 files made in memory."""

import h5py
import numpy as np

from pario import hdf5


def test_an_image_has_the_bytes_that_hdf5_would_write():
    image = hdf5.Image()
    with h5py.File(image, "w", userblock_size=4096) as file:
        far = hdf5.add_contiguous(file, "far", (1 << 40,), "u1").get_offset()
        file["near"] = np.arange(1000)
    assert image.size > 1 << 40 and sum(len(content) for _, content in image.pieces()) < 1 << 20
    assert image.pieces()[0][0] == 4096
    copy = hdf5.Image(image.pieces(), image.size)
    with h5py.File(copy, "r") as file:
        assert file["far"].id.get_offset() == far and (file["near"][...] == np.arange(1000)).all()
