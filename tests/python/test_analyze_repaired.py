"""Findings that were wrong once: each with the job that showed it."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.tables.rows import new_records
from tests.python import layer_jobs as layers
from tests.python.jobs import add_record, file_row, make_job
from tests.python.rule_cases import COUNTERS, MIB, job
from tests.python.test_analyze_rules import found


def test_processes_without_mpi_do_not_queue() -> None:
    made = make_job(8, 100.0, mpi=False, has=COUNTERS)
    opens = np.linspace(0.1, 4.0, 8)
    add_record(made, range(8), "/scratch/f", opens=1, open_time=opens, reads=1, bytes_read=10)
    assert not found(made)


def test_a_program_that_only_reads_creates_nothing() -> None:
    for reading in (True, False):
        made = job()
        moved = {"reads": 1, "bytes_read": 9} if reading else {"writes": 1, "bytes_written": 9}
        paths = [f"/scratch/d/{number}" for number in range(400)]
        add_record(made, 0, paths, opens=1, open_time=0.01, **moved)
        (finding,) = analyze(made).findings
        assert ("reat" in finding.cause) != reading


def test_a_training_run_with_small_files_is_told_to_pack_records() -> None:
    made = job()
    made.programs = ["/usr/bin/python3.11"]
    paths = [f"/data/c{number}/x.jpg" for number in range(400)]
    add_record(made, 0, paths, opens=1, open_time=0.01, reads=1, bytes_read=9)
    (finding,) = analyze(made).findings
    assert finding.title.startswith("400 small files in 400 directories below /data")
    assert finding.fixes[1].text == "pario records pack /data -o /data.prec"


def test_a_small_file_elsewhere_is_not_packed_with_the_others() -> None:
    made = job()
    paths = [f"/work/run/parts/{number}/part.parquet" for number in range(400)]
    counts = {"opens": 1, "open_time": 0.01, "writes": 1, "bytes_written": 9}
    add_record(made, 0, [*paths, "/work/bin/a.txt"], **counts)
    (finding,) = analyze(made).findings
    assert "directories below /work/run/parts" in finding.title
    assert any("-C /work/run/parts" in fix.text for fix in finding.fixes)


@pytest.mark.parametrize(("system_writes", "found"), [(100, False), (150_000, True)])
def test_small_writes_that_buffers_joined_are_repaired(system_writes: int, found: bool) -> None:
    made = make_job(1, 2.0)
    size = 8 * 200_000
    buffers = {"buffered_write_bytes": size, "system_writes": system_writes}
    writes = {"writes": 200_000, "bytes_written": size, "end_written": size, "write_time": 0.2}
    add_record(made, 0, "/scratch/out", opens=1, **writes, **buffers)
    assert bool(analyze(made).findings) == found


@pytest.mark.parametrize("of_pipe", [False, True])
def test_a_program_that_sorts_text_converts_no_numbers(of_pipe: bool) -> None:
    made = job()
    sampled = {"sampled_writes": 20, "sampled_text": 20, "sampled_numbers": 18}
    size = 40 * MIB
    add_record(
        made, 0, "/scratch/t.csv", writes=2000, bytes_written=size, write_time=5.0, **sampled
    )
    if of_pipe:
        made.processes["untraced_bytes_read"] = size
    else:
        add_record(made, 0, "/scratch/in.csv", reads=600, bytes_read=size, read_time=0.01)
    assert "text-output" not in found(made)


def test_a_name_that_many_processes_use_is_one_name_of_its_directory() -> None:
    made = make_job(600, 10.0, mpi=False)
    made.processes["start"], made.processes["end"] = np.arange(600) * 0.01, np.arange(600) * 0.01
    add_record(made, range(600), "/scratch/status", stats=3, others=1, stat_time=1e-3)
    assert "directory-storm" not in found(made)


def test_lines_that_a_shell_appends_by_redirections_are_one_open_close_loop() -> None:
    made = make_job(1, 2.0)
    times = {"open_time": 0.2, "close_time": 0.1}
    add_record(made, 0, "/scratch/log", opens=10_000, closes=20_000, **times)
    lines = {"writes": 20_000, "bytes_written": 160_000, "write_time": 0.2, "buffer_mode": 1}
    add_record(made, 0, "/scratch/log", layer="stdio", **lines)
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("open-close-loop", pytest.approx(0.5, rel=0.01))


@pytest.mark.parametrize(("program", "found"), [("/usr/bin/sort", False), ("/home/u/a", True)])
def test_stdio_calls_of_installed_programs_are_no_finding(program: str, found: bool) -> None:
    made = make_job(1, 2.0)
    made.programs = [program]
    values = {"writes": 1_000_000, "bytes_written": 8_000_000, "write_time": 0.3}
    add_record(made, 0, "/scratch/out", layer="stdio", **values)
    assert bool(analyze(made).findings) == found


def test_files_of_installed_software_are_no_storm() -> None:
    made = job()
    packages = "/home/u/venv/lib/python3.11/site-packages"
    paths = [f"{packages}/p{number}/x.pyc" for number in range(400)]
    add_record(made, 0, paths, opens=1, open_time=0.01, reads=1, bytes_read=9, stats=3)
    assert not found(made)


def test_a_copy_in_the_kernel_is_one_finding_about_both_files() -> None:
    made = job()
    layers.copy(made, 100_000)
    (finding,) = analyze(made).findings
    assert finding.rule == "small-copies"
    assert finding.files == ("/scratch/a", "/scratch/b")


def test_reads_in_sequence_at_the_rate_of_the_device_are_not_promised_more() -> None:
    made = job()
    size = {"reads": 25_000, "bytes_read": 25_000 * 8192, "end_read": 25_000 * 8192}
    add_record(made, 0, "/scratch/f", consecutive_reads=25_000, read_time=40.0, **size)
    assert not found(made)


def test_holes_of_a_new_file_are_found_although_their_reads_return_nothing() -> None:
    made = job(2)
    own = {"writes": 100, "bytes_written": 100 * 4096, "write_time": 10.0}
    add_record(made, range(2), "/scratch/n", "mpiio", **own)
    below = {"reads": 800, "nested_reads": 800, "zero_reads": 800, "nested_read_time": 1.0}
    windows = {"writes": 800, "nested_writes": 800, "bytes_written": 400 * MIB}
    times = {"read_time": 1.0, "write_time": 8.5, "nested_write_time": 8.5}
    add_record(made, range(2), "/scratch/n", **below, **windows, **times)
    finding = analyze(made).findings[0]
    assert finding.rule == "hole-read-modify-write"
    assert "1,600 of the reads returned nothing" in finding.evidence[0].text


@pytest.mark.system
def test_small_files_in_many_directories_are_one_storm() -> None:
    made = job()
    for number in range(40):
        for name in range(250):
            file_row(made, f"/scratch/{number}/{name}")
    rows = new_records(len(made.files))
    rows["file"], rows["opens"], rows["writes"] = np.arange(len(rows)), 1, 1
    rows["bytes_written"], rows["open_time"] = 100, 0.002
    made.records = rows
    (finding,) = analyze(made).findings
    assert finding.title.startswith("10,000 small files in 40 directories (/scratch/")
    assert finding.seconds == pytest.approx(20, rel=0.05)


@pytest.mark.system
def test_small_files_in_directories_of_nothing_but_the_root_name_the_worst() -> None:
    made = job()
    for place in ("data", "scratch"):
        for number in range(300):
            file_row(made, f"/{place}/{number}/a")
    rows = new_records(len(made.files))
    rows["file"], rows["opens"], rows["writes"] = np.arange(len(rows)), 1, 1
    rows["bytes_written"], rows["open_time"] = 100, 0.02
    rows["open_time"][450] = 0.1
    made.records = rows
    (finding,) = analyze(made).findings
    assert finding.title.startswith("600 small files in 600 directories (/scratch/150, ...)")
    assert "tar -cf /scratch/150.tar -C /scratch/150 ." in [fix.text for fix in finding.fixes]


def test_listed_directories_are_no_small_files() -> None:
    made = job()
    for number in range(1000):
        file_row(made, f"/usr/share/doc/{number}")
    rows = new_records(len(made.files))
    rows["file"], rows["opens"], rows["lists"] = np.arange(len(rows)), 1, 2
    rows["open_time"] = rows["list_time"] = 0.002
    made.records = rows
    assert "many-small-files" not in [finding.rule for finding in analyze(made).findings]


def test_files_over_the_limit_are_small_files_and_not_one_reused_file() -> None:
    made = job()
    made.processes["files_folded"] = 50_000
    file_row(made, "/scratch/d/*", folded=1)
    spent = {"open_time": 20.0, "close_time": 4.0, "write_time": 10.0, "read_time": 3.0}
    moved = {
        "bytes_written": 10_000_000,
        "end_written": 200,
        "bytes_read": 40_000_000,
        "end_read": 1000,
    }
    add_record(
        made,
        0,
        "/scratch/d/*",
        opens=50_000,
        closes=50_000,
        writes=50_000,
        reads=50_000,
        **moved,
        **spent,
    )
    (finding,) = analyze(made).findings
    assert finding.title.startswith("50,000 small files in /scratch/d")
    assert finding.seconds == pytest.approx(37, rel=0.05)


def test_bytes_of_one_rank_count_once_for_any_layers_below_mpi_io() -> None:
    made = job(4)
    counts = {"writes": 10, "bytes_written": 256_000_000, "write_time": 30.0}
    add_record(made, 0, "/scratch/s", "mpiio", **counts)
    add_record(made, 0, "/scratch/s", **counts, nested_writes=10, nested_write_time=30.0)
    (finding,) = analyze(made).findings
    assert finding.title == "rank 0 writes 100 % of all bytes (256 MB) for 4 ranks"
