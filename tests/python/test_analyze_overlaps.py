"""Possible corruption by overlapping writes, from the events of a job."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from pario.see.analyze import analyze, overlaps
from pario.see.analyze.model import OverlappingWrites
from pario.see.report import terminal
from pario.see.report.words import describe_overlaps
from pario.see.tables.model import SITE, Communicator, Frame, Job
from tests.python.jobs import add_events, add_record, make_job


def job(ranks: int = 3, **facts) -> Job:
    made = make_job(ranks, 10.0, **facts)
    add_record(made, range(ranks), "/scratch/out", writes=1, bytes_written=100, write_time=0.001)
    return made


def write(made: Job, rank: int, start: float, offset: int = 0, **fields) -> None:
    add_events(made, rank, "/scratch/out", start=start, offset=offset, length=100, **fields)


def talk(made: Job, rank, start: float, function: str, **fields) -> None:
    add_events(made, rank, "", "communicate", start=start, function=function, **fields)


def found(made: Job) -> tuple[OverlappingWrites, ...]:
    return analyze(made).overlaps


def test_the_bytes_and_ranks_of_unordered_writes_are_named() -> None:
    made = job()
    write(made, 0, 1.0)
    write(made, 2, 5.0, offset=60)
    (row,) = found(made)
    assert (row.path, row.bytes, row.ranks, row.processes) == (
        "/scratch/out",
        40,
        (0, 2),
        (1000, 1002),
    )
    assert [(one.begin, one.end, one.writers) for one in row.ranges] == [
        (60, 100, ("rank 0", "rank 2"))
    ]
    stream = io.StringIO()
    terminal.render(analyze(made), Console(file=stream, width=120))
    text = " ".join(stream.getvalue().split())
    assert "Possible corruption" in text
    assert "ranks 0, 2 write the same 40 B; bytes 60 to 99 of rank 0 by write" in text


@pytest.mark.parametrize(
    ("lines", "words"), [((8,), "solver.c:8 in main"), ((8, 9), "lines 8 and 9 of solver.c")]
)
def test_unordered_writes_have_their_lines(lines: tuple[int, ...], words: str) -> None:
    made = job()
    write(made, 0, 1.0)
    write(made, 2, 5.0)
    made.stacks = [
        (Frame("/home/u/solver", function="main", file="/home/u/solver.c", line=line),)
        for line in lines
    ]
    made.sites = np.zeros(len(lines), SITE)
    made.sites["stack"], made.sites["calls"] = np.arange(len(lines)), 10
    made.sites["name"] = made.function_names.index("write")
    (row,) = found(made)
    assert row.ranges[0].places == (words, "")
    assert f"rank 0 by write at 1.00 s ({words}) and rank 2 by write at" in describe_overlaps(row)


def test_a_barrier_between_orders_writes() -> None:
    made = job()
    write(made, 0, 1.0)
    talk(made, range(3), 3.0, "MPI_Barrier", offset=0, flags=8)
    write(made, 2, 5.0)
    assert not found(made)


def test_a_barrier_of_other_ranks_orders_nothing() -> None:
    made = job()
    made.communicators.append(Communicator(2, 2, (0, 1)))
    write(made, 0, 1.0)
    talk(made, range(2), 3.0, "MPI_Barrier", offset=0, flags=8, file=1)
    write(made, 1, 5.0)
    write(made, 2, 6.0)
    (row,) = found(made)
    assert {one.writers for one in row.ranges} == {("rank 1", "rank 2")}


@pytest.mark.parametrize("receive", ["MPI_Recv", "MPI_Wait", "MPI_Sendrecv"])
def test_a_message_between_orders_writes(receive: str) -> None:
    made = job()
    write(made, 0, 1.0)
    talk(made, 0, 2.0, "MPI_Send", offset=(1 << 32) | 5)
    offset = (0 << 32) | 5 if receive == "MPI_Recv" else -1
    talk(made, 1, 1.9, receive, offset=offset, duration=0.2)
    write(made, 1, 5.0)
    assert not found(made)


def test_a_message_before_the_write_orders_nothing() -> None:
    made = job()
    talk(made, 0, 1.0, "MPI_Send", offset=(1 << 32) | 5)
    write(made, 0, 2.0)
    talk(made, 1, 1.0, "MPI_Recv", offset=5, duration=3.0)
    write(made, 1, 5.0)
    assert len(found(made)) == 1


def test_pieces_of_one_collective_write_overlap_and_those_of_two_do_not() -> None:
    for calls in (1, 2):
        made = job()
        for call in range(2):
            offsets = np.array([0, 50, 500]) if call < 2 - calls + 1 and calls == 1 else 0
            ranks = range(3) if calls == 1 else [call]
            moved = {"offset": offsets, "length": 100} if calls == 1 else {"offset": 0, "length": 9}
            add_events(
                made,
                ranks,
                "/scratch/out",
                start=1.0 + call,
                layer="mpiio",
                flags=8,
                function="MPI_File_write_at_all",
                **moved,
            )
            others = [rank for rank in range(3) if rank not in ranks]
            if others:
                add_events(
                    made,
                    others,
                    "/scratch/out",
                    start=1.0 + call,
                    layer="mpiio",
                    flags=8,
                    function="MPI_File_write_at_all",
                    offset=0,
                    length=0,
                )
        assert len(found(made)) == (1 if calls == 1 else 0)


@pytest.mark.parametrize("fields", [{"flags": 2}, {"flags": 32}, {"flags": 1}, {"count": 3}])
def test_calls_of_the_library_and_unknown_places_are_not_compared(fields: dict[str, int]) -> None:
    made = job()
    write(made, 0, 1.0, **fields)
    write(made, 1, 2.0, **fields)
    assert not found(made)


def test_lines_appended_by_several_ranks_raise_no_alarm() -> None:
    made = job()
    made.records["append_writes"] = 1
    write(made, 0, 1.0)
    write(made, 1, 2.0)
    assert not found(made)


def test_equal_paths_on_disks_of_different_hosts_are_different_files() -> None:
    made = job(2, hosts=2)
    write(made, 0, 1.0)
    write(made, 1, 2.0)
    assert not found(made)


@pytest.mark.parametrize(
    ("kind", "function", "files"),
    [("lock", "fcntl_lock", 0), ("lock", "flock", 0), ("other", "fcntl", 1)],
)
def test_file_locks_may_order_writes(kind: str, function: str, files: int) -> None:
    made = job()
    for rank in range(2):
        add_events(made, rank, "/scratch/out", kind, start=rank + 0.5, function=function)
        write(made, rank, rank + 0.6)
        add_events(made, rank, "/scratch/out", kind, start=rank + 0.8, function=function)
    assert len(found(made)) == files


def test_processes_without_mpi_are_compared_during_each_other_alone() -> None:
    for start, files in ((2.0, 0), (1.0005, 1)):
        made = job(2, mpi=False)
        write(made, 0, 1.0)
        write(made, 1, start)
        assert len(found(made)) == files


def test_a_log_with_lost_events_is_not_judged() -> None:
    made = job()
    made.processes["events_lost"] = 1
    write(made, 0, 1.0)
    write(made, 1, 2.0)
    assert not found(made)


def test_writes_beyond_the_limit_of_steps_are_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    made = job()
    write(made, 0, 1.0)
    write(made, 2, 5.0, offset=60)
    assert not any("corruption" in text for text in analyze(made).messages)
    monkeypatch.setattr(overlaps, "MAX_STEPS", 2)
    left_out = analyze(made)
    assert left_out.overlaps == ()
    (message,) = (text for text in left_out.messages if "corruption" in text)
    assert message == (
        "possible corruption is not known for 2 overlapping writes: there are more than 2 steps"
        " that may order them"
    )


def test_no_steps_are_built_for_more_writes_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made = job()
    write(made, 0, 1.0)
    write(made, 2, 5.0, offset=60)
    monkeypatch.setattr(overlaps, "MAX_STEPS", 1)
    monkeypatch.setattr(overlaps, "Step", lambda *_: pytest.fail("steps fill the memory"))
    (message,) = (text for text in analyze(made).messages if "corruption" in text)
    assert "more than 1 steps" in message


def test_writes_of_too_many_ranks_are_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    made = job()
    write(made, 0, 1.0)
    monkeypatch.setattr(overlaps, "MAX_LANES", 2)
    assert not any("corruption" in text for text in analyze(made).messages), "nothing overlaps"
    write(made, 2, 5.0)
    (message,) = (text for text in analyze(made).messages if "corruption" in text)
    assert message.endswith("for 2 overlapping writes: there are more than 2 ranks")
