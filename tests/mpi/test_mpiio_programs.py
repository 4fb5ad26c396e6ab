"""Programs under pario's MPI-IO, traced and not: every routine of data access, views, modes, hints,
error handlers of C and of Fortran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program, environment, need, parameters
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi

both_ways = pytest.mark.parametrize("traced", [False, True], ids=["untraced", "traced"])
ranks_1_3 = pytest.mark.parametrize("ranks", [1, 3])


def with_pario(place: Path, traced: bool) -> dict[str, str]:
    logs = place / "logs"
    logs.mkdir()
    return environment(logs) | {"PARIO_MPIIO": "1"} if traced else under_pario(need_library())


def passes(mpi: Mpi, command: list[str], ranks: int, place: Path, traced: bool) -> list[str]:
    """Runs a program that says "No Errors"; returns the lines it printed."""
    data = place / "data"
    data.mkdir()
    job = mpi.start(*command, str(data / "file"), ranks=ranks)
    done = run_job(job, data, with_pario(place, traced))
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert (done.returncode, lines[-1:]) == (0, ["No Errors"]), done.stdout
    assert list(data.iterdir()) == [], "files were left behind"
    return lines


@pytest.mark.system
@ranks_1_3
@both_ways
@pytest.mark.parametrize("mpi", parameters())
def test_views_requests_and_handlers(mpi: Mpi, ranks: int, traced: bool, tmp_path: Path) -> None:
    lines = passes(
        mpi, [str(compile_program(mpi, PROGRAMS / "mpiio.c", tmp_path))], ranks, tmp_path, traced
    )
    assert "MPI_File_seek: the offset lies before the beginning of the view" in lines


@pytest.mark.system
@ranks_1_3
@both_ways
@pytest.mark.parametrize("mpi", parameters())
def test_modes_hints_and_types(mpi: Mpi, ranks: int, traced: bool, tmp_path: Path) -> None:
    lines = passes(
        mpi,
        [str(compile_program(mpi, PROGRAMS / "file_modes.c", tmp_path))],
        ranks,
        tmp_path,
        traced,
    )
    assert "MPI_File_set_info: unknown hint cb_buffer_sise: did you mean cb_buffer_size?" in lines


@pytest.mark.system
@pytest.mark.parametrize("mpi", parameters())
def test_a_collective_call_follows_the_moves_of_the_shared_pointer(
    mpi: Mpi, tmp_path: Path
) -> None:
    program = str(compile_program(mpi, PROGRAMS / "shared_pointer.c", tmp_path))
    passes(mpi, [program], 3, tmp_path, False)


@pytest.mark.system
@ranks_1_3
@both_ways
@pytest.mark.parametrize(
    "mpi", parameters(lambda mpi: mpi.name != "openmpi-4")
)  # it has no sessions yet
def test_files_of_sessions(mpi: Mpi, ranks: int, traced: bool, tmp_path: Path) -> None:
    passes(
        mpi,
        [str(compile_program(mpi, PROGRAMS / "session_files.c", tmp_path))],
        ranks,
        tmp_path,
        traced,
    )


@pytest.mark.system
@ranks_1_3
@both_ways
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.python))
def test_every_routine_of_data_access(mpi: Mpi, ranks: int, traced: bool, tmp_path: Path) -> None:
    need(mpi, mpi.python)
    command = mpi.start(
        str(mpi.python), str(PROGRAMS / "all_access.py"), str(tmp_path), ranks=ranks
    )
    done = run_job(command, tmp_path, with_pario(tmp_path, traced))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("source", ["handler_mpif.f90", "handler_use.f90", "handler_f08.f90"])
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.fc))
def test_error_handlers_of_fortran(mpi: Mpi, source: str, tmp_path: Path) -> None:
    passes(mpi, [str(compile_program(mpi, PROGRAMS / source, tmp_path))], 2, tmp_path, False)
