"""The live view of a run: rates, pauses, and logs with many events."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.cli.follow import pause
from pario.see.analyze.attendance import find_meetings
from pario.see.analyze.facts import Facts
from pario.see.analyze.progress import progress
from pario.see.analyze.split import Times
from pario.see.report.live import Sample, describe_rates
from pario.see.tables import read
from pario.see.tables.model import CurrentCall
from tests.python.jobs import make_job
from tests.python.plog import ProcessLog, events


def test_rates_are_those_since_the_look_before() -> None:
    before, now = Sample(10.0, 5_000_000, 0), Sample(12.0, 9_000_000, 3_000_000)
    assert describe_rates(before, now) == (
        "read 9.00 MB (now 2.00 MB/s), wrote 3.00 MB (now 1.50 MB/s)"
    )
    assert describe_rates(None, now) == "read 9.00 MB, wrote 3.00 MB"
    assert describe_rates(now, now) == "read 9.00 MB, wrote 3.00 MB"


@pytest.mark.parametrize(
    ("interval", "cost", "expected"), [(2.0, 0.1, 1.9), (2.0, 0.4, 1.6), (2.0, 3.0, 12.0)]
)
def test_looks_take_at_most_a_fifth_of_the_time(
    interval: float, cost: float, expected: float
) -> None:
    assert pause(interval, cost) == pytest.approx(expected)


def log_of_100_events(place: Path) -> Path:
    records = [{"path": "/a", "writes": 100, "bytes_written": 500}]
    chunks = [events(60), events(40, first=1.0)]
    return ProcessLog(
        rank=0, size=2, records=records, chunks=chunks, process={"events": 100}
    ).write(place)


def test_no_event_is_read_if_there_are_more_than_the_limit(tmp_path: Path) -> None:
    path = log_of_100_events(tmp_path)
    few, many = read([path], most_events=100), read([path], most_events=99)
    assert (len(few.events), few.events_left_out) == (100, False)
    assert (len(many.events), many.events_left_out) == (0, True)
    assert many.records["bytes_written"].tolist() == few.records["bytes_written"].tolist() == [500]
    assert many.unseen == few.unseen
    left_out = "the 100 events are left out: waiting and missing ranks are not known"
    assert many.messages == [left_out, *few.messages]


@pytest.mark.parametrize(("free", "read_events"), [(51_200, 100), (51_198, 0)])
def test_no_event_is_read_if_they_need_more_than_half_of_the_free_memory(
    free: int, read_events: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of_100_events(tmp_path)
    monkeypatch.setattr("pario.see.tables.own.job.free_memory", lambda: free)
    job = read([path])
    assert (len(job.events), job.events_left_out) == (read_events, read_events == 0)
    assert job.records["bytes_written"].tolist() == [500]
    needed = "the 100 events need some 25.6 kB of memory and are left out: "
    assert any(text.startswith(needed) for text in job.messages) == job.events_left_out


def test_damaged_events_are_not_noticed_where_they_are_not_read(tmp_path: Path) -> None:
    path = log_of_100_events(tmp_path)
    data = path.read_bytes()
    place = data.index(b"PBLK\6")  # the first chunk
    path.write_bytes(data[: place + 100] + b"damage" + data[place + 106 :])
    assert any("damaged" in text for text in read([path]).messages)
    assert not any("damaged" in text for text in read([path], most_events=1).messages)


def make_current(function: str, category: str, collective: bool = False) -> CurrentCall:
    """Returns a call of the first process that writes 10 bytes to the first file."""
    return CurrentCall(
        process=0,
        thread=0,
        depth=0,
        function=function,
        category=category,
        op="write",
        path="/a",
        file=0,
        fifo=False,
        start=1.0,
        offset=0,
        length=10,
        communicator=-1,
        collective=collective,
    )


@pytest.mark.parametrize(
    ("mpi", "status", "state"),
    [(False, 0, "ended"), (False, 143, "killed"), (False, None, "killed"), (True, 0, "killed")],
)
def test_a_helper_that_a_successful_command_ended_was_no_killed_run(
    mpi: bool, status: int | None, state: str
) -> None:
    job = make_job(1, mpi=mpi)
    job.current.append(make_current("write", "posix"))
    job.exit_status = status
    assert progress(Facts(Times(job))).state == state


def test_no_rank_is_called_missing_if_the_events_are_left_out(tmp_path: Path) -> None:
    job = read([log_of_100_events(tmp_path)], most_events=1)
    job.current.append(make_current("MPI_File_write_all", "mpiio", collective=True))
    assert find_meetings(job, 5.0) == ()
    job.events_left_out = False
    assert [meeting.missing for meeting in find_meetings(job, 5.0)] == [(1,)]
