"""Module comm on real MPIs: runs comm_ranks (tests/unit, built by `make unit`) on several ranks and
pretended nodes."""

import os
from pathlib import Path

import pytest

from tests.mpi.conftest import ROOT, Mpi, need, parameters
from tests.support.commands import run_command

LIBRARIES = {
    "mpich-5": "libmpi.so.12",
    "mpich-5-abi": "libmpi_abi.so.1",
    "mpich-4": "libmpich.so.12",
    "openmpi-4": "libmpi.so.40",
    "openmpi-5": "libmpi.so.40",
    "intel-mpi": "libmpi.so.12",
}


def program() -> str:
    """Returns PARIO_TEST_RANKS, or the program of preset dev.

    Builds with sanitizers do not work with the libraries of all MPIs.
    """
    path = Path(os.environ.get("PARIO_TEST_RANKS", ROOT / "build/dev/tests/unit/comm_ranks"))
    if not path.exists():
        pytest.skip(f"{path} is not built (make unit)")
    return str(path)


def library(mpi: Mpi) -> str:
    """Returns the MPI's library: beside the launcher in a wheel, else a name for the loader."""
    name = LIBRARIES[mpi.name]
    beside = Path(mpi.launcher).parent.parent / "lib" / name
    return str(beside) if beside.exists() else name


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 4, 7])
@pytest.mark.parametrize("mpi", parameters())
def test_ranks_of_an_mpi_pass_the_conformance_suite(mpi: Mpi, ranks: int, nodes: int) -> None:
    need(mpi)
    command = mpi.start(program(), library(mpi), "--gtest_brief=1", ranks=ranks)
    environment = {**os.environ, "PARIO_NODES": str(nodes)}
    done = run_command(command, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == ranks
