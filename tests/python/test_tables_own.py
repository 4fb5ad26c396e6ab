"""pario's own logs in the table model."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from pario.see.tables import ReadError, read
from pario.see.tables.model import EVENT_KINDS, RECORD
from tests.python.plog import FUNCTIONS, PAGE, RECORD_FIELDS, ProcessLog, events, moment, ticks


def read_logs(directory: Path, *logs: ProcessLog):
    for log in logs:
        log.write(directory)
    return read([directory])


def test_counters_times_and_moments_of_a_record(tmp_path):
    record = {
        "path": "/data/a",
        "writes": 3,
        "bytes_written": 1536,
        "write_time": ticks(0.5),
        "first_write": moment(2),
        "write_size_1": 3,
    }
    job = read_logs(tmp_path, ProcessLog(records=[record]))
    (row,) = job.records
    assert (row["writes"], row["bytes_written"], row["write_time"]) == (3, 1536, pytest.approx(0.5))
    assert row["first_write"] == pytest.approx(2.0)
    assert np.isnan(row["first_read"])
    assert list(row["write_sizes"]) == [0, 3, 0, 0, 0, 0, 0, 0, 0, 0]
    assert job.path(row["file"]) == "/data/a"
    assert (job.start, job.wall) == (pytest.approx(1.7e9), pytest.approx(10.0))


def test_every_counter_of_the_model_is_filled_from_the_counter_of_the_same_name(tmp_path):
    values = {name: 1000 + i for i, (name, _) in enumerate(RECORD_FIELDS)}
    values |= {"path": "/a", "layer": 1, "kind": stat.S_IFREG, "filesystem": 0}
    (row,) = read_logs(tmp_path, ProcessLog(records=[values])).records
    own = {"process", "file", "layer", "read_sizes", "write_sizes", "ranks"}
    for name in (
        set(RECORD.names)
        - own
        - {n for n in RECORD.names if n.startswith(("slowest_rank", "fastest_rank", "variance"))}
    ):
        unit = dict(RECORD_FIELDS)[name]
        expected = {"ticks": lambda v: v / 2e9, "time": lambda v: v / 2e9 - 1}.get(
            unit, lambda v: v
        )(values[name])
        assert row[name] == pytest.approx(expected), name


def test_events_of_chunks_and_of_the_live_tail_are_sorted_and_in_seconds(tmp_path):
    first, second = (
        events(1000, first=1.0),
        events(1000, first=0.5, function=1, offset=np.uint64(2**64 - 1)),
    )
    job = read_logs(
        tmp_path,
        ProcessLog(records=[{"path": "/a"}], chunks=[first, second], tail=events(5, first=0.25)),
    )
    assert len(job.events) == 2005
    assert np.all(np.diff(job.events["start"]) >= 0)
    assert job.events["start"][0] == pytest.approx(0.25)
    reads = job.events[job.events["kind"] == 2]
    assert len(reads) == 1000
    assert set(reads["offset"]) == {-1}
    assert np.allclose(reads["end"] - reads["start"], 0.0005)
    assert {job.function_names[i] for i in np.unique(job.events["function"])} == {"read", "write"}


def test_merged_events_end_after_their_span(tmp_path):
    job = read_logs(
        tmp_path, ProcessLog(records=[{"path": "/a"}], chunks=[events(1, count=10, span=3_000_000)])
    )
    assert job.events["end"][0] - job.events["start"][0] == pytest.approx(3.0)


def test_communication_events_name_their_communicator_and_io_events_their_file(tmp_path):
    note = {"note": "communicator", "number": 7, "id": 99, "size": 6, "ranks": "0-3,8,10"}
    chunk = np.concatenate(
        [
            events(1, function=5, file=7),
            events(1, file=1, first=1.0),
            events(1, file=2**32 - 1, first=2.0),
        ]
    )
    log = ProcessLog(
        rank=0, size=1, records=[{"path": "/a"}, {"path": "/b"}], chunks=[chunk], notes=[note]
    )
    job = read_logs(tmp_path, log)
    assert job.communicators[job.events["file"][0]].ranks == (0, 1, 2, 3, 8, 10)
    assert job.events["layer"][0] == 255
    assert EVENT_KINDS[job.events["kind"][0]] == "communicate"
    assert job.path(job.events["file"][1]) == "/b"
    assert job.events["file"][2] == -1
    assert {"mpi", "sync", "events"} <= job.has


def test_functions_keep_calls_bytes_and_seconds(tmp_path):
    rows = [(0, 0, 0, 0, 0)] * len(FUNCTIONS)
    rows[2] = (10, ticks(2.0), 5120, ticks(0.5), 1)
    (row,) = (job := read_logs(tmp_path, ProcessLog(functions=rows))).functions
    assert job.function_names[row["name"]] == "write"
    assert row.tolist()[3:] == ("posix", 10, pytest.approx(2.0), 5120, pytest.approx(0.5), 1)


def test_a_killed_process_has_no_end_but_a_last_moment_and_is_mentioned(tmp_path):
    log = ProcessLog(
        rank=3,
        size=4,
        end=None,
        records=[{"path": "/a", "last_write": moment(7.5)}],
        unwritten_pages=3,
    )
    job = read_logs(tmp_path, log)
    assert np.isnan(job.processes["end"][0])
    assert (job.processes["seen"][0], job.wall) == (pytest.approx(7.5), pytest.approx(7.5))
    assert any("rank 3" in text and "killed" in text for text in job.messages)
    assert any("3 pages were reserved" in text for text in job.messages)


def test_ranks_come_first_and_every_process_image_has_a_row(tmp_path):
    shell = ProcessLog(
        pid=1,
        start_realtime_ns=1_700_000_000_000_000_000 - 10**9,
        start_mono_ns=49_000_000_000,
        process={"end_kind": 3},
    )
    ranks = [ProcessLog(pid=2 + r, rank=r, size=2) for r in (1, 0)]
    job = read_logs(tmp_path, shell, *ranks)
    assert job.processes["rank"].tolist() == [0, 1, -1]
    assert job.ranks == 2
    assert job.processes["start"].tolist() == pytest.approx([1.0, 1.0, 0.0])
    assert job.wall == pytest.approx(11.0)


def test_hosts_with_different_clocks_are_related_by_the_barriers(tmp_path):
    barrier = {"note": "clock", "kind": "barrier"}
    one = ProcessLog(
        host="a",
        rank=0,
        size=2,
        start_mono_ns=10**12,
        notes=[barrier | {"mono_ns": 10**12 + 10**9}],
    )
    late_clock = (
        1_700_000_000_000_000_000 + 5 * 10**9
    )  # the second host's real-time clock is 5 s ahead
    two = ProcessLog(
        host="b", rank=1, size=2, start_mono_ns=7 * 10**12, start_realtime_ns=late_clock
    )
    two.notes = [barrier | {"mono_ns": 7 * 10**12 + 10**9}]
    job = read_logs(tmp_path, one, two)
    assert job.hosts == ["a", "b"]
    assert job.processes["start"].tolist() == pytest.approx([0.0, 0.0])


def test_a_second_barrier_takes_out_the_drift(tmp_path):
    def log(host: str, rank: int, rate: float) -> ProcessLog:
        notes = [
            {"note": "clock", "kind": "barrier", "mono_ns": 10**12 + round(s * 1e9 * rate)}
            for s in (1.0, 1001.0)
        ]
        record = {"path": f"/{host}", "last_write": moment(1001.0 * rate)}
        return ProcessLog(
            host=host, rank=rank, size=2, start_mono_ns=10**12, notes=notes, records=[record]
        )

    job = read_logs(tmp_path, log("a", 0, 1.0), log("b", 1, 1.0001))
    assert job.records["last_write"].tolist() == pytest.approx([1001.0, 1001.0], abs=1e-6)


@pytest.mark.parametrize(
    ("network", "paths"), [(False, {"a:/tmp/x", "b:/tmp/x"}), (True, {"/tmp/x"})]
)
def test_the_same_path_on_local_file_systems_of_two_hosts_is_two_files(tmp_path, network, paths):
    note = {
        "note": "filesystem",
        "id": 1,
        "type": "ext4",
        "mount": "/tmp",
        "block": 4096,
        "network": network,
    }
    logs = [
        ProcessLog(
            host=h, rank=r, size=2, records=[{"path": "/tmp/x", "filesystem": 1}], notes=[note]
        )
        for r, h in enumerate("ab")
    ]
    job = read_logs(tmp_path, *logs)
    assert set(job.paths) == paths
    assert len(job.filesystems) == len(paths)


def test_streams_and_folded_directories_are_marked_and_unused_rows_left_out(tmp_path):
    job = read_logs(
        tmp_path,
        ProcessLog(
            records=[
                {"path": "<stdout>", "kind": stat.S_IFIFO},
                {"path": "/d/*", "folded": 1, "stats": 3},
                {"path": "*", "folded": 1},
            ]
        ),
    )
    assert job.files["stream"].tolist() == [1, 0]
    assert job.files["folded"].tolist() == [0, 1]


def test_layout_and_hint_notes_belong_to_their_files(tmp_path):
    layout = {
        "note": "layout",
        "record": 1,
        "kind": "ceph.file.layout",
        "value": b"stripe_unit=65536 stripe_count=4 object_size=1".hex(),
    }
    hint = {"note": "hint", "record": 1, "when": "effective", "hints": {"cb_nodes": "2"}}
    job = read_logs(
        tmp_path,
        ProcessLog(rank=0, size=1, records=[{"path": "/a"}, {"path": "/b"}], notes=[layout, hint]),
    )
    assert job.layouts[job.files["layout"][1]].stripe_count == 4
    assert job.files["layout"][0] == -1
    assert (job.path(job.hints[0].file), job.hints[0].key, job.hints[0].value) == (
        "/b",
        "cb_nodes",
        "2",
    )
    assert {"layout", "hints"} <= job.has


def write_job(tmp_path, status=128 + 15, **facts):
    about = {
        "command": ["app"],
        "launchers": 1,
        "start": 1.7e9,
        "end": 1.7e9 + 25.0,
        "exit_status": status,
        **facts,
    }
    (tmp_path / "job.json").write_text(json.dumps(about))


def test_the_end_of_a_killed_command_is_taken_from_its_launcher(tmp_path):
    write_job(tmp_path)
    later = {"start_mono_ns": 51_000_000_000, "start_realtime_ns": 1_700_000_001_000_000_000}
    job = read_logs(tmp_path, ProcessLog(end=None), ProcessLog(pid=1001, end=None, **later))
    assert (job.wall, job.processes["end"][0]) == (pytest.approx(25.0), pytest.approx(25.0))
    (message,) = job.messages
    assert message.startswith("no end is known of pid 1001 (app) on node0")


@pytest.mark.parametrize(
    "facts",
    [
        {"status": 0},
        {"status": "139"},
        {"status": None},
        {"launchers": 2},
        {"end": "soon"},
        {"end": float("inf")},
    ],
)
def test_an_unknown_end_is_not_guessed(tmp_path, facts):
    write_job(tmp_path, **facts)
    job = read_logs(tmp_path, ProcessLog(end=None))
    assert np.isnan(job.processes["end"][0])
    assert job.wall == pytest.approx(1.0)


def test_job_json_gives_command_and_exit_status_and_may_be_damaged(tmp_path):
    (tmp_path / "job.json").write_text(
        json.dumps({"command": ["mpiexec", "-n", "2", "a b"], "exit_status": 3})
    )
    job = read_logs(tmp_path, ProcessLog())
    assert (job.command, job.exit_status) == ("mpiexec -n 2 'a b'", 3)
    (tmp_path / "job.json").write_text("{")
    job = read([tmp_path])
    assert (job.command, job.exit_status) == ("app -x", None)
    assert any("job.json" in text for text in job.messages)


def test_another_version_is_an_error_naming_path_found_and_expected(tmp_path):
    path = ProcessLog().write(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[6] = 9
    path.write_bytes(damaged)
    with pytest.raises(ReadError, match=r"node0.*version 9; expected .*version 1"):
        read([path])


@pytest.mark.parametrize("content", [b"", b"hello, world", b"\x89HDF\r\n\x1a\n" + b"\0" * 100])
def test_a_foreign_file_is_an_error(tmp_path, content):
    path = tmp_path / "x.plog"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=r"x\.plog"):
        read([tmp_path])


def test_a_missing_path_and_an_empty_directory_are_errors(tmp_path):
    with pytest.raises(ReadError, match=r"missing: no such file or directory; expected"):
        read([tmp_path / "missing"])
    with pytest.raises(ReadError, match=r"directory without logs"):
        read([tmp_path])


def test_one_unreadable_log_among_good_ones_is_a_message(tmp_path):
    (tmp_path / "bad.1.2.plog").write_bytes(b"not a log")
    job = read_logs(tmp_path, ProcessLog())
    assert len(job.processes) == 1
    assert any("bad.1.2.plog" in text for text in job.messages)


def test_a_damaged_chunk_costs_its_events_only(tmp_path):
    log = ProcessLog(records=[{"path": "/a"}], chunks=[events(1000), events(2000, first=5.0)])
    path = log.write(tmp_path)
    data = bytearray(path.read_bytes())
    at = next(i for i in range(0, len(data), PAGE) if data[i : i + 6] == b"PBLK\x06\0")
    data[at + 70] ^= 0xFF
    path.write_bytes(data)
    job = read([tmp_path])
    assert len(job.events) == 2000
    assert any("checksum" in text for text in job.messages)


def test_workers_that_their_parent_ends_by_a_signal_are_no_gap(tmp_path):
    worker = {"ppid": 1000, "parent_image": 1}
    workers = [ProcessLog(pid=1001 + number, end=None, process=worker) for number in range(3)]
    assert read_logs(tmp_path, ProcessLog(pid=1000), *workers).messages == []


def test_a_killed_program_that_another_one_started_is_a_gap(tmp_path):
    program = ProcessLog(pid=1001, end=None, process={"ppid": 1000, "parent_image": 0})
    (message,) = read_logs(tmp_path, ProcessLog(pid=1000), program).messages
    assert message.startswith("no end is known of pid 1001 (app) on node0")
