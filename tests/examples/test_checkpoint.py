"""Checkpoints written by C and Fortran without pario are equal, and pario reads them; both programs
read pario's checkpoints."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint.geometry import whole
from pario.cli import main
from tests.examples.hdf5 import need_hdf5
from tests.mpi.conftest import MPIS, ROOT, Mpi, need
from tests.python.support import threads
from tests.support.commands import run_command

SOURCE = ROOT / "examples" / "checkpoint"
SHAPE = (20, 30, 40)
Z, Y, X = np.indices(SHAPE)
ARRAYS = {
    "temperature": 0.5 + X + 40 * (Y + 30.0 * Z),
    "phase": ((X + 2 * Y + 3 * Z) % 7).astype("<i4"),
}

pytestmark = [pytest.mark.mpi, pytest.mark.system]
pytest.importorskip("mpi4py")


def run(*words: object) -> str:
    done = run_command([str(word) for word in words])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["mpich-4", "openmpi-4"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """MPIs with a Fortran module."""
    chosen = MPIS[request.param]
    need(chosen, chosen.fc)
    need_hdf5()
    return chosen


@pytest.fixture(scope="module")
def programs(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    build = tmp_path_factory.mktemp(mpi.name)
    run(
        "make",
        "-C",
        SOURCE,
        "all",
        "fortran",
        f"MPICC={mpi.cc}",
        f"MPIFORT={mpi.fc}",
        f"BUILD={build}",
        "CFLAGS=-O2 -Wall -Wextra -Werror",
    )
    return [build / "checkpoint", build / "checkpoint_f90"]


def load_and_compare(mpi: Mpi, programs: list[Path], path: Path) -> None:
    for program, ranks in zip(programs, (3, 2), strict=False):
        assert (
            run(*mpi.start(str(program), "load", str(path), ranks=ranks))
            == f"{path}: step 2, time 0.25, {ranks} ranks, 0 wrong\n"
        )


def test_c_and_fortran_write_what_pario_reads(
    mpi: Mpi, programs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [tmp_path / program.name for program in programs]
    for program, place, ranks in zip(programs, places, (4, 1), strict=True):
        place.mkdir()
        run(*mpi.start(str(program), "save", str(place / "step-00000002.h5"), ranks=ranks))
        load_and_compare(mpi, programs, place / "step-00000002.h5")
        state = checkpoint.load(None, place)
        assert (state.step, state.attrs, state.path.name) == (2, {"time": 0.25}, "step-00000002.h5")
        assert state.dims("temperature") == state.dims("phase") == ("z", "y", "x")
        assert {name: (array.dtype.str, array.tobytes()) for name, array in state.items()} == {
            name: (array.dtype.str, array.tobytes()) for name, array in ARRAYS.items()
        }
        assert main(["checkpoint", "show", str(place)]) == 0
        assert "20 z × 30 y × 40 x" in capsys.readouterr().out
        assert main(["checkpoint", "verify", str(place)]) == 0
        assert "has no checksums: it was not saved by pario" in capsys.readouterr().out
    assert main(["checkpoint", "diff", *map(str, places)]) == 0
    assert capsys.readouterr().out == ""


def test_c_and_fortran_read_what_pario_writes(
    mpi: Mpi, programs: list[Path], tmp_path: Path
) -> None:
    def save(ranks: threads.ThreadRanks) -> Path:
        box = checkpoint.divide(SHAPE, ranks.size, ranks.rank)
        parts = {
            name: checkpoint.block(array[box.within(whole(SHAPE))], SHAPE, box.begin)
            for name, array in ARRAYS.items()
        }
        with checkpoint.Writer(ranks, tmp_path, durable=False) as writer:
            return writer.save(2, parts, {"time": 0.25})

    load_and_compare(mpi, programs, threads.run(3, save)[0])


def test_what_only_hdf5_can_read_is_read_by_it(
    mpi: Mpi, programs: list[Path], tmp_path: Path
) -> None:
    path = tmp_path / "chunks.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("temperature", data=ARRAYS["temperature"], compression="gzip")
        file["phase"] = ARRAYS["phase"].astype(">i2")
        file.attrs.update({"step": 2, "time": 0.25})
    load_and_compare(mpi, programs[:1], path)
