"""pario's definitions of MPI functions in programs with no MPI, or only a part of it."""

import pytest

from tests.mpi.conftest import PROGRAMS, environment
from tests.support.commands import run_command


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("without") / "without_mpi"
    run_command(["cc", "-O1", "-o", path, PROGRAMS / "without_mpi.c"], status=0)
    return path


def start(program, tmp_path, what):
    return run_command([program, what], env=environment(tmp_path))


def test_asking_whether_mpi_is_initialised_answers_no(program, tmp_path):
    assert start(program, tmp_path, "initialized").stdout == "no MPI\n"


def test_calling_a_function_without_an_mpi_returns_an_error_and_says_so_once(program, tmp_path):
    done = start(program, tmp_path, "init")
    assert done.stdout == "MPI_Init failed\nMPI_Barrier failed\n"
    assert done.stderr.count("no loaded MPI library") == 1
