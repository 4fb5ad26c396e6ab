"""HDF5 files made in memory."""

import h5py
import numpy as np
import pytest

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


@pytest.mark.parametrize("offset", [0, 1, 4095, 4096, 8000])
@pytest.mark.parametrize("size", [1, 95, 96, 97, 4096, 20_000])
def test_an_image_of_pieces_has_their_bytes_and_changes_none_of_them(offset, size):
    content = bytes(np.arange(size).astype("u1") + 1)
    image = hdf5.Image([(offset, content)])
    image.seek(offset)
    image.write(b"\xff")
    image.seek(0)
    found = bytearray(offset + size)
    image.readinto(found)
    assert (bytes(found), image.size) == (bytes(offset) + b"\xff" + content[1:], offset + size)
    assert b"".join(part for _, part in image.pieces())[-size:] == found[-size:]
    assert content[0] == 1
