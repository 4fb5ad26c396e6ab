"""The parallel tests of HDF5 and PnetCDF pass under pario's tracing and print the same
(tests/suites runs them with pario's MPI-IO)."""

from __future__ import annotations

import pytest

from tests.mpi.conftest import MPIS, need
from tests.programs.conftest import Compare
from tests.suites.recipes import build
from tests.suites.sources import Unavailable
from tests.suites.table import Program, suites

RANKS = 2
MPI_OF = {"hdf5": MPIS["mpich-4"], "pnetcdf": MPIS["openmpi-4"]}
CHOSEN = {
    "hdf5": ["t_mpi", "t_pread", "t_init_term"],
    "pnetcdf": [
        "alignment_test",
        "flexible",
        "ivarn",
        "nonblocking",
        "one_record",
        "record",
        "scalar",
        "vectors",
        "varn_int",
    ],
}
#: Addresses, times, and lines in which the output of several ranks is mixed.
DIFFERENT = r"0x[0-9a-f]+|\d+\.\d+ ?s(ec\w*)?\b|MPI-process \d\.|hostname=\S+"

#: The suites share a folder of sources and programs.
pytestmark = [pytest.mark.system, pytest.mark.mpi, pytest.mark.xdist_group("suites")]


@pytest.mark.parametrize(
    ("suite", "name"), [(suite, name) for suite, names in CHOSEN.items() for name in names]
)
def test_suite(suite: str, name: str, same_under_pario: Compare) -> None:
    mpi = MPI_OF[suite]
    need(mpi)
    try:
        program = build(suites()[suite], Program(suite, name, RANKS, ()), mpi)
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    arguments = ["./test.nc"] if suite == "pnetcdf" else []
    traced = same_under_pario(
        mpi.start(*program, *arguments, ranks=RANKS), hide=DIFFERENT, ordered=False
    )
    assert (
        len({process["rank"] for process in traced.job.processes if process["rank"] >= 0}) == RANKS
    )
    if suite == "pnetcdf":
        assert (
            traced.count("writes", "test.nc", "mpiio") + traced.count("opens", "test.nc", "mpiio")
            > 0
        )
