"""Requests of pario's MPI-IO that are cancelled or freed: I/O that has begun is not undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

RANKS = 3


@pytest.mark.mpi
@pytest.mark.system
def test_a_cancelled_write_is_complete_and_not_called_cancelled(mpi: Mpi, tmp_path: Path) -> None:
    program = compile_program(mpi, PROGRAMS / "cancelled.c", tmp_path)
    command = mpi.start(program, str(tmp_path), ranks=RANKS)
    done = run_job(command, tmp_path, under_pario(need_library()))
    expected = []
    for rank in range(RANKS):
        next_rank = "abc"[(rank + 1) % RANKS]
        expected += [
            f"rank {rank}: cancel 000, cancelled 0, count 1000",
            f"rank {rank}: free 000, null 1",
            f"rank {rank}: read {next_rank}{next_rank}",
        ]
    assert sorted(done.stdout.splitlines()) == sorted(expected)
    written = (tmp_path / "bytes").read_bytes()
    assert written == 2 * b"".join(letter * 1000 for letter in (b"a", b"b", b"c"))
