"""Test suites of other projects pass with pario's MPI-IO, under all MPIs.

A part of each suite belongs to the tests of the real systems, the rest to `make test-all`, which
also runs each program with the MPI's own MPI-IO for comparison. A program that fails with that
one is an expected failure.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi
from tests.suites.runs import run
from tests.suites.table import Program, Suite, suites

#: The suites share a folder of sources and programs.
pytestmark = [pytest.mark.mpi, pytest.mark.xdist_group("suites")]


def list_parameters() -> list[object]:
    """Lists each program under each MPI, with pario's MPI-IO and with the MPI's own.

    tools/write_conformance.py reads the ids.
    """
    return [
        _make_parameter(suite, program, mpi, own)
        for suite in suites().values()
        for program in suite.programs
        for mpi in suite.mpis
        for own in (False, True)
    ]


def _make_parameter(suite: Suite, program: Program, mpi: str, own: bool) -> object:
    words = [suite.name, program.name, str(program.ranks), mpi]
    quick = program.name in suite.quick and mpi in suite.quick_mpis and not own
    return pytest.param(
        suite,
        program,
        MPIS[mpi],
        own,
        id=",".join([*words, "own"] if own else words),
        marks=pytest.mark.system if quick else pytest.mark.exhaustive,
    )


@pytest.mark.parametrize(("suite", "program", "mpi", "own"), list_parameters())
def test_program(suite: Suite, program: Program, mpi: Mpi, own: bool, record_count: Any) -> None:
    result = run(suite, program, mpi, None if own else need_library())
    if result.verdict == "skipped":
        pytest.skip(result.why)
    record_count("milliseconds", round(1000 * result.seconds))
    if own and result.verdict == "failed":
        pytest.xfail(f"with {mpi.name}'s own MPI-IO: {result.why}")
    assert result.verdict == "passed", f"{result.why}\n{result.output[-3000:]}"
