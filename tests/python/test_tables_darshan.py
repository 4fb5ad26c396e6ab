"""Darshan logs into the table model."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from pario.errors import ParioError
from pario.see.analyze import analyze
from pario.see.tables import ReadError, read
from pario.see.tables.darshan.apart import ask
from pario.see.tables.darshan.job import collect
from tests.python.darshanlog import DarshanLog, dxt_record, named_record, posix_record, segments
from tests.support.commands import run_command

#: Of the darshan package, which only its users import: with pandas, it takes half a second.
HERE = Path(importlib.util.find_spec("darshan").origin).parent
LOGS = sorted(HERE.rglob("*.darshan"))
#: Facts of each log, as darshan-parser and PyDarshan show them: records of POSIX, STDIO and MPI-IO,
#: DXT segments, ranks.
CONTENT = {
    "pq_app_readAB_writeC": (12, 0, 4),
    "pq_app_read_id71317": (2, 0, 1),
    "pq_app_read_id71344": (2, 0, 1),
    "pq_app_write_id71296": (2, 0, 1),
    "pq_app_write_id71303": (2, 0, 1),
    "pq_app_write_id71310": (2, 0, 1),
    "dxt.": (215, 7623, 1),
    "example.": (131, 0, 2048),
    "ior_hdf5_example": (9, 118, 4),
    "noposix.": (2, 0, 512),
    "sample-badost": (2051, 0, 2048),
    "shane_macsio": (6, 0, 16),
    "noposixopens": (4, 0, 32),
    "sample-dxt-simple": (64, 3, 16),
    "sample-goodost": (50, 0, 48),
    "sample.": (131, 0, 2048),
}


def log(name: str) -> Path:
    return next(path for path in LOGS if path.name.startswith(name))


def one(path: Path):
    return collect(str(path), [path])


@pytest.mark.system
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name[:24])
def test_every_log_of_the_darshan_package_opens(path):
    records, events, ranks = next(
        content for name, content in CONTENT.items() if path.name.startswith(name)
    )
    job = one(path)
    assert (len(job.records), len(job.events), job.ranks) == (records, events, ranks)
    assert len(job.processes) == ranks
    assert job.wall > 0
    assert len(job.files) == len(job.paths)
    assert np.all(job.records["process"] < ranks)
    assert np.all(job.records["file"] >= 0)


@pytest.mark.parametrize("name", ["ior_hdf5_example", "sample-badost", "dxt."])
def test_counters_equal_those_of_pydarshan(name):
    package = importlib.import_module("darshan")
    path = log(name)
    frames = package.DarshanReport(str(path), read_all=True).records["POSIX"].to_df()
    counters, times = frames["counters"], frames["fcounters"]
    job = one(path)
    posix = job.records[job.records["layer"] == 0]
    for field in ("opens", "reads", "writes", "bytes_read", "bytes_written"):
        assert posix[field].sum() == counters[f"POSIX_{field.upper()}"].sum()
    assert posix["write_time"].sum() == pytest.approx(times["POSIX_F_WRITE_TIME"].sum())
    assert posix["write_sizes"][:, 4].sum() == counters["POSIX_SIZE_WRITE_100K_1M"].sum()
    assert posix["other_time"].sum() == pytest.approx(times["POSIX_F_META_TIME"].sum())


def test_events_equal_the_segments_of_pydarshan():
    path = log("ior_hdf5_example")
    package = importlib.import_module("darshan")
    report = package.DarshanReport(str(path), read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX", dtype="dict")
    records = list(report.records["DXT_POSIX"])
    job = one(path)
    posix = job.events[job.events["layer"] == 0]
    for kind, name in ((2, "read_segments"), (3, "write_segments")):
        expected = sorted(
            (s["start_time"], s["offset"], s["length"]) for record in records for s in record[name]
        )
        found = sorted(
            zip(
                *(
                    posix[posix["kind"] == kind][field].tolist()
                    for field in ("start", "offset", "length")
                ),
                strict=True,
            )
        )
        assert len(found) == len(expected)
        assert np.allclose(found, expected)


def test_shared_file_records_are_sums_with_their_slowest_and_fastest_rank():
    job = one(log("ior_hdf5_example"))
    (row,) = job.records[job.records["layer"] == 0]
    assert (row["process"], row["ranks"]) == (-1, 4)
    assert 0 <= row["slowest_rank"] < 4
    assert row["slowest_rank_time"] >= row["fastest_rank_time"] > 0
    assert "per_rank" not in job.has


def test_layouts_of_the_lustre_module_name_the_targets_of_each_file():
    job = one(log("sample-badost"))
    layouts = [job.layouts[i] for i in job.files["layout"] if i >= 0]
    assert len(layouts) > 2000
    assert all(len(layout.targets) == layout.stripe_count == 1 for layout in layouts)
    assert len({layout.targets for layout in layouts}) == 24


def test_streams_and_file_systems_are_known():
    job = one(log("sample-badost"))
    streams = {job.path(i) for i in np.flatnonzero(job.files["stream"])}
    assert streams == {"<STDOUT>", "<STDERR>"}
    types = {str(job.filesystems["type"][i]) for i in job.files["filesystem"] if i >= 0}
    assert "lustre" in types
    assert all(job.files["filesystem"][job.files["stream"] == 1] == -1)


def test_times_are_not_split_by_kind_of_metadata_call_and_the_job_states_it():
    job = one(log("sample-goodost"))
    assert "meta_split" not in job.has
    assert {"posix", "stdio", "layout", "sizes"} <= job.has
    assert "mpi" not in job.has


def test_modules_that_are_not_used_are_named(tmp_path):
    modules = {"POSIX": posix_record(1, 0), "MDHIM": bytes(800)}
    job = one(DarshanLog(format="3.41", modules=modules).write(tmp_path / "a.darshan"))
    assert any("not used: module MDHIM" in text for text in job.messages)


@pytest.mark.system
def test_process_logs_of_one_job_merge_into_one_job(tmp_path):
    early = DarshanLog(modules={"POSIX": posix_record(1, 0, {0: 1, 4: 10}, {2: 1.0})}, jobid=7)
    late = DarshanLog(
        modules={"POSIX": posix_record(1, 0, {0: 1, 4: 20}, {2: 1.0})},
        jobid=7,
        start=early.start + 5,
    )
    paths = [early.write(tmp_path / "a.darshan"), late.write(tmp_path / "b.darshan")]
    job = read(paths)
    assert len(job.processes) == 2
    assert job.ranks == 1
    assert job.paths == ["/scratch/a"]
    assert job.records["writes"].tolist() == [10, 20]
    assert job.records["first_write"].tolist() == [1.0, 6.0]
    assert job.records["process"].tolist() == [0, 1]
    assert job.wall == pytest.approx(15.0, abs=1.5)
    assert not job.messages


def test_logs_of_different_jobs_are_mentioned(tmp_path):
    paths = [
        DarshanLog(jobid=i, modules={"POSIX": posix_record(1, 0)}).write(tmp_path / f"{i}.darshan")
        for i in (1, 2)
    ]
    assert any("2 job ids (1, 2)" in text for text in collect("x", paths).messages)


def test_a_partial_module_is_mentioned(tmp_path):
    path = DarshanLog(modules={"POSIX": posix_record(1, 0)}, partial=("POSIX",)).write(
        tmp_path / "a.darshan"
    )
    assert any(
        "module POSIX is partial" in text and "after 1 records" in text
        for text in one(path).messages
    )


def test_a_verdict_begins_with_a_partial_module(tmp_path):
    modules = {"POSIX": posix_record(1, 0), "DXT_POSIX": dxt_record(1, 0, segments(5), segments(2))}
    path = DarshanLog(modules=modules, partial=("POSIX", "DXT_POSIX")).write(tmp_path / "a.darshan")
    analysis = analyze(one(path))
    assert analysis.verdict.unseen == ("Darshan had no more memory for module POSIX",)
    assert analysis.verdict.sentence.startswith("Incomplete: Darshan had no more memory")


@pytest.mark.parametrize(("module", "version"), [("DXT_POSIX", 2), ("DXT_MPIIO", 3)])
def test_dxt_records_of_another_version_are_mentioned_not_silently_empty(tmp_path, module, version):
    record = dxt_record(1, 0, segments(5), segments(0))
    path = DarshanLog(modules={module: record}, versions={module: version}).write(
        tmp_path / "a.darshan"
    )
    job = one(path)
    assert len(job.events) == 0
    assert "events" not in job.has
    assert any(f"{module} has record version {version}" in text for text in job.messages)


def test_a_module_without_records_is_mentioned(tmp_path):
    path = DarshanLog(modules={"POSIX": b""}).write(tmp_path / "a.darshan")
    assert any("POSIX" in text and "no record" in text for text in one(path).messages)


def test_dxt_events_know_rank_host_file_and_bytes(tmp_path):
    records = dxt_record(1, 0, segments(10), segments(5, first=1.0)) + dxt_record(
        1, 1, segments(1, first=0.5), segments(0), host="node1"
    )
    job = one(DarshanLog(nprocs=2, modules={"DXT_POSIX": records}).write(tmp_path / "a.darshan"))
    assert len(job.events) == 16
    assert np.all(np.diff(job.events["start"]) >= 0)
    assert job.hosts == ["node0", "node1"]
    assert job.processes["host"].tolist() == [0, 1]
    assert [job.function_names[i] for i in np.unique(job.events["function"])] == ["read", "write"]
    assert job.events["length"].sum() == 16 * 512


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty file"),
        (b"\x1f\x8b" + b"x" * 50, "gzip"),
        (b"3.41\0\0\0\0", "begins with"),
        (b"PNG" * 100, "begins with"),
    ],
)
def test_foreign_files_are_errors_naming_path_found_and_expected(tmp_path, content, found):
    path = tmp_path / "x.darshan"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=rf"x\.darshan.*{found}.*expected a Darshan log"):
        read([path])


@pytest.mark.system
@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.6, 0.9, 0.999])
def test_truncated_logs_are_errors_or_name_the_missing_part(tmp_path, share):
    whole = log("ior_hdf5_example").read_bytes()
    path = tmp_path / "cut.darshan"
    path.write_bytes(whole[: int(len(whole) * share)])
    try:
        job = read([path])
    except ReadError as error:
        assert "cut.darshan" in str(error)
    else:
        assert any("Error" in text or "no record" in text for text in job.messages)


def test_a_crash_of_the_library_is_an_error_not_a_crash():
    answer = ask([sys.executable, "-c", "import os; os.abort()"], "x.darshan")
    assert isinstance(answer, ReadError)
    assert "x.darshan" in str(answer)
    assert "SIGABRT" in str(answer)


def test_without_the_darshan_package_the_error_names_it(monkeypatch):
    real_import = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.startswith("darshan"):
            raise ImportError("No module named 'darshan'")
        return real_import(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ParioError, match=r"pip install darshan"):
        one(LOGS[0])


@pytest.mark.exhaustive
def test_two_million_segments_are_read_within_400_megabytes(tmp_path):
    """bench/ measures the time; memory has a limit here because it does not depend on the
    machine."""

    records = b"".join(
        dxt_record(1, rank, segments(100_000), segments(100_000, first=200.0)) for rank in range(10)
    )
    path = DarshanLog(nprocs=10, seconds=400, modules={"DXT_POSIX": records}).write(
        tmp_path / "big.darshan"
    )
    # The program's ru_maxrss starts at the size of pytest, so it reads VmHWM.
    code = """
