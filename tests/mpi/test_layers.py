"""Diagnoses of layers.c: causes that lie between the program, MPI-IO and the file system."""

from __future__ import annotations

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import Analysis, FileRow, Finding
from tests.mpi.conftest import MPIS, RANKS

MPICH = MPIS["mpich-5"]


@pytest.fixture(scope="session")
def diagnose(run_traced):
    """Returns the analysis of a run of layers.c: ``diagnose("syncs", 100)``."""

    def run(kind: str, count: int = 1) -> Analysis:
        return analyze(run_traced(MPICH, "layers.c", kind, str(count)).job)

    return run


def finding(analysis: Analysis, rule: str) -> Finding:
    found = {finding.rule: finding for finding in analysis.findings}
    assert rule in found, [one.title for one in analysis.findings]
    return found[rule]


def shared_file(analysis: Analysis) -> FileRow:
    return next(row for row in analysis.files if row.path.endswith("out.dat"))


def test_a_sync_through_mpi_io_is_one_sync(diagnose) -> None:
    analysis = diagnose("syncs", 100)
    syncs = finding(analysis, "sync-storm")
    assert syncs.evidence[0].values["syncs"] == 100 * RANKS
    row = shared_file(analysis)
    assert (row.opens, row.writes) == (RANKS, 100 * RANKS)
    assert row.calls == RANKS * (1 + 100 + 100 + 1)


def test_an_open_through_mpi_io_is_one_open(diagnose) -> None:
    analysis = diagnose("opens", 50)
    opens = finding(analysis, "open-close-loop")
    assert opens.evidence[0].values["opens"] == 50 * RANKS
    assert shared_file(analysis).opens == 50 * RANKS


def test_time_in_barriers_is_waiting_with_a_row_of_its_own(diagnose) -> None:
    analysis = diagnose("late", 10)
    rows = {row.name: row for row in analysis.functions}
    assert rows["waiting for other ranks"].seconds >= rows["MPI_Barrier"].seconds * 0.99
    assert analysis.verdict.mean.waiting * RANKS >= rows["MPI_Barrier"].seconds * 0.99
