"""A part of each suite that others wrote passes with pario's MPI-IO (tools/suites.sh runs all of them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi
from tests.suites.runs import run
from tests.suites.table import Program, Suite, suites

pytestmark = [pytest.mark.slow, pytest.mark.mpi]
CHOSEN = [
    pytest.param(suite, program, MPIS[mpi], id=f"{suite.name}-{program.name}-{program.ranks}-{mpi}")
    for suite in suites().values()
    for program in suite.programs
    for mpi in suite.quick_mpis
    if program.name in suite.quick and mpi != "mpich-5-abi"
]


@pytest.mark.parametrize(("suite", "program", "mpi"), CHOSEN)
def test_program(suite: Suite, program: Program, mpi: Mpi, tmp_path: Path) -> None:
    result = run(suite, program, mpi, need_library())
    if result.verdict == "skipped":
        pytest.skip(result.why)
    assert result.verdict == "passed", f"{result.why}\n{result.output[-3000:]}"
