"""HDF5 calls contain calls on files: their seconds and bytes count once, and findings name
datasets."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.cells import POSIX, READ
from pario.see.analyze.facts import Facts
from pario.see.analyze.libraries import user_depth
from pario.see.analyze.rules.hdf5 import H5PY_CALL, proposed_cache, proposed_chunk
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, SITE, Dataset, Frame, Job
from tests.python import layer_jobs
from tests.python.jobs import add_events, add_filesystem, add_record, make_job

MIB = 1 << 20
DATA = "/scratch/climate.h5:/temperature"


def job(has: str = "posix per_rank meta_split cpu") -> Job:
    made = make_job(1, 100.0, has=has.split())
    add_filesystem(made, "/scratch")
    return made


def thrash(cache: int = MIB, filters: tuple[str, ...] = ("deflate",)) -> Job:
    made = job()
    layer_jobs.read_chunks(made, cache, filters)
    return made


def test_time_inside_hdf5_excludes_the_calls_on_files() -> None:
    facts = Facts(Times(thrash()))
    layer = facts.records["layer"]
    assert facts.cells[layer == LAYERS.index("hdf5"), READ].tolist() == [16.0]
    assert facts.cells[layer == POSIX, READ].tolist() == [4.0]
    assert analyze(thrash()).verdict.critical.io == pytest.approx(20.0)


def test_communication_inside_hdf5_is_no_io() -> None:
    made = make_job(1, 10.0, mpi=True, has={"posix", "mpi", "events", "per_rank", "cpu"})
    add_filesystem(made, "/scratch")
    inner = {"inner_writes": 1, "inner_write_time": 3.0}
    add_record(made, 0, DATA, "hdf5", writes=1, write_time=6.0, **inner)
    add_record(made, 0, "/scratch/climate.h5", writes=1, write_time=1.0)
    add_events(made, 0, DATA, "write", layer="hdf5", start=1.0, duration=6.0)
    add_events(made, 0, "/scratch/climate.h5", "write", start=2.0, duration=1.0)
    add_events(made, 0, "", "communicate", function="MPI_Bcast", start=4.0, duration=2.0)
    split = analyze(made).verdict.mean
    assert (split.io, split.communication) == (pytest.approx(4.0), pytest.approx(2.0))


def test_bytes_and_files_count_once() -> None:
    info = analyze(thrash()).job
    assert (info.bytes_read, info.files, info.calls) == (320_000, 1, 40_000)


def test_a_dataset_has_its_own_row_of_the_file_table() -> None:
    rows = {row.path: row for row in analyze(thrash()).files}
    assert (rows[DATA].reads, rows[DATA].bytes_read, rows[DATA].layers) == (40, 320_000, ("hdf5",))
    assert rows["/scratch/climate.h5"].reads == 40_000


def test_calls_on_a_whole_file_count_as_the_calls_below_them() -> None:
    made = thrash()
    add_record(made, 0, "/scratch/climate.h5", "hdf5", opens=500, open_time=0.1)
    rows = {row.path: row for row in analyze(made).files}
    assert rows["/scratch/climate.h5"].opens == 0
    assert "open-close-loop" not in [finding.rule for finding in analyze(made).findings]


def test_a_file_opened_again_and_again_costs_the_time_inside_hdf5_too() -> None:
    made = job()
    path = "/scratch/series.h5"
    add_record(made, 0, path, opens=1000, closes=1000, open_time=1.0, close_time=1.0)
    inner = {"inner_other_time": 2.0}
    add_record(made, 0, path, "hdf5", opens=1000, open_time=3.0, close_time=5.0, **inner)
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("open-close-loop", pytest.approx(8.0, rel=0.01))


def test_a_thrashed_dataset_is_named_with_the_shape_and_the_cache_that_cure_it() -> None:
    (finding,) = analyze(thrash()).findings
    assert finding.files == (DATA,)
    assert "climate.h5:/temperature" in finding.title
    fixes = "\n".join(fix.text for fix in finding.fixes)
    assert "rdcc_nbytes=16777216" in fixes
    assert "32x1000 instead of 2000x1" in fixes
    command = "h5repack -l temperature:CHUNK=32x1000 /scratch/climate.h5 /scratch/new-climate.h5"
    assert command in fixes


def test_chunks_without_filters_that_are_read_in_part_are_no_thrashing() -> None:
    rules = [finding.rule for finding in analyze(thrash(filters=())).findings]
    assert rules == ["small-reads"]


@pytest.mark.parametrize(
    ("box", "chunk"),
    [
        ((1, 1000), (32, 1000)),
        ((2000, 1), (2000, 16)),
        ((2000, 1000), (250, 500)),
        ((), ()),
    ],
)
def test_the_proposed_chunk_has_the_shape_of_a_selection(
    box: tuple[int, ...], chunk: tuple[int, ...]
) -> None:
    dataset = Dataset(0, element=8, shape=(2000, 1000), chunk=(100, 100))
    assert proposed_chunk(box, dataset) == chunk


def test_the_proposed_cache_holds_the_chunks_in_whole_mebibytes() -> None:
    assert [proposed_cache(size) for size in (1, MIB, MIB + 1)] == [MIB, MIB, 2 * MIB]


@pytest.mark.parametrize(("gap", "each"), [(1e-4, 1e-4), (5e-3, H5PY_CALL)])
def test_time_of_h5py_between_calls_counts_up_to_a_limit(gap: float, each: float) -> None:
    made = job("posix per_rank meta_split cpu events")
    calls = 10_000
    layer_jobs.write_elements(made, calls, calls * 2e-5)
    made.programs = ["/usr/bin/python3.11"]
    add_events(
        made,
        0,
        "/scratch/values.h5:/values",
        "write",
        layer="hdf5",
        start=np.arange(calls) * (gap + 2e-5),
        duration=2e-5,
        length=8,
    )
    (finding,) = analyze(made).findings
    assert finding.seconds == pytest.approx(calls * (each + 2e-5), rel=0.02)


def test_time_between_calls_with_others_between_them_is_not_that_of_h5py() -> None:
    made = job("posix per_rank meta_split cpu events")
    calls, took = 10_000, 2e-4
    layer_jobs.write_elements(made, calls, calls * took)
    made.programs = ["/usr/bin/python3.11"]
    of_hdf5 = {"layer": "hdf5", "duration": took, "length": 8}
    start = np.arange(calls) * 4e-4
    add_events(made, 0, "/scratch/values.h5:/values", "write", start=start, **of_hdf5)
    add_events(made, 0, "/scratch/input", "read", start=start + 2.5e-4, duration=1e-4)
    (finding,) = (one for one in analyze(made).findings if one.rule == "hdf5-calls")
    assert finding.seconds == pytest.approx(calls * took, rel=0.02)


def test_independent_calls_of_pnetcdf_name_their_variables() -> None:
    made = make_job(4, 100.0, mpi=True, has={"posix", "mpiio", "per_rank", "meta_split", "cpu"})
    add_filesystem(made, "/scratch")
    moved = {"writes": 10_000, "bytes_written": 10_000 * 8000}
    add_record(made, range(4), "/scratch/s.nc", "mpiio", **moved, write_time=12.0)
    inner = {"inner_writes": 10_000, "inner_write_time": 12.0}
    add_record(made, range(4), "/scratch/s.nc:salt", "pnetcdf", **moved, write_time=12.5, **inner)
    add_record(made, range(4), "/scratch/s.nc:all", "pnetcdf", writes=5, collective_writes=5)
    finding = next(one for one in analyze(made).findings if one.rule == "missing-collectives")
    (text,) = (fix.text for fix in finding.fixes if "ncmpi_put_vara_all" in fix.text)
    assert "outside of ncmpi_begin_indep_data, for /scratch/s.nc:salt;" in text


def test_the_chunk_cache_of_netcdf_is_set_by_netcdf() -> None:
    made = job()
    layer_jobs.read_chunks(made, MIB)
    made.records["layer"][made.records["layer"] == LAYERS.index("hdf5")] = LAYERS.index("netcdf")
    (finding,) = (one for one in analyze(made).findings if one.rule == "chunk-thrash")
    assert any("nc_set_var_chunk_cache" in fix.text for fix in finding.fixes)
    assert not any("h5py" in fix.text for fix in finding.fixes)


def test_a_dataset_written_after_each_opening_is_not_blamed_on_the_calls_of_hdf5() -> None:
    made = job()
    layer_jobs.write_elements(made, 2000, 5.0)
    assert analyze(made).findings[0].rule == "hdf5-calls"
    add_record(made, 0, "/scratch/values.h5", opens=2000, closes=2000, open_time=2.0)
    (finding,) = analyze(made).findings
    assert finding.rule == "open-close-loop"


@pytest.mark.parametrize(("written", "found"), [(800, True), (4 << 20, False)])
def test_flushes_of_a_library_after_few_bytes_are_a_storm(written: int, found: bool) -> None:
    made = job("posix per_rank meta_split cpu")
    add_record(made, 0, "/scratch/a.h5", "hdf5", opens=1, flushes=1000, flush_time=8.0)
    add_record(made, 0, "/scratch/a.h5", opens=1, writes=1000, bytes_written=1000 * written)
    storms = [one for one in analyze(made).findings if one.rule == "flush-storm"]
    assert bool(storms) == found
    if found:
        assert storms[0].title == "1,000 flushes of HDF5 on /scratch/a.h5"
        assert storms[0].seconds == pytest.approx(8.0, rel=0.01)


def open_datasets(made: Job, opens: int, size: int, of_file: int = 1) -> None:
    """Opens each of 2000 datasets of a file and reads it: 1 ms in the open, 0.2 ms in the read,
    half of both in reads of the file."""
    paths = [f"/scratch/climate.h5:/site{number}" for number in range(2000)]
    inner = {"inner_read_time": 1e-4 * opens, "inner_other_time": 5e-4 * opens}
    times = {"open_time": 1e-3 * opens, "read_time": 2e-4 * opens}
    moved = {"opens": opens, "closes": opens, "reads": opens, "bytes_read": size * opens}
    add_record(made, 0, paths, "hdf5", **moved, **times, **inner)
    reads = {"reads": 4000 * opens, "bytes_read": 2000 * size * opens, "opens": of_file}
    add_record(made, 0, "/scratch/climate.h5", **reads, read_time=1.2 * opens)


@pytest.mark.parametrize(
    ("opens", "size", "of_file", "seconds"),
    [(3, 64, 1, 7.2), (3, 512, 1, 0.0), (1, 64, 2000, 0.0)],
    ids=["small", "larger than their headers", "file opened for each"],
)
def test_opens_of_many_small_datasets_cost_their_calls_and_those_below(
    opens: int, size: int, of_file: int, seconds: float
) -> None:
    made = job()
    open_datasets(made, opens, size, of_file)
    found = [one for one in analyze(made).findings if one.rule == "hdf5-objects"]
    assert sum(one.seconds for one in found) == pytest.approx(seconds, rel=0.02)
    for one in found:
        assert "6,000 opens of 2,000 datasets in /scratch/climate.h5, of 64 B" in one.title
        assert one.remedy == "keeping small datasets in one"
        assert [fix.text for fix in one.fixes][1:] == ["Keep datasets open that are used again."]


@pytest.mark.parametrize(
    ("module", "calls", "incomplete"),
    [
        ("/home/user/solver", 600, True),
        ("/home/user/solver", 20, False),
        ("/usr/lib/libhdf5.so.103", 600, False),
    ],
)
def test_hdf5_inside_the_program_is_named_as_unseen(
    module: str, calls: int, incomplete: bool
) -> None:
    made = make_job(1, 100.0)
    add_record(made, 0, "/scratch/a.h5", writes=calls, bytes_written=8 * calls, write_time=0.1)
    made.stacks = [
        (
            Frame("/usr/lib/libc.so.6", function="pwrite"),
            Frame(module, function="H5FD__sec2_write"),
            Frame(module, function="H5Awrite"),
            Frame("/home/user/solver", function="store", file="/home/user/a.c", line=7),
        )
    ]
    made.function_names = ["pwrite"]
    made.sites = np.zeros(1, SITE)
    made.sites["calls"] = calls
    analysis = analyze(made)
    assert (
        "HDF5 cannot be seen, because it is linked into solver" in analysis.verdict.sentence
    ) == (incomplete)
    assert (analysis.verdict.grade == "unknown") == incomplete
    assert user_depth(made.stacks[0]) == 3
