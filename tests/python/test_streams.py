"""Buffered files: the outcomes of their settings and their figures, from the log to the pages."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pario.see.analyze import analyze
from pario.see.analyze.compare import Runs, compare
from pario.see.report import html, terminal
from pario.see.report import json as report
from pario.see.tables import read
from pario.see.tables.model import HintOutcome, Job
from tests.python.jobs import add_hint, add_record, file_row, make_job
from tests.python.plog import ProcessLog

FIGURES = {
    "system_writes": 3,
    "system_write_bytes": 3_000_000,
    "buffered_write_bytes": 3_000_000,
    "writes": 6000,
    "wasted_bytes": 500_000,
}


def note(number: int, *hints: dict[str, str]) -> dict[str, Any]:
    """Makes a note in the format of src/layers/buffers/audit.cpp."""
    return {"note": "stream", "id": number, "hints": list(hints)}


def hint(
    key: str, requested: str, applied: str = "yes", effective: str = "yes", reason: str = ""
) -> dict[str, str]:
    return {
        "key": key,
        "requested": requested,
        "applied": applied,
        "effective": effective,
        "reason": reason,
    }


def job_of(directory: Path, *logs: ProcessLog) -> Job:
    for log in logs:
        log.write(directory)
    return read([directory])


def buffered_job(reason: str = "") -> Job:
    job = make_job(1, 100.0)
    add_record(job, range(1), "/data/out", "posix", opens=1, **FIGURES)
    outcome = HintOutcome(
        file_row(job, "/data/out"),
        "/data/out",
        "buffers",
        "*.dat",
        "yes",
        "no" if reason else "yes",
        reason,
        "streams",
    )
    job.audit.append(outcome)
    return job


def page(job: Job, everything: bool = False) -> str:
    stream = io.StringIO()
    terminal.render(analyze(job), Console(file=stream, width=120), all=everything)
    return stream.getvalue()


def test_rows_that_name_one_note_have_its_outcome_each(tmp_path: Path) -> None:
    records = [
        {"path": "/data/a", "stream": 1},
        {"path": "/data/b", "stream": 1},
        {"path": "/data/c", "stream": 2},
        {"path": "/data/d"},
    ]
    notes = [
        note(1, hint("buffers", "*"), hint("size", "1M", "1048576", "1048576")),
        note(2, hint("buffers", "*", "yes", "no", "mapped")),
    ]
    job = job_of(tmp_path, ProcessLog(records=records, notes=notes))
    assert [(it.path, it.key, it.effective, it.table) for it in job.audit] == [
        ("/data/a", "buffers", "yes", "streams"),
        ("/data/a", "size", "1048576", "streams"),
        ("/data/b", "buffers", "yes", "streams"),
        ("/data/b", "size", "1048576", "streams"),
        ("/data/c", "buffers", "no", "streams"),
    ]


def test_numbers_are_those_of_a_process_and_outcomes_are_kept_once(tmp_path: Path) -> None:
    one = ProcessLog(
        records=[{"path": "/data/a", "stream": 2}], notes=[note(2, hint("buffers", "*"))]
    )
    two = ProcessLog(
        pid=1001, records=[{"path": "/data/a", "stream": 1}], notes=[note(1, hint("buffers", "*"))]
    )
    assert len(job_of(tmp_path, one, two).audit) == 1


@pytest.mark.parametrize("damaged", [{"id": 7}, {"hints": 3}, {"hints": ["x", {}]}])
def test_a_damaged_note_does_no_harm(tmp_path: Path, damaged: dict[str, Any]) -> None:
    log = ProcessLog(
        records=[{"path": "/data/a", "stream": 1}], notes=[note(1, hint("buffers", "*")) | damaged]
    )
    assert job_of(tmp_path, log).audit == []


def test_figures_are_sums_over_processes_and_only_of_buffered_files() -> None:
    job = make_job(2, 100.0)
    add_record(job, range(2), "/data/out", "posix", opens=1, system_write_time=0.5, **FIGURES)
    add_record(job, range(2), "/data/plain", "posix", opens=1, writes=9)
    (row,) = analyze(job).streams
    assert (row.path, row.writes, row.system_writes, row.system_write_seconds) == (
        "/data/out",
        12000,
        6,
        1.0,
    )


def test_an_unbuffered_file_is_reported_on_the_first_screen() -> None:
    assert "buffers=*.dat: opened with O_DIRECT" in page(buffered_job("opened with O_DIRECT"))
    assert "Hints" not in page(buffered_job())


def test_everything_has_the_settings_and_the_figures() -> None:
    text = page(buffered_job(), everything=True)
    assert "Buffered files   hints" in text
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith("/data/out") and "3.00 MB" in line and "6,000" in line
    ]
    assert "500 kB" in line


def test_page_and_document_have_both() -> None:
    analysis = analyze(buffered_job("opened with O_DIRECT"))
    text = html.render(analysis)
    assert 'id="streams"' in text and "opened with O_DIRECT" in text and "system writes" in text
    document = json.loads(report.render(analysis))
    assert document["streams"][0]["system_writes"] == 3
    assert (document["audit"][0]["table"], document["audit"][0]["state"]) == (
        "streams",
        "not in force",
    )


def test_system_writes_of_a_file_are_compared() -> None:
    plain = make_job(1, 100.0)
    add_record(plain, range(1), "/data/out", "posix", opens=1, writes=6000, write_time=5.0)
    change = compare(Runs("A", "a", [analyze(plain)]), Runs("B", "b", [analyze(buffered_job())]))
    assert [(row.path, row.system_writes_a, row.system_writes_b) for row in change.files] == [
        ("/data/out", 0, 3)
    ]


def test_a_pattern_for_all_files_does_not_hide_the_outcomes_of_other_hints() -> None:
    job = make_job(4, 100.0)
    counts = {"opens": 1, "writes": 10, "bytes_written": 1 << 30, "write_time": 20.0}
    add_record(job, range(4), "/scratch/c", "mpiio", collective_writes=10, **counts)
    add_hint(job, "/scratch/c", "striping_factor", "8", "requested")
    add_hint(job, "/scratch/c", "striping_factor", "2", "effective")
    job.audit.append(
        HintOutcome(
            file_row(job, "/scratch/c"), "/scratch/c", "buffers", "*", "yes", "yes", "", "streams"
        )
    )
    assert "hints-not-effective" in [found.rule for found in analyze(job).findings]
