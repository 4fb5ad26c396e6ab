"""Checkpoints under the other MPIs: saved with the MPI's own MPI-IO and with pario's, loaded on
another number of ranks."""

import os
import sys
from pathlib import Path

import pytest

from tests.mpi.conftest import MPIS, PROGRAMS, Mpi, environment, mpi4py_of, need
from tests.support.commands import run_command

pytest.importorskip("mpi4py")


@pytest.fixture(params=["mpich-4", "openmpi-4", "openmpi-5"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """The MPIs that the quick tests do not use."""
    chosen = MPIS[request.param]
    need(chosen)
    return chosen


@pytest.mark.system
@pytest.mark.mpi
@pytest.mark.parametrize("mpiio", ["own", "pario"])
def test_saved_and_loaded(mpi: Mpi, mpiio: str, tmp_path: Path) -> None:
    variables = (
        environment(tmp_path) | {"PARIO_MPIIO": "1"} if mpiio == "pario" else dict(os.environ)
    )
    for what, ranks in (("save", 3), ("load", 2)):
        command = mpi.start(
            sys.executable,
            "-m",
            "mpi4py",
            str(PROGRAMS / "checkpoints.py"),
            what,
            str(tmp_path / "ckpt"),
            "30",
            ranks=ranks,
        )
        done = run_command(command, env=variables | mpi4py_of(mpi, tmp_path))
        assert done.stdout == "good\n", done.stderr
