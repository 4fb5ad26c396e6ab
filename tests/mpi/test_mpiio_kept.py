"""Writes that hints delay (programs/kept.c): their visibility to other ranks, their number, and
that none is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

RANKS = 3
ROW, ROWS, SLOTS = 8, 20, 500
BEHIND, MERGE = "pario_write_behind=64K", "pario_merge_collectives=64K"

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_program(mpi, PROGRAMS / "kept.c", tmp_path_factory.mktemp("kept")))


def run_program(
    mpi: Mpi, program: str, how: str, hints: str, place: Path, **variables: str
) -> list[str]:
    environment = under_pario(
        need_library(), variables | {"PARIO_HINTS": f"*:{hints}:pario_report=statistics"}
    )
    done = run_job(mpi.start(program, str(place), how, ranks=RANKS), place, environment)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def statistic(name: str, lines: list[str]) -> int:
    found = [
        int(match[1]) for line in lines if (match := re.fullmatch(rf"\s+{name}\s+(\d+)", line))
    ]
    assert len(found) == 1, lines
    return found[0]


def right(size: int) -> bytes:
    return bytes((i * 7 + i // 256) % 256 for i in range(size))


@pytest.mark.system
@pytest.mark.parametrize("nodes", ["1", "2"])
def test_many_small_writes_become_few_and_are_there_when_others_are_told(
    mpi: Mpi, program: str, nodes: str, tmp_path: Path
) -> None:
    lines = run_program(mpi, program, "behind", BEHIND, tmp_path, PARIO_NODES=nodes)
    for rank in range(RANKS):
        mine = [line for line in lines if line.startswith(f"rank {rank}: ")]
        assert mine == [f"rank {rank}: slot of the neighbour: same"] * 2 + [
            f"rank {rank}: size: right"
        ], lines
    assert (
        statistic("written_behind", lines)
        == statistic("independent_writes", lines)
        == RANKS * SLOTS
    )
    assert statistic("system_writes", lines) == statistic("writes_behind", lines)
    assert (tmp_path / "kept").read_bytes() == right(RANKS * SLOTS * ROW)


@pytest.mark.system
@pytest.mark.parametrize("nodes", ["1", "2"])
def test_collective_writes_become_one_exchange(
    mpi: Mpi, program: str, nodes: str, tmp_path: Path
) -> None:
    lines = run_program(mpi, program, "merged", MERGE, tmp_path, PARIO_NODES=nodes)
    for rank in range(RANKS):
        mine = [line for line in lines if line.startswith(f"rank {rank}: ")]
        assert mine == [f"rank {rank}: own row: same", f"rank {rank}: all arrays: same"], lines
    assert statistic("merged_calls", lines) == statistic("collective_writes", lines) == RANKS * 4
    assert statistic("merged_exchanges", lines) == RANKS
    assert (tmp_path / "kept").read_bytes() == right(4 * ROWS * ROW * RANKS)


def test_nothing_is_lost_when_a_file_is_never_closed(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    run_program(mpi, program, "left", f"{BEHIND}:{MERGE}", tmp_path)
    assert (tmp_path / "kept").read_bytes() == right((4 * ROWS + SLOTS) * ROW * RANKS)
