"""The notes of pario's own MPI-IO in the table model."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pario.see.tables import read
from pario.see.tables.model import MPIIO_LARGEST, MPIIO_PHASES, MPIIO_SUMS, HintOutcome, Job
from tests.python.plog import ROOT, ProcessLog


def note(path: str = "/data/out", **fields: Any) -> dict[str, Any]:
    """Makes a note in the format of src/parallel/engine/report.cpp."""
    statistics = {
        "collective_writes": 40,
        "through_windows": 40,
        "system_writes": 10,
        "system_write_bytes": 1000,
        "bytes_written": 900,
    }
    statistics |= {
        "writers": 4,
        "aggregators": 2,
        "stripe_count": 8,
        "stripe_size": 1 << 20,
        "average_system_write": 100,
    }
    timers = {
        phase: {"min": 1_000_000, "max": 3_000_000, "avg": 2_000_000} for phase in MPIIO_PHASES
    }
    return {
        "note": "mpiio",
        "path": path,
        "ranks": 4,
        "nodes": 2,
        "statistics": statistics,
        "timers_ns": timers,
        "hints": [],
    } | fields


def hint(
    key: str, requested: str, applied: str = "", effective: str = "", reason: str = ""
) -> dict[str, str]:
    return {
        "key": key,
        "requested": requested,
        "applied": applied,
        "effective": effective,
        "reason": reason,
    }


def job_of(directory: Any, *notes: dict[str, Any], more: tuple[ProcessLog, ...] = ()) -> Job:
    records = [{"path": "/data/other"}, {"path": "/data/out", "opens": 1, "layer": 2}]
    for log in (ProcessLog(rank=0, size=4, records=records, notes=list(notes)), *more):
        log.write(directory)
    return read([directory])


def test_figures_and_times_of_a_file(tmp_path):
    job = job_of(tmp_path, note(record=1))
    (row,) = job.mpiio
    assert job.paths[row["path"]] == job.path(row["file"]) == "/data/out"
    assert (row["opens"], row["ranks"], row["nodes"]) == (1, 4, 2)
    assert (row["collective_writes"], row["system_write_bytes"], row["stripe_count"]) == (
        40,
        1000,
        8,
    )
    assert (row["wait_least"], row["wait_mean"], row["wait_most"]) == pytest.approx(
        (0.001, 0.002, 0.003)
    )
    assert "own_mpiio" in job.has


def test_names_are_those_of_the_library():
    tables = "".join(
        (ROOT / "src/parallel" / table).read_text()
        for table in ("engine/statistics.def", "exchange/counters.def")
    )
    rows = set(re.findall(r"^PARIO_(?:COUNTER|DERIVED|AVERAGE)\((\w+)", tables, re.MULTILINE))
    phases = re.findall(r'^PARIO_TIMER\(\w+, "(\w+)"\)', tables, re.MULTILINE)
    assert {*MPIIO_SUMS, *MPIIO_LARGEST} == rows - {"average_system_write"}
    assert list(MPIIO_PHASES) == ["open", *phases]


def test_a_log_without_notes_has_no_mpiio_rows(tmp_path):
    job = job_of(tmp_path)
    assert "own_mpiio" not in job.has
    assert len(job.mpiio) == len(job.audit) == 0


def test_a_file_opened_again_is_one_row_whose_times_add_up(tmp_path):
    (row,) = job_of(tmp_path, note(record=1), note(record=1)).mpiio
    assert (row["opens"], row["ranks"], row["writers"]) == (2, 4, 4)
    assert row["collective_writes"] == 80
    assert row["file_most"] == pytest.approx(0.006)


def test_a_file_opened_by_several_communicators_side_by_side_is_one_row(tmp_path):
    alone = {
        "ranks": 1,
        "nodes": 1,
        "timers_ns": {"calls": {"min": 9_000_000, "max": 9_000_000, "avg": 9_000_000}},
    }
    other = ProcessLog(
        rank=1,
        size=4,
        pid=1001,
        records=[{"path": "/data/out", "opens": 1}],
        notes=[note(record=0, **alone)],
    )
    (row,) = job_of(tmp_path, note(record=1, ranks=2), more=(other,)).mpiio
    assert (row["ranks"], row["nodes"], row["collective_writes"]) == (3, 2, 80)
    assert (row["calls_least"], row["calls_most"]) == pytest.approx((0.001, 0.009))
    assert row["calls_mean"] == pytest.approx((2 * 0.002 + 0.009) / 3)


@pytest.mark.parametrize(
    ("path", "cwd", "known"),
    [("out", "/data", True), ("/data/./out", "/", True), ("gone", "/data", False)],
)
def test_a_note_without_a_record_is_found_by_its_path(tmp_path, path, cwd, known):
    ProcessLog(
        cwd=cwd, rank=0, size=1, records=[{"path": "/data/out", "opens": 1}], notes=[note(path)]
    ).write(tmp_path)
    job = read([tmp_path])
    (row,) = job.mpiio
    assert job.paths[row["path"]] == ("/data/out" if known else "/data/gone")
    assert row["file"] == (0 if known else -1)


def test_the_outcome_of_every_hint_is_kept_once(tmp_path):
    lines = [
        hint("striping_factor", "8", "8", "4", "the file system has 4 targets"),
        hint("cb_nods", "4", reason="unknown hint cb_nods"),
    ]
    job = job_of(tmp_path, note(record=1, hints=lines), note(record=1, hints=lines))
    file = job.paths.index("/data/out")
    assert job.audit == [
        HintOutcome(
            file, "/data/out", "striping_factor", "8", "8", "4", "the file system has 4 targets"
        ),
        HintOutcome(file, "/data/out", "cb_nods", "4", "", "", "unknown hint cb_nods"),
    ]


@pytest.mark.parametrize(
    "damaged",
    [
        {"statistics": 7},
        {"timers_ns": {"wait": []}},
        {"hints": ["x", {}]},
        {"ranks": "many"},
        {"record": 99},
    ],
)
def test_a_damaged_note_does_no_harm(tmp_path, damaged):
    job = job_of(tmp_path, note(**damaged))
    assert len(job.mpiio) == 1
    assert job.audit == []
