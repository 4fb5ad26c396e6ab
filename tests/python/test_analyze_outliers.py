"""Single slow calls stand out among many fast ones of their kind."""

import io

import numpy as np
import pytest
from rich.console import Console

from pario.see.analyze import analyze
from pario.see.report import terminal
from pario.see.report.words import slow_call
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_record, make_job


def opens(seconds: list[float]) -> Job:
    """One open per rank of its own file; the files are then closed."""
    job = make_job(len(seconds), wall=2.0)
    for rank, duration in enumerate(seconds):
        path = f"/scratch/out.{rank:02d}"
        add_record(job, rank, path, opens=1, open_time=duration)
        add_events(job, rank, path, "open", start=0.5, duration=duration, function="open")
    return job


def test_one_slow_open_of_48_files_is_named_with_rank_and_moment() -> None:
    """Row R05: one open takes 60 ms, all others 0.4 ms."""
    analysis = analyze(opens([0.0004] * 17 + [0.06] + [0.0004] * 30))
    (slow,) = analysis.outliers
    assert (slow.function, slow.file, slow.rank) == ("open", "/scratch/out.17", 17)
    assert (slow.start, slow.seconds, slow.usual) == pytest.approx((0.5, 0.06, 0.0004))
    stream = io.StringIO()
    terminal.render(analysis, Console(file=stream, width=100))
    assert (
        "one open of /scratch/out.17 took 0.06 s at 0.50 s on rank 17, 47 others 400 µs (median)"
        in stream.getvalue()
    )


def test_opens_of_one_speed_have_no_outlier() -> None:
    assert analyze(opens([0.06] * 48)).outliers == ()


def test_many_slow_opens_are_a_habit_not_an_exception() -> None:
    assert analyze(opens([0.0004] * 40 + [0.06] * 8)).outliers == ()


def test_a_large_write_among_small_ones_is_no_outlier() -> None:
    job = make_job(1, wall=2.0)
    seconds, lengths = np.full(101, 1e-4), np.full(101, 512)
    seconds[100], lengths[100] = 0.5, 1 << 30
    add_record(
        job, 0, "/out", writes=101, write_time=seconds.sum(), bytes_written=int(lengths.sum())
    )
    add_events(
        job, 0, "/out", "write", start=np.arange(101) * 0.01, duration=seconds, length=lengths
    )
    assert analyze(job).outliers == ()


def test_without_events_the_longest_call_of_a_row_stands_out() -> None:
    job = make_job(1, wall=2.0, has={"posix"})
    add_record(
        job,
        0,
        "/out",
        writes=1000,
        write_time=0.1 + 0.07,
        bytes_written=10**9,
        slowest_write_time=0.07,
    )
    (slow,) = analyze(job).outliers
    assert (slow.file, slow.seconds) == ("/out", 0.07)
    assert np.isnan(slow.start)
    assert slow_call(slow).endswith("999 others 100 µs (mean)")


def test_a_slow_call_inside_a_slow_call_is_named_once() -> None:
    job = make_job(1, wall=2.0, has={"mpiio", "posix", "events"})
    starts, seconds = np.arange(20) * 0.05, np.full(20, 1e-4)
    seconds[7] = 0.04
    for layer, function in (("mpiio", "MPI_File_read"), ("posix", "read")):
        add_record(job, 0, "/in", layer=layer, reads=20, read_time=seconds.sum(), bytes_read=20)
        add_events(
            job,
            0,
            "/in",
            "read",
            layer=layer,
            start=starts + (1e-6 if layer == "posix" else 0.0),
            duration=seconds - (2e-6 if layer == "posix" else 0.0),
            length=1,
            function=function,
        )
    assert [outlier.function for outlier in analyze(job).outliers] == ["MPI_File_read"]