import resource, sys
from pathlib import Path
from pario.see.tables import read
job = read([Path(sys.argv[1])])
own = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
print(len(job.events), 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""
    done = run_command([sys.executable, "-c", code, path], status=0)
    events, peak = map(int, done.stdout.split())
    assert events == 2_000_000
    assert peak < 400e6


def test_24_logs_of_one_job_are_24_processes(tmp_path):
    paths = [
        DarshanLog(modules={"POSIX": posix_record(1, 0, {0: 1, 4: 10}, {2: 1.0})}, jobid=7).write(
            tmp_path / f"app_id7-{number}.darshan"
        )
        for number in range(24)
    ]
    assert analyze(read(paths)).job.processes == 24


def test_posix_time_that_mpi_io_cannot_hold_is_the_programs_own(tmp_path):
    """Rank 0 writes a header with write(2) for 583 s; all ranks then use MPI-IO for 22.6 s."""
    posix = named_record("POSIX", 1, 0, WRITES=10, BYTES_WRITTEN=10**6, F_WRITE_TIME=583.0)
    mpiio = named_record(
        "MPI-IO",
        1,
        -1,
        INDEP_WRITES=64,
        F_WRITE_TIME=90.0,
        SLOWEST_RANK=53,
        F_SLOWEST_RANK_TIME=22.6,
    )
    modules = {"POSIX": posix, "MPI-IO": mpiio}
    log = DarshanLog(nprocs=64, seconds=700, format="3.41", modules=modules)
    analysis = analyze(one(log.write(tmp_path / "a.darshan")))
    (row,) = analysis.files
    assert (row.slowest_rank, round(row.slowest_seconds)) == (0, 583 - 90)
    assert analysis.verdict.slowest_rank == 0
    assert 490 < analysis.verdict.slowest.io < 583


def test_the_slowest_rank_of_a_file_is_that_of_the_layer_with_most_time(tmp_path):
    def make_shared(module, rank, seconds):
        return named_record(
            module,
            1,
            -1,
            F_WRITE_TIME=2 * seconds,
            SLOWEST_RANK=rank,
            F_SLOWEST_RANK_TIME=seconds,
        )

    modules = {"POSIX": make_shared("POSIX", 0, 583.0), "STDIO": make_shared("STDIO", 53, 22.6)}
    log = DarshanLog(nprocs=64, seconds=700, format="3.41", modules=modules)
    (row,) = analyze(one(log.write(tmp_path / "a.darshan"))).files
    assert (row.slowest_rank, row.slowest_seconds) == (0, 583.0)
