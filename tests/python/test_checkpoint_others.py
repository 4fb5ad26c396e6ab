"""Checkpoints read by other programs, and checkpoints with more elements and bytes than 32 bits
count."""

import shutil

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import Writer, block
from pario.checkpoint.examine import damages
from pario.checkpoint.geometry import whole
from pario.checkpoint.header import read_header
from tests.python.support import threads
from tests.support.commands import run_command

T = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.exhaustive
@pytest.mark.skipif(
    not shutil.which("ncdump"), reason="ncdump is not here (make test-all installs netcdf-bin)"
)
@pytest.mark.parametrize("files", [1, 2])
def test_netcdf_tools_show_axes_units_and_numbers(tmp_path, files):
    def save(ranks):
        box = checkpoint.divide(T.shape, ranks.size, ranks.rank)
        given = {
            "T": block(
                T[box.within(whole(T.shape))], T.shape, box.begin, dims=("z", "y", "x"), units="K"
            ),
            "x": checkpoint.replicated(np.arange(4.0) / 2, dims=("x",)),
        }
        with Writer(ranks, tmp_path, durable=False, files=files) as writer:
            return writer.save(3, given, {"time": 0.25})

    saved = threads.run(2, save)[0]
    path = saved / "master.h5" if saved.is_dir() else saved
    told = run_command(["ncdump", "-v", "T,x", str(path)], status=0).stdout
    lines = [line.strip() for line in told.splitlines()]
    expected = [
        "z = 2 ;",
        "y = 3 ;",
        "x = 4 ;",
        "double T(z, y, x) ;",
        'string T:units = "K" ;',
        ":time = 0.25 ;",
        "x = 0, 0.5, 1, 1.5 ;",
    ]
    assert [line for line in expected if line not in lines] == [], told
    assert "20, 21, 22, 23 ;" in lines


@pytest.mark.exhaustive
def test_more_elements_and_bytes_than_32_bits_count(tmp_path):
    """Broadcasts one row, which takes no memory: more than 2 GiB of single bytes on one rank."""
    row = np.arange(1 << 16, dtype=np.int64).astype("i1")
    shape = ((1 << 15) + 3, row.size)
    with Writer(None, tmp_path, durable=False) as writer:
        path = writer.save(1, {"T": block(np.broadcast_to(row, shape), shape, (0, 0))})
    assert np.prod(shape) > 1 << 31
    state = checkpoint.load(None, tmp_path)
    for first in (0, (1 << 15) - 1, shape[0] - 1):  # before, around and after element 2^31
        assert (state.read("T", (first, 0), (1, row.size)) == row).all()
    assert list(damages(read_header(path))) == []
    path.unlink()  # pytest keeps the files of tests for some time
