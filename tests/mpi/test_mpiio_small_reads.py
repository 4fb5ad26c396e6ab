"""Series of small reads (programs/small_reads.c): the system calls that they take, and the changes
of the file that they see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

CALLS = 2000
CHANGES = ("message", "request", "sync", "other handle", "own writes", "collective writes")

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_program(mpi, PROGRAMS / "small_reads.c", tmp_path_factory.mktemp("reads")))


def run_program(mpi: Mpi, program: str, ranks: int, hints: str, place: Path) -> dict[str, int]:
    """Returns the first number of each line by its name."""
    environment = under_pario(need_library(), {"PARIO_HINTS": hints})
    done = run_job(mpi.start(program, str(place), ranks=ranks), place, environment)
    assert done.returncode == 0, done.stdout
    assert "wrong" not in done.stdout.replace(", 0 wrong", "") and "end: 0, 0" in done.stdout
    return {name: int(count) for name, count in re.findall(r"^(.*): (\d+) ", done.stdout, re.M)}


@pytest.mark.system
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_series_take_few_system_calls_and_see_all_changes(
    mpi: Mpi, program: str, ranks: int, tmp_path: Path
) -> None:
    found = run_program(mpi, program, ranks, "", tmp_path)
    assert {name: found[name] for name in CHANGES} == dict.fromkeys(CHANGES, 0)
    for kind in ("collective", "independent"):
        assert found[kind] < ranks * CALLS / 2, found  # a loaded machine may drop windows


@pytest.mark.system
def test_the_hint_switches_windows_off(mpi: Mpi, program: str, tmp_path: Path) -> None:
    found = run_program(mpi, program, 2, "*:pario_run_ahead=disable", tmp_path)
    assert found["collective"] >= 2 * CALLS and found["independent"] >= 2 * CALLS
