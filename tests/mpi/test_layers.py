"""Diagnoses of layers.c: causes that lie between the program, MPI-IO and the file system."""

from __future__ import annotations

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Analysis, FileRow
from pario.see.analyze.rules import RULES
from pario.see.analyze.split import Times
from pario.see.tables.model import Job
from tests.mpi.conftest import MPIS, RANKS

MPICH = MPIS["mpich-5"]


@pytest.fixture(scope="session")
def diagnose(run_traced):
    """Returns the analysis of a run of layers.c: ``diagnose("syncs", 100)``."""

    def job(kind: str, count: int = 1) -> Job:
        return run_traced(MPICH, "layers.c", kind, str(count)).job

    def run(kind: str, count: int = 1) -> Analysis:
        return analyze(job(kind, count))

    run.job = job
    return run


def evidence(job: Job, name: str) -> dict[str, float]:
    """Returns the figures of the one candidate of a rule, however few seconds it claims."""
    (rule,) = (rule for rule in RULES if rule.name == name)
    (candidate,) = rule.find(Facts(Times(job)))
    return candidate.evidence[0].values


def shared_file(analysis: Analysis) -> FileRow:
    return next(row for row in analysis.files if row.path.endswith("out.dat"))


@pytest.mark.system
def test_a_sync_through_mpi_io_is_one_sync(diagnose) -> None:
    analysis = diagnose("syncs", 100)
    assert evidence(diagnose.job("syncs", 100), "sync-storm")["syncs"] == 100 * RANKS
    row = shared_file(analysis)
    assert (row.opens, row.writes) == (RANKS, 100 * RANKS)
    assert row.calls == RANKS * (1 + 100 + 100 + 1)


@pytest.mark.system
def test_an_open_through_mpi_io_is_one_open(diagnose) -> None:
    analysis = diagnose("opens", 50)
    assert evidence(diagnose.job("opens", 50), "open-close-loop")["opens"] == 50 * RANKS
    assert shared_file(analysis).opens == 50 * RANKS


@pytest.mark.system
def test_time_in_barriers_is_waiting_with_a_row_of_its_own(diagnose) -> None:
    analysis = diagnose("late", 10)
    rows = {row.name: row for row in analysis.functions}
    assert rows["waiting for other ranks"].seconds >= rows["MPI_Barrier"].seconds * 0.99
    assert analysis.verdict.mean.waiting * RANKS >= rows["MPI_Barrier"].seconds * 0.99


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "count", "rule"),
    [
        ("collectives", 3000, "tiny-collective-calls"),
        ("ordered", 2000, "shared-file-pointer"),
        ("sparse_reads", 500, "amplification"),
        ("holes", 30, "hole-read-modify-write"),
        ("tiny_buffer", 10, "tiny-collective-buffer"),
        ("pieces", 40, "mpi-library-time"),
    ],
)
def test_the_first_finding_names_the_cause(diagnose, kind: str, count: int, rule: str) -> None:
    """The ranks count as never having waited for a processor, as on a machine without other load:
    rules are silent where they waited for long."""
    job = diagnose.job(kind, count)
    job.processes["run_queue_delay"] = 0
    analysis = analyze(job)
    assert analysis.findings[0].rule == rule, [one.title for one in analysis.findings]


@pytest.mark.system
def test_bytes_through_mpi_io_of_one_process_are_tiny_calls(run_traced) -> None:
    analysis = analyze(run_traced(MPICH, "layers.c", "bytes", "300000").job)
    assert "tiny-independent-calls" in {one.rule for one in analysis.findings}


@pytest.mark.system
def test_unordered_writes_of_the_same_bytes_are_possible_corruption(diagnose) -> None:
    (row,) = diagnose("overlaps").overlaps
    assert row.path.endswith("/out.dat")
    assert (row.bytes, row.ranks) == (1000, tuple(range(RANKS)))
    assert {(one.begin, one.end) for one in row.ranges} == {(500, 1500)}
    assert {one.functions for one in row.ranges} == {("MPI_File_write_at", "MPI_File_write_at")}


@pytest.mark.parametrize("kind", ["in_turn", "token", "syncs", "collectives", "pieces"])
@pytest.mark.system
def test_ordered_writes_raise_no_alarm(diagnose, kind: str) -> None:
    assert diagnose(kind, 3).overlaps == ()
