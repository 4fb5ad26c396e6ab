"""Waits for requests of pario's MPI-IO are time of the call that waits, in the log."""

from pathlib import Path

import pytest

from pario.see.tables import read
from tests.mpi.conftest import MPIS, Mpi, environment, need
from tests.support.commands import run_job

pytestmark = [pytest.mark.mpi, pytest.mark.system]
PROGRAM = Path(__file__).with_name("programs") / "wait_late.py"


@pytest.mark.parametrize("mpi", [MPIS["mpich-5"], MPIS["openmpi-5"]], ids=lambda mpi: mpi.name)
def test_the_wait_for_a_late_rank_is_time_of_mpi_wait(mpi: Mpi, tmp_path: Path) -> None:
    need(mpi, mpi.python)
    variables = environment(tmp_path / "log") | {"PARIO_MPIIO": "1"}
    command = mpi.start(str(mpi.python), str(PROGRAM), str(tmp_path / "file"), ranks=2)
    done = run_job(command, tmp_path, variables)
    assert done.returncode == 0, done.stdout
    job = read([tmp_path / "log"])
    [early] = [
        row
        for row in job.functions
        if job.function_names[row["name"]] == "MPI_Wait"
        and job.processes["rank"][row["process"]] == 0
    ]
    assert early["calls"] == 1
    assert early["seconds"] > 0.3
