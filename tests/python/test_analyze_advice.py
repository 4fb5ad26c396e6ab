"""Texts of findings that fit the program: sizes, names of calls, and repairs that it can make."""

from __future__ import annotations

import os

import numpy as np

from pario.see.analyze import analyze
from pario.see.analyze.model import Finding
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_record
from tests.python.layer_jobs import start_programs, submit_records
from tests.python.repeated_jobs import parse_to_append
from tests.python.rule_cases import MIB, job


def find(made: Job, rule: str) -> Finding:
    return next(one for one in analyze(made).findings if one.rule == rule)


def texts(finding: Finding) -> str:
    return " ".join(fix.text for fix in finding.fixes)


def write_by_descriptor(files: int) -> Job:
    """A shell opens each file for a program, which asks for the state of its output and writes."""
    made = job()
    start_programs(made, files, 1e-3)
    for number in range(files):
        path, child = f"/scratch/d/{number}", number + 1
        add_record(made, 0, path, opens=1, open_time=0.02, others=1, other_time=1e-6)
        moved = {"writes": 1, "bytes_written": 24, "end_written": 24, "write_time": 1e-5}
        add_record(made, child, path, **moved, stats=1, stat_time=5e-3)
        add_events(made, 0, path, "other", function="dup2", start=number * 1e-3)
        add_events(made, child, path, "stat", function="fstat", start=number * 1e-3)
    return made


def test_small_files_have_the_bytes_that_other_processes_write_to_them() -> None:
    finding = find(write_by_descriptor(600), "many-small-files")
    assert finding.title == "600 small files in /scratch/d, 24 B each"
    assert finding.evidence[0].text.startswith("600 files, 14.4 kB together")


def test_questions_about_open_descriptors_are_no_questions_about_names() -> None:
    made = write_by_descriptor(600)
    assert "directory-storm" not in [finding.rule for finding in analyze(made).findings]


def test_tiny_requests_side_by_side_are_joined_not_registered() -> None:
    made = job()
    submit_records(made, 24)
    finding = find(made, "small-writes")
    assert finding.title == "1,000,000 asynchronous writes of 24 B to /scratch/f"
    assert "requests of 64 KiB" in texts(finding) and "fwrite" not in texts(finding)


def test_questions_for_attributes_are_named() -> None:
    made = job()
    add_record(made, 0, "/scratch/f", stats=100_000, stat_time=10.0, opens=1)
    add_events(made, 0, "/scratch/f", "stat", function="getxattr", start=np.arange(1000) * 1e-3)
    finding = find(made, "stat-storm")
    assert "Asking for an attribute of a file makes" in finding.cause
    assert "attributes" in finding.remedy
    assert "scandir" not in texts(finding)


def test_lines_that_a_shell_reads_are_no_records_out_of_order() -> None:
    made = job()
    made.programs = ["/usr/bin/bash"]
    moved = {"reads": 150_001, "bytes_read": 614 * MIB, "end_read": 2 * MIB, "read_time": 5.0}
    add_record(made, 0, "/scratch/f", opens=1, seeks=300_000, seek_time=5.0, **moved)
    finding = find(made, "seek-storm")
    assert "shell's read" in finding.cause
    assert "mapfile" in texts(finding) and "pread" not in texts(finding)
    assert any("pario run --fix" in fix.text for fix in finding.fixes)


def test_a_flush_that_writes_whole_chunks_is_described_with_their_bytes() -> None:
    made = job()
    flushes, chunk, row = 20_000, 128 << 10, 2 << 10
    inner = {"inner_other_time": 3e-4 * flushes, "inner_bytes_written": chunk * flushes}
    times = {"opens": 1, "flushes": flushes, "flush_time": 4e-4 * flushes}
    add_record(made, 0, "/scratch/x.nc", "netcdf", **times, **inner)
    add_record(made, 0, "/scratch/x.nc:/v", "netcdf", writes=flushes, bytes_written=row * flushes)
    moved = {"writes": flushes, "bytes_written": chunk * flushes, "write_time": 3e-4 * flushes}
    add_record(made, 0, "/scratch/x.nc", opens=1, **moved)
    finding = find(made, "flush-storm")
    assert "(400 µs) writes 131 kB for 2.05 kB of new data" in finding.cause
    assert "2.00 s inside the library and 6.00 s in its calls" in finding.evidence[0].text


def test_a_file_that_is_parsed_to_append_is_kept_open() -> None:
    made = job(wall=21.0)
    parse_to_append(made, 1000, 5e-3)
    made.records["open_flags"] = os.O_RDWR
    finding = find(made, "open-close-loop")
    assert "opened and parsed" in finding.title
    assert "Keep the file open between the changes" in texts(finding)
    assert finding.remedy == "keeping files open between changes"
