"""Wrong arguments of one rank in collective calls of pario's MPI-IO (programs/arguments.c): all
ranks get the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi

RANKS = 3
#: The error class of each mistake; a read-only file is read-only on all ranks.
CLASSES = {
    "count": "MPI_ERR_COUNT",
    "type": "MPI_ERR_TYPE",
    "uncommitted": "MPI_ERR_TYPE",
    "buffer": "MPI_ERR_BUFFER",
    "offset": "MPI_ERR_ARG",
    "null_handle": "MPI_ERR_FILE",
    "closed_handle": "MPI_ERR_FILE",
    "size": "MPI_ERR_ARG",
    "whence": "MPI_ERR_ARG",
    "representation": "MPI_ERR_UNSUPPORTED_DATAREP",
    "mode": "MPI_ERR_AMODE",
    "read_only": "MPI_ERR_READ_ONLY",
    "usable": "none",
    "none": "none",
}
#: Lines of each rank: 56 mistakes in data accesses and 12 in other calls, each followed by a
#: correct call; then opening, six calls on a read-only file, and closing.
LINES = 2 * (56 + 12) + 1 + 6 + 1


def lines_of(mpi: Mpi, folder: Path, nodes: int) -> list[str]:
    """Returns the ranks' output; a call that would hang ends with an error of another class."""
    program = str(compile_program(mpi, PROGRAMS / "arguments.c", folder))
    hints = {"PARIO_HINTS": "*:pario_patience=60", "PARIO_NODES": str(nodes)}
    job = mpi.start(program, str(folder / "file"), ranks=RANKS)
    return run_job(job, folder, under_pario(need_library(), hints)).stdout.splitlines()


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_wrong_argument_of_one_rank_is_an_error_of_all_and_the_file_stays_usable(
    mpi: Mpi, nodes: int, tmp_path: Path
) -> None:
    lines = lines_of(mpi, tmp_path, nodes)
    wrong = [line for line in lines if line.split()[3] != CLASSES[line.split()[2]]]
    assert wrong == []
    assert sorted(line.split()[0] for line in lines) == sorted(
        str(rank) for rank in range(RANKS) for _ in range(LINES)
    )
