"""Fortran's three interfaces and mpi4py: the log must not depend on how a program calls MPI."""

import pytest

from tests.mpi.conftest import RANKS, parameters

FORTRAN = parameters(lambda mpi: mpi.fc)
PYTHON = parameters(lambda mpi: mpi.python)

COMMON = {
    "MPI_Bcast": (1, 80),
    "MPI_Allreduce": (1, 160),
    "MPI_Comm_split": (1, 0),
    "MPI_Barrier": (2, 0),
    "MPI_File_open": (1, 0),
    "MPI_File_write_at_all": (1, 800),
    "MPI_File_sync": (1, 0),
    "MPI_File_read_at": (1, 800),
    "MPI_File_close": (1, 0),
    "MPI_Comm_free": (1, 0),
    "MPI_Finalize": (1, 0),
}


@pytest.mark.parametrize("source", ["talk_mpif.f90", "talk_use.f90", "talk_f08.f90"])
@pytest.mark.parametrize("mpi", FORTRAN)
def test_fortran_calls_are_counted_once(mpi, source, run_traced):
    run = run_traced(mpi, source)
    messages = [{"MPI_Send": (1, 240)}, {"MPI_Recv": (1, 240)}, {}]
    for rank in range(RANKS):
        assert run.functions[rank] == {**COMMON, "MPI_Init": (1, 0), **messages[rank]}


@pytest.mark.system
@pytest.mark.parametrize("mpi", PYTHON)
def test_mpi4py_is_traced_and_finds_the_functions_its_mpi_has(mpi, run_traced):
    run = run_traced(mpi, "talk.py")
    for rank in range(RANKS):
        assert run.functions[rank] == {
            **COMMON,
            "MPI_Init_thread": (1, 0),
            "MPI_Allgather": (1, 32),
            "MPI_Allgatherv": (1, 32),
        }
        assert f"rank {rank} done" in run.output
    assert "pario" not in run.errors
