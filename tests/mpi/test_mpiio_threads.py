"""pario's MPI-IO called by several threads of each rank at the same time
(programs/open_threads.c)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi
RANKS = 4


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(
        compile_program(mpi, PROGRAMS / "open_threads.c", tmp_path_factory.mktemp("open-threads"))
    )


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("files", ["self", "copies", "started"])
def test_files_of_several_threads_do_not_meet(
    mpi: Mpi, program: str, files: str, nodes: int, tmp_path: Path
) -> None:
    environment = under_pario(need_library(), {"PARIO_NODES": str(nodes)})
    done = run_job(mpi.start(program, str(tmp_path), files, ranks=RANKS), tmp_path, environment)
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert said == [f"rank {rank}: good" for rank in range(RANKS)], done.stdout
