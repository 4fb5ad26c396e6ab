"""Exports hold the data that other tools need."""

from __future__ import annotations

import errno
import gzip
import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.publishing import is_part
from pario.see import export
from tests.python.jobs import (
    add_events,
    add_filesystem,
    add_function,
    add_hint,
    add_record,
    make_job,
    set_layout,
)


@pytest.fixture
def job():
    job = make_job(ranks=2, wall=10.0, hosts=2)
    add_filesystem(job, "/scratch", "lustre", network=True)
    add_record(job, range(2), "/scratch/a", writes=[5, 7], bytes_written=512, write_sizes={512: 5})
    add_function(job, 0, "MPI_Send", "p2p", calls=1)
    add_events(
        job,
        range(2),
        "/scratch/a",
        "write",
        start=[1.0, 2.0],
        duration=0.5,
        offset=4096,
        length=1_000_000,
    )
    add_events(
        job,
        0,
        "",
        "communicate",
        start=3.0,
        duration=0.1,
        offset=(1 << 32) | 7,
        length=80,
        function="MPI_Send",
    )
    add_events(job, 1, "", "communicate", start=3.0, duration=0.1, offset=4)
    set_layout(job, "/scratch/a", 1 << 20, [3, 4])
    add_hint(job, "/scratch/a", "cb_nodes", "2")
    return job


def trace_of(job, path):
    export.perfetto(job, path)
    return json.loads(gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text())


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_perfetto_has_a_named_process_per_rank_and_a_slice_per_event(tmp_path, job, name):
    events = trace_of(job, tmp_path / name)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {0: "job", 1: "rank 0 on node0", 2: "rank 1 on node1"}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 4
    assert all({"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"} <= e.keys() for e in slices)
    first = slices[0]
    assert (first["name"], first["cat"], first["pid"], first["ts"], first["dur"]) == (
        "write",
        "posix",
        1,
        1e6,
        5e5,
    )
    assert first["args"] == {
        "file": "/scratch/a",
        "kind": "write",
        "offset": 4096,
        "bytes": 1_000_000,
    }


def test_perfetto_distinguishes_messages_and_collectives(tmp_path, job):
    slices = [e for e in trace_of(job, tmp_path / "t.json")["traceEvents"] if e.get("cat") == "mpi"]
    by_name = {e["name"]: e["args"] for e in slices}
    assert by_name["MPI_Send"] == {"communicator": 0, "peer": 1, "tag": 7, "bytes": 80}
    assert by_name["MPI_Barrier"]["sequence"] == 4


def test_perfetto_counters_add_up_to_the_bytes_moved(tmp_path, job):
    counters = [e for e in trace_of(job, tmp_path / "t.json")["traceEvents"] if e["ph"] == "C"]
    assert {e["name"] for e in counters} == {"posix write, B/s"}
    assert sum(e["args"]["B/s"] for e in counters) * 0.01 == pytest.approx(2_000_000, rel=1e-3)
    assert all(e["args"]["B/s"] == 0 for e in counters if e["ts"] < 0.98e6)


def test_perfetto_of_a_job_without_events_is_a_valid_trace(tmp_path):
    events = trace_of(make_job(ranks=3), tmp_path / "t.json")["traceEvents"]
    assert {e["ph"] for e in events} == {"M"}


def test_parquet_has_one_file_per_table_with_names_in_place_of_numbers(tmp_path, job):
    export.parquet(job, tmp_path / "out")
    tables = {"processes", "records", "files", "functions", "filesystems", "mpiio", "events"}
    assert {p.stem for p in (tmp_path / "out").iterdir()} == {"job", *tables}
    events = pq.read_table(tmp_path / "out/events.parquet").to_pylist()
    assert [e["function"] for e in events] == ["write", "write", "MPI_Send", "MPI_Barrier"]
    assert [e["layer"] for e in events] == ["posix", "posix", "mpi", "mpi"]
    (first, _) = pq.read_table(tmp_path / "out/records.parquet").to_pylist()
    assert (first["writes"], first["write_sizes"][1], first["first_read"]) == (5, 5, None)
    assert pq.read_table(tmp_path / "out/job.parquet").to_pylist()[0]["command"] == "./app"


def test_parquet_writes_events_in_row_groups(tmp_path, monkeypatch):
    job = make_job(ranks=1)
    add_events(job, 0, "/a", start=np.arange(250) * 0.01)
    monkeypatch.setitem(export.parquet.__globals__, "_ROWS_PER_GROUP", 100)
    export.parquet(job, tmp_path)
    file = pq.ParquetFile(tmp_path / "events.parquet")
    assert (file.metadata.num_row_groups, file.metadata.num_rows) == (3, 250)


def fail_with_a_full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_an_interrupted_trace_leaves_the_older_file(tmp_path, job, monkeypatch, name):
    (tmp_path / name).write_text("older")
    monkeypatch.setitem(export.perfetto.__globals__, "_rates", fail_with_a_full_disk)
    with pytest.raises(ParioError, match=rf"cannot write {tmp_path}/{name}: No space left"):
        export.perfetto(job, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "older"


@pytest.mark.parametrize("names", [None, ["events.parquet", "mine"]])
def test_interrupted_tables_leave_the_directory(tmp_path, job, monkeypatch, names):
    directory = tmp_path / "out"
    for name in names or []:
        directory.mkdir(exist_ok=True)
        (directory / name).write_text("older")
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail_with_a_full_disk)
    with pytest.raises(ParioError, match=rf"cannot write {directory}: No space left"):
        export.parquet(job, directory)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["out", *names] if names else []
    )
    assert all((directory / name).read_text() == "older" for name in names or [])


def test_parquet_replaces_the_tables_of_a_directory_and_no_other_file(tmp_path, job):
    for name in ("events.parquet", "mine"):
        (tmp_path / name).write_text("older")
    export.parquet(job, tmp_path)
    assert len(pq.read_table(tmp_path / "events.parquet")) == 4
    assert (tmp_path / "mine").read_text() == "older"
    assert not [path for path in tmp_path.iterdir() if is_part(path.name)]


def test_gaps_in_a_log_are_named(tmp_path, job, monkeypatch, capsys):
    job.messages.append("the log of rank 1 is damaged")
    monkeypatch.setattr("pario.see.tables.read", lambda _: job)
    assert main(["export", "x.pario", "--json", str(tmp_path / "j.json")]) == 0
    assert capsys.readouterr().err == "pario export: the log of rank 1 is damaged\n"


def test_json_holds_every_table_but_events_and_leaves_out_unknown_values(job):
    document = json.loads(export.json(job))
    assert document["schema"] == 1
    assert document["job"]["ranks"] == 2
    assert document["files"][0]["path"] == "/scratch/a"
    assert document["records"][0]["writes"] == 5
    assert "first_read" not in document["records"][0]
    assert "reads" not in document["records"][0]
    assert document["layouts"][0]["targets"] == [3, 4]
    assert document["hints"][0]["key"] == "cb_nodes"
    assert "events" not in document
