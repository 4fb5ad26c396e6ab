"""Test suites of other projects pass with pario's MPI-IO, under all MPIs.

A part of each suite belongs to the tests of the real systems, the rest to `make test-all`.
PARIO_SUITES_MPIIO=own runs them with the MPI's own MPI-IO, for comparison.
"""

from __future__ import annotations

import os

import pytest

from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi
from tests.suites.runs import run
from tests.suites.table import Program, Suite, suites

#: The suites share a folder of sources and programs.
pytestmark = [pytest.mark.mpi, pytest.mark.xdist_group("suites")]
OWN = os.environ.get("PARIO_SUITES_MPIIO") == "own"


def parameters() -> list[object]:
    """Yields each program under each MPI. tools/write_conformance.py reads the id."""
    chosen = ((suite, program) for suite in suites().values() for program in suite.programs)
    return [_parameter(*pair, mpi) for pair in chosen for mpi in pair[0].mpis]


def _parameter(suite: Suite, program: Program, mpi: str) -> object:
    words = [suite.name, program.name, str(program.ranks), mpi]
    quick = program.name in suite.quick and mpi in suite.quick_mpis
    return pytest.param(
        suite,
        program,
        MPIS[mpi],
        id=",".join([*words, "own"] if OWN else words),
        marks=pytest.mark.system if quick else pytest.mark.exhaustive,
    )


@pytest.mark.parametrize(("suite", "program", "mpi"), parameters())
def test_program(suite: Suite, program: Program, mpi: Mpi) -> None:
    result = run(suite, program, mpi, None if OWN else need_library())
    if result.verdict == "skipped":
        pytest.skip(result.why)
    assert result.verdict == "passed", f"{result.why}\n{result.output[-3000:]}"
