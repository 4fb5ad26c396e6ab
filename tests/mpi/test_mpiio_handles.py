"""Several handles of one file at the same time (programs/handles.c): none overwrites the bytes of
another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi
RANKS, ROUNDS = 4, 200


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_program(mpi, PROGRAMS / "handles.c", tmp_path_factory.mktemp("handles")))


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("how", ["alone", "together"])
def test_holes_are_not_written_back_over_what_others_write(
    mpi: Mpi, program: str, how: str, nodes: int, tmp_path: Path
) -> None:
    environment = under_pario(need_library(), {"PARIO_NODES": str(nodes)})
    command = mpi.start(program, str(tmp_path), how, str(ROUNDS), ranks=RANKS)
    done = run_job(command, tmp_path, environment)
    assert (
        done.returncode == 0 and f"0 of {RANKS * ROUNDS * 64 * 24} bytes are wrong" in done.stdout
    ), done.stdout
