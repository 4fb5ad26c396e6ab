"""Separation of the program's own I/O from that of the launcher, the MPI library and the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import FileRow
from pario.see.tables.model import Job
from pario.see.tables.rows import new_processes
from tests.python.jobs import add_events, add_filesystem, add_function, add_record, make_job

IN_MPI_IO, IN_MPI = 2, 4


def groups(job: Job) -> dict[str, FileRow]:
    return {row.group: row for row in analyze(job).files if row.group}


def add_launcher(job: Job) -> int:
    row = new_processes(1)
    row["rank"], row["pid"], row["parent"], row["seen"], row["end"] = -1, 999, 1, job.wall, job.wall
    job.processes = np.concatenate([job.processes, row])
    return len(job.processes) - 1


def test_the_launcher_is_no_process_of_the_program() -> None:
    job = make_job(2, wall=10.0)
    launcher = add_launcher(job)
    add_record(job, range(2), "/out", writes=1, opens=1, write_time=1.0, bytes_written=100)
    add_record(job, launcher, "/hosts", reads=1, opens=1, read_time=9.0, bytes_read=50)
    add_function(job, launcher, "read", "posix", calls=1, seconds=9.0)
    analysis = analyze(job)
    assert (analysis.job.processes, analysis.job.files, analysis.job.bytes_read) == (2, 1, 0)
    assert [row.path for row in analysis.files if not row.group] == ["/out"]
    assert "read" not in {row.name for row in analysis.functions}
    assert analysis.verdict.critical.io == pytest.approx(1.0)
    assert (groups(job)["helpers"].files, groups(job)["helpers"].seconds) == (1, 9.0)


def test_files_touched_inside_mpi_calls_alone_are_the_librarys() -> None:
    job = make_job(2, wall=10.0)
    for path, flags in (("/tmp/segment", IN_MPI), ("/tmp/shared", IN_MPI_IO), ("/out", 0)):
        add_record(job, range(2), path, writes=1, write_time=1.0, bytes_written=100)
        add_events(job, range(2), path, "write", start=1.0, duration=1.0, length=100, flags=flags)
    analysis = analyze(job)
    assert (analysis.job.files, analysis.job.bytes_written) == (1, 200)
    assert (groups(job)["library"].files, groups(job)["library"].bytes_written) == (2, 400)


def test_reads_of_python_caused_by_pario_are_left_out() -> None:
    job = make_job(1, wall=10.0)
    for path in (
        "/opt/lib/pario/launch/hook/sitecustomize.py",
        "/opt/lib/pario/launch/hook",
        "/home/ada/pario/launch/hooks.txt",
    ):
        add_record(job, 0, path, opens=1, reads=1, read_time=1.0, bytes_read=100)
    analysis = analyze(job)
    assert [row.path for row in analysis.files] == ["/home/ada/pario/launch/hooks.txt"]
    assert (analysis.job.files, analysis.job.bytes_read, analysis.verdict.critical.io) == (
        1,
        100,
        1.0,
    )


def test_known_files_of_the_library_are_recognised_without_events() -> None:
    job = make_job(2, wall=10.0, has={"posix"})
    add_record(job, range(2), "/dev/shm/vader_segment.node.1", opens=1, open_time=0.1)
    add_record(job, range(2), "/home/ada/ucx.conf", failed_opens=1, failed=1, open_time=0.1)
    assert groups(job)["library"].files == 2


def test_nonblocking_mpi_io_that_ends_in_a_wait_is_io() -> None:
    job = make_job(2, wall=10.0)
    add_record(
        job, range(2), "/out", layer="mpiio", writes=1, bytes_written=100, nonblocking_calls=1
    )
    add_record(job, range(2), "/out", writes=1, bytes_written=100, write_time=4.0)
    add_events(job, range(2), "", "communicate", start=1.0, duration=5.0, function="MPI_Wait")
    add_events(job, range(2), "/out", "write", start=1.0, duration=4.0, length=100, flags=IN_MPI)
    analysis = analyze(job)
    assert analysis.job.files == 1
    assert analysis.verdict.critical.io == pytest.approx(4.0)
    assert analysis.verdict.critical.communication == pytest.approx(1.0)


def test_missing_paths_are_one_row_and_no_file() -> None:
    job = make_job(1, wall=10.0)
    for number in range(30):
        add_record(
            job, 0, f"/lib{number}/module.py", stats=1, failed_opens=1, failed=2, stat_time=0.01
        )
    add_record(job, 0, "/lib/module.py", opens=1, stats=1, reads=1, bytes_read=10, read_time=0.01)
    analysis = analyze(job)
    assert analysis.job.files == analysis.file_total == 1
    assert groups(job)["missing"].files == 30


def test_nested_functions_are_marked() -> None:
    job = make_job(2, wall=10.0)
    add_function(job, range(2), "MPI_File_write_at", "mpiio", calls=1, seconds=5.0)
    add_function(job, range(2), "pwrite", "posix", calls=1, seconds=4.0)
    add_record(job, range(2), "/out", layer="mpiio", writes=1, write_time=5.0)
    add_record(
        job, range(2), "/out", writes=1, write_time=4.0, nested_writes=1, nested_write_time=4.0
    )
    add_events(
        job,
        range(2),
        "/out",
        "write",
        start=0.0,
        duration=5.0,
        layer="mpiio",
        function="MPI_File_write_at",
    )
    add_events(
        job, range(2), "/out", "write", start=0.5, duration=4.0, flags=IN_MPI_IO, function="pwrite"
    )
    rows = {row.name: (row.inside, row.inside_seconds) for row in analyze(job).functions}
    assert rows == {"MPI_File_write_at": ("", 0.0), "pwrite": ("MPI-IO", 8.0)}


def test_threads_side_by_side_take_no_more_than_the_run() -> None:
    job = make_job(1, wall=10.0)
    for thread in range(8):
        add_function(job, 0, "pread", "posix", calls=1, seconds=5.0, thread=thread)
    (row,) = analyze(job).functions
    assert (row.seconds, row.share) == (40.0, pytest.approx(0.5))


def test_without_mpi_a_function_has_its_largest_share_of_a_process() -> None:
    job = make_job(4, wall=10.0, mpi=False)
    add_function(job, range(4), "fsync", "posix", calls=1, seconds=[6.0, 1.0, 0.0, 0.0])
    (row,) = analyze(job).functions
    assert (row.seconds, row.share) == (7.0, pytest.approx(0.6))


@pytest.mark.parametrize(
    ("path", "told"), [("/data/a.duckdb.wal", True), ("/data/a.db-wal", False)]
)
def test_syncs_of_duckdb_get_advice_for_duckdb(path: str, told: bool) -> None:
    job = make_job(1)
    add_record(job, 0, path, writes=100, bytes_written=10_000, syncs=100, sync_time=5.0)
    (found,) = (one for one in analyze(job).findings if one.rule == "sync-storm")
    assert any(fix.text.startswith("DuckDB:") for fix in found.fixes) == told


@pytest.mark.parametrize(
    ("path", "syncs", "said"),
    [
        ("/data/a.db-journal", 800, {"sync-storm": True}),
        ("/data/a.db-wal", 800, {"sync-storm": True}),
        ("/data/a.db-journal", 0, {"open-close-loop": True}),
        ("/data/a.db", 800, {"sync-storm": False, "open-close-loop": False}),
    ],
)
def test_commits_of_sqlite_get_advice_for_sqlite(
    path: str, syncs: int, said: dict[str, bool]
) -> None:
    job = make_job(1)
    add_record(
        job,
        0,
        path,
        opens=400,
        closes=400,
        open_time=2.0,
        writes=1000,
        bytes_written=1_000_000,
        syncs=syncs,
        sync_time=5.0 if syncs else 0.0,
    )
    rules = ("sync-storm", "open-close-loop")
    assert said == {
        finding.rule: any(fix.text.startswith("SQLite:") for fix in finding.fixes)
        for finding in analyze(job).findings
        if finding.rule in rules
    }


@pytest.mark.parametrize(
    ("path", "advice"),
    [("/data/a.db", "one connection for all statements"), ("/data/a.db-journal", "journal_mode")],
)
def test_opens_of_a_database_are_those_of_connections(path: str, advice: str) -> None:
    job = make_job(1)
    add_record(job, 0, path, opens=4000, closes=4000, open_time=2.0, reads=8000, bytes_read=800_000)
    add_record(job, 0, "/data/a.db-journal", stats=4000)
    (finding,) = (one for one in analyze(job).findings if one.rule == "open-close-loop")
    assert advice in next(fix.text for fix in finding.fixes if fix.text.startswith("SQLite:"))


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
@pytest.mark.parametrize(("word", "moved"), [("write", "written"), ("read", "read")])
def test_small_calls_of_sqlite_get_advice_for_sqlite_and_no_settings(
    suffix: str, word: str, moved: str
) -> None:
    job = make_job(1)
    calls_of = ((f"/data/a.db{suffix}", 40_000), ("/data/a.db-journal", 1), ("/data/log", 50_000))
    for path, calls in calls_of:
        counts = {f"{word}s": calls, f"bytes_{moved}": calls * 200, f"{word}_time": 2.0}
        add_record(job, 0, path, opens=1, **counts)
    found = {
        finding.files[0].rpartition("/")[2]: finding
        for finding in analyze(job).findings
        if finding.rule == f"small-{word}s"
    }
    told = {name: one.fixes[0].text.startswith("SQLite:") for name, one in found.items()}
    assert told == {f"a.db{suffix}": True, "log": False}
    assert found[f"a.db{suffix}"].settings == ()
    assert "survives a crash" in found[f"a.db{suffix}"].why_not
    assert found["log"].settings


@pytest.mark.parametrize(("beside", "of_sqlite"), [("/data/a.db-wal", True), ("/data/b", False)])
def test_pages_that_sqlite_reads_again_need_a_larger_cache(beside: str, of_sqlite: bool) -> None:
    job = make_job(1)
    moved = {"bytes_read": 400_000_000, "end_read": 10_000_000}
    add_record(job, 0, "/data/a.db", opens=1, reads=100_000, read_time=2.0, **moved)
    add_record(job, 0, beside, stats=1)
    (found,) = (one for one in analyze(job).findings if one.rule == "re-read")
    text = " ".join(fix.text for fix in found.fixes)
    assert ("PRAGMA cache_size" in text, "Read once before" in text) == (of_sqlite, not of_sqlite)
    assert bool(found.settings) != of_sqlite


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/home/u/data", True),
        ("/home/u/.venv/lib/python3.11/site-packages", False),
        ("/home/u/.venv/lib/python3.11/site-packages/numpy", False),
        ("/usr/lib/python3.11", False),
    ],
)
def test_stats_of_installed_packages_are_no_storm(path: str, told: bool) -> None:
    job = make_job(1)
    for number in range(20):
        add_record(job, 0, f"{path}/{number}", stats=100, stat_time=0.1)
    rules = [finding.rule for finding in analyze(job).findings]
    assert rules == (["stat-storm"] if told else [])


@pytest.mark.parametrize(
    ("kind", "said"), [("ext4", "the kernel follow the path"), ("lustre", "the metadata server")]
)
def test_only_network_file_systems_have_a_metadata_server(kind: str, said: str) -> None:
    job = make_job(1)
    add_filesystem(job, "/data", kind, network=kind != "ext4")
    add_record(job, 0, "/data/a", stats=100_000, stat_time=2.0)
    (found,) = (one for one in analyze(job).findings if one.rule == "stat-storm")
    assert said in found.cause


def test_a_sum_over_ranks_has_no_slowest_rank() -> None:
    job = make_job(4, wall=10.0, has={"posix"})
    add_record(job, -1, "/out", writes=4, write_time=8.0, ranks=4)
    (row,) = analyze(job).functions
    assert (row.slowest_rank, row.slowest, row.mean) == (-1, 2.0, 2.0)


@pytest.mark.parametrize(
    "name", ["torch_4711_1", "nccl-Ab3dEf", "sem.mp-x1y2", "psm_21467213", "ucx_shm_posix_7f3"]
)
def test_shared_memory_of_transports_is_not_small_files_of_the_program(name: str) -> None:
    job = make_job(1, wall=10.0)
    for number in range(300):
        add_record(job, 0, f"/dev/shm/{name}{number}", opens=1, open_time=0.01, writes=1)
    assert groups(job)["library"].files == 300
    assert analyze(job).findings == ()


def test_files_that_a_program_stages_in_memory_are_its_own() -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/dev/shm/input.h5", opens=1, reads=1, bytes_read=1000)
    assert "library" not in groups(job)


@pytest.mark.parametrize("slow", ["sync_time", "other_time", "open_time"])
def test_commits_of_sqlite_are_one_finding_whichever_call_is_slow(slow: str) -> None:
    made = make_job(1, 100.0, has={"posix", "per_rank", "meta_split"})
    times = {"sync_time": 2.0, "other_time": 2.0, "open_time": 2.0} | {slow: 20.0}
    calls = {"opens": 400, "closes": 400, "syncs": 400, "writes": 800, "others": 400}
    add_record(made, 0, "/scratch/a.db-journal", **calls, **times, bytes_written=400 * 512)
    moved = {"writes": 400, "bytes_written": 400 * 4096}
    add_record(made, 0, "/scratch/a.db", opens=1, syncs=400, sync_time=1.0, **moved)
    first = analyze(made).findings[0]
    assert first.rule == "sync-storm"
    assert first.seconds == pytest.approx(24.9, abs=0.2)
