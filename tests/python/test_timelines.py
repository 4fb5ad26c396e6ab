"""Timelines of ranks: spans made of events, and their picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from pario.errors import ParioError
from pario.prove.bench.timelines import KINDS, panels_of
from pario.see.analyze.spans import Kind, Panel, merge_spans
from pario.see.report.picture import draw_spans
from pario.see.report.spans import figure, ticks
from pario.see.tables.model import Job
from tests.python.jobs import add_events, make_job

FILE = "/scratch/pattern/array"


def add_barrier(job: Job, rank: int, start: float) -> None:
    add_events(job, rank, "", "communicate", start=start, duration=0.1)


def two_rounds() -> Job:
    """Makes two ranks that write and read twice. In the second round, from 10 s on, only rank 0
    writes, 1000 times, and both read."""
    job = make_job(ranks=2, wall=30.0)
    for rank in range(2):
        add_events(job, rank, FILE, "write", start=2.0, duration=1.0, length=8)
        for start in (1.0, 5.0, 9.0, 10.0, 15.0, 20.0):
            add_barrier(job, rank, start)
        add_events(job, rank, FILE, "read", start=16.0 + rank, duration=1.0, length=8)
        for start in (13.0 + rank, 18.5):  # times at which the barrier completes
            add_events(
                job, rank, "", "communicate", function="MPI_Ibarrier", start=start, duration=0.001
            )
        add_events(job, rank, "", "communicate", function="MPI_Test", start=14.5, duration=0.001)
        add_events(job, rank, "", "communicate", function="MPI_Scatter", start=18.0, duration=0.4)
        add_events(job, rank, "/elsewhere", "write", start=11.0, duration=1.0, length=8)
    add_events(
        job, 0, FILE, "write", start=11.0 + 0.002 * np.arange(1000), duration=0.001, length=8
    )
    return job


def test_the_last_round_of_a_pattern_is_shown() -> None:
    write, read = panels_of("one", two_rounds(), Path("/scratch"))
    assert (write.title, read.title) == ("one: write, 2.90 s", "one: read, 3.30 s")
    assert list(write.labels) == ["rank 0", "rank 1"]
    ((begin, end),) = write.rows[0]["write"]
    assert (begin, end) == (pytest.approx(0.9), pytest.approx(2.899))
    assert not write.rows[1]
    assert [list(row) for row in read.rows] == [["communication", "read"]] * 2
    assert read.rows[1]["read"][0] == (pytest.approx(1.9), pytest.approx(2.9))


def test_a_log_without_its_barriers_is_refused() -> None:
    with pytest.raises(ParioError, match="the log of one does not show where it begins"):
        panels_of("one", make_job(ranks=2), Path("/scratch"))


def test_of_many_ranks_some_are_shown() -> None:
    job = make_job(ranks=1000, wall=30.0)
    for start in (1.0, 5.0, 9.0):
        add_barrier(job, 0, start)
    add_events(job, 16, FILE, "write", start=2.0, duration=1.0, length=8)
    write, _ = panels_of("files", job, Path("/scratch"))
    assert len(write.rows) == 63 and write.labels[1] == "rank 16" and write.rows[1]["write"]


def test_near_spans_are_one() -> None:
    begins, ends = np.array([3.0, 0.0, 1.05, 0.2]), np.array([4.0, 1.0, 2.0, 0.3])
    assert merge_spans(begins, ends, 0.1) == [(0.0, 2.0), (3.0, 4.0)]
    assert merge_spans(begins, ends, 0.01) == [(0.0, 1.0), (1.05, 2.0), (3.0, 4.0)]


@pytest.mark.parametrize(
    ("seconds", "last"), [(1.0, 1.0), (0.0034, 0.003), (730.0, 600.0), (1e-6, 1e-6)]
)
def test_ticks_are_round(seconds: float, last: float) -> None:
    found = ticks(seconds)
    assert found[0] == 0.0 and found[-1] == pytest.approx(last) and 3 <= len(found) <= 6


@pytest.mark.parametrize("ranks", [1, 4, 64])
def test_each_row_has_its_bars_where_it_was_busy(ranks: int) -> None:
    rows = [{"write": [(0.5, 1.0)]}] + [{}] * (ranks - 1)
    panel = Panel("a < b", 1.0, [f"rank {rank}" for rank in range(ranks)], rows)
    root = ElementTree.fromstring(figure([panel] * 3, [Kind("write", "#123456", 0.8)]))
    bars = [
        one for one in root.iter("{http://www.w3.org/2000/svg}path") if one.get("fill") == "#123456"
    ]
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(bars) == 3 and bars[0].get("d", "").startswith("M259.0 ")
    assert texts.count("a < b") == 3 and texts.count("rank 0") == 3
    assert float(root.get("height", "0")) < 600


@pytest.mark.system
def test_a_picture_has_the_format_of_its_suffix(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    panels = panels_of("one", two_rounds(), Path("/scratch"))
    for suffix, begin in (
        (".svg", b"<svg "),
        (".html", b"<!doctype html>"),
        (".png", b"\x89PNG\r\n"),
    ):
        draw_spans(tmp_path / f"picture{suffix}", "title", panels, KINDS, "told")
        assert (tmp_path / f"picture{suffix}").read_bytes().startswith(begin)
