"""The message about runs that asked for pario's MPI-IO and made no MPI-IO call."""

from __future__ import annotations

import pytest

from pario.see.analyze import analyze
from pario.see.tables.model import Frame, Job
from tests.python.jobs import add_record, make_job


def run(path: str = "/out/a.dat", layer: str = "posix", asked: str = "1", ranks: int = 2) -> Job:
    job = make_job(ranks, metadata={"env": {"PARIO_MPIIO": asked}})
    add_record(job, range(ranks), path, layer, writes=10, bytes_written=1000, write_time=1.0)
    return job


def messages(job: Job) -> list[str]:
    return [text for text in analyze(job).messages if "MPI-IO was asked for" in text]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/out/sim.bp/data.0", "ADIOS2's BP engine writes by other calls"),
        ("/out/a.h5.subfile_123_1_of_4", "HDF5's subfiling driver writes by other calls"),
        ("/out/a.dat", "the program uses its files by other calls"),
    ],
)
def test_the_library_is_named_by_its_files(path: str, name: str) -> None:
    (text,) = messages(run(path))
    assert name in text and "no rank called MPI-IO" in text


@pytest.mark.parametrize(
    "frame", [Frame(module="/usr/lib/libpnetcdf.so.7"), Frame(function="ncmpi_wait_all")]
)
def test_pnetcdf_is_named_by_its_frames(frame: Frame) -> None:
    job = run()
    job.stacks = [(frame, Frame(function="main"))]
    (text,) = messages(job)
    assert "PnetCDF's own driver GIO" in text and "nc_driver=mpiio in PNETCDF_HINTS" in text


def test_adios2_is_named_by_its_calls() -> None:
    job = run("/out/sim/data.0")
    add_record(job, range(2), "/out/sim", "adios2", opens=1)
    (text,) = messages(job)
    assert "ADIOS2's BP engine writes by other calls" in text


@pytest.mark.parametrize(("waits", "named"), [(0, True), (1, False)])
def test_requests_of_pnetcdf_that_are_never_awaited_are_named(waits: int, named: bool) -> None:
    job = make_job(2)
    for variable in ("u", "v"):
        counts = {"writes": 3, "nonblocking_calls": 3, "bytes_written": 300}
        add_record(job, range(2), f"/out/a.nc:{variable}", "pnetcdf", **counts)
    add_record(job, range(2), "/out/a.nc", "pnetcdf", opens=1, flushes=waits)
    found = [text for text in analyze(job).messages if "never awaited" in text]
    assert bool(found) == named
    assert not named or found[0].startswith("12 requests of PnetCDF")


def test_other_runs_have_no_message() -> None:
    assert messages(run(layer="mpiio")) == []
    assert messages(run(asked="0")) == []
    assert messages(run(ranks=1)) == []
    assert messages(make_job(2, metadata={"env": {"PARIO_MPIIO": "1"}})) == []
