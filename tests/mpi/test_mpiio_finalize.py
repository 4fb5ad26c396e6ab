"""Files of pario's MPI-IO that are open when MPI_Finalize begins (programs/finalize.c)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi
RANKS, PIECE, PIECES = 3, 100, 3000
MERGE, BEHIND = "pario_merge_collectives=64M", "pario_write_behind=64M"


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_program(mpi, PROGRAMS / "finalize.c", tmp_path_factory.mktemp("finalize")))


def run_program(
    mpi: Mpi, program: str, how: str, nodes: int, place: Path, hints: str = MERGE
) -> str:
    """Returns the output. The hints delay writes until the file is closed."""
    variables = {"PARIO_NODES": str(nodes), "PARIO_HINTS": f"*:{hints}"}
    environment = under_pario(need_library(), variables | {"UCX_TLS": "^tcp"})
    done = run_job(mpi.start(program, str(place), how, ranks=RANKS), place, environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def right() -> bytes:
    turn = b"".join(bytes([ord("a") + rank]) * PIECE for rank in range(RANKS))
    return turn * PIECES * 2


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_callback_in_mpi_finalize_can_write_and_close_a_file(
    mpi: Mpi, program: str, nodes: int, tmp_path: Path
) -> None:
    assert run_program(mpi, program, "close", nodes, tmp_path) == ""
    assert (tmp_path / "file").read_bytes() == right()


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("hints", [MERGE, BEHIND, f"{MERGE}:{BEHIND}"])
def test_delayed_writes_are_in_the_file_after_mpi_finalize(
    mpi: Mpi, program: str, hints: str, nodes: int, tmp_path: Path
) -> None:
    output = run_program(mpi, program, "check", nodes, tmp_path, hints)
    counts = [line for line in output.splitlines() if line.startswith("rank ")]
    assert sorted(counts) == [f"rank {rank}: {2 * PIECES} pieces" for rank in range(RANKS)]
    assert (tmp_path / "file").read_bytes() == right()


@pytest.mark.system
def test_a_file_that_is_left_open_is_named(mpi: Mpi, program: str, tmp_path: Path) -> None:
    output = run_program(mpi, program, "leave", 1, tmp_path)
    assert [line for line in output.splitlines() if "left open" in line] == RANKS * [
        "pario: 1 file(s) of MPI-IO left open at MPI_Finalize, MPI_File_close was not called:"
        f" {tmp_path / 'file'}"
    ]
