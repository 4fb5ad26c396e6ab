"""Waiting of training loops: from the notes in a log to the rows of the reports."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pario.see.analyze import analyze
from pario.see.analyze.model import Analysis
from pario.see.launch.hook.pario_meter import Bins
from pario.see.report import html, terminal
from pario.see.tables import read
from pario.see.tables.model import LoaderUse
from tests.python.jobs import add_record, make_job
from tests.python.plog import ProcessLog, moment, ticks


def note(batches: int = 100, number: int = 0, waited: int = 6, **facts: Any) -> dict[str, Any]:
    timers = {"first": 10**9, "waited": waited * 10**9, "worked": 4 * 10**9, "longest": 10**8}
    about = {"kind": "DataLoader", "data": "Images", "workers": 2, "batch": 32, "processors": 8}
    return {
        "note": "loader",
        "id": number,
        **about,
        "batches": batches,
        "timers_ns": timers,
    } | facts


def analysis_of(place: Path, *notes: list[dict[str, Any]]) -> Analysis:
    for number, those in enumerate(notes):
        ProcessLog(
            pid=1000 + number, records=[{"path": "/data/images", "opens": 1}], notes=those
        ).write(place)
    return analyze(read([place]))


def test_the_last_note_of_a_loader_counts(tmp_path: Path) -> None:
    (row,) = analysis_of(tmp_path, [note(1), note(50), note(100)]).loaders
    assert (row.loader, row.data, row.workers, row.batch_size, row.batches, row.loops) == (
        "DataLoader",
        "Images",
        2,
        32,
        100,
        1,
    )
    assert (row.first_seconds, row.waited, row.worked, row.longest) == (1.0, 6.0, 4.0, 0.1)
    assert (row.stalled, row.samples_per_second) == (pytest.approx(0.6), pytest.approx(3200 / 11))


def test_loaders_of_one_description_are_one_row_and_the_longest_waited_for_comes_first(
    tmp_path: Path,
) -> None:
    rows = analysis_of(
        tmp_path, [note(), note(number=1, data="Words", waited=20)], [note()]
    ).loaders
    assert [(row.data, row.loops, row.batches, row.waited) for row in rows] == [
        ("Words", 1, 100, 20.0),
        ("Images", 2, 200, 12.0),
    ]
    assert rows[1].samples_per_second == pytest.approx(2 * 3200 / 11)


@pytest.mark.parametrize(
    "damaged",
    [
        {"timers_ns": None},
        {"batches": "many"},
        {"workers": None, "batch": -1.5},
        {"id": [1]},
        {"waits": [1]},
        {"waits": {"start_mono_ns": -1, "interval_ns": 10**9, "waited_us": [1]}},
        {"waits": {"start_mono_ns": 1, "interval_ns": 0, "waited_us": [1]}},
        {"waits": {"start_mono_ns": 1, "interval_ns": 10**9, "waited_us": [None, "1", -5]}},
        {"waits": {"start_mono_ns": 1, "interval_ns": 10**9, "waited_us": {}}},
    ],
)
def test_damaged_notes_do_no_harm(damaged: dict[str, Any], tmp_path: Path) -> None:
    analysis_of(tmp_path, [note() | damaged])


@pytest.mark.parametrize(("waited", "seconds"), [(100.0, 75.0 + 5.0), (6.0, 6.0), (0.5, None)])
def test_workers_save_what_they_hide_behind_the_computation(
    waited: float, seconds: float | None
) -> None:
    made = make_job(1, wall=200.0)
    add_record(made, 0, "/scratch/images", opens=1)
    made.loaders = [
        LoaderUse(
            0, "DataLoader", "Images", 0, 32, processors=8, batches=1000, waited=waited, worked=5.0
        )
    ]
    found = {finding.rule: finding.seconds for finding in analyze(made).findings}
    assert found.get("loader-without-workers") == (
        seconds if seconds is None else pytest.approx(seconds)
    )


def test_the_reports_show_them(tmp_path: Path) -> None:
    analysis = analysis_of(
        tmp_path,
        [
            note(),
            *(note(number=number, data=f"<Set {number}>", workers=-1) for number in range(1, 5)),
        ],
    )
    text = io.StringIO()
    terminal.render(analysis, Console(file=text, width=100))
    lines = text.getvalue().splitlines()
    table = lines[lines.index("Data loaders   time that training loops waited for batches") :]
    assert (
        table[1].split()
        == "Loader workers batches waited of step time longest first samples/s".split()
    )
    assert table[2].split() == "DataLoader(Images) 2 100 6.00 s 60 % 0.10 s 1.00 s 291".split()
    assert table[5] == "and 2 more loaders"
    page = html.render(analysis)
    assert 'id="loaders"' in page and "DataLoader(&lt;Set 4&gt;)" in page and "threads" in page


def test_jobs_without_loops_have_no_table(tmp_path: Path) -> None:
    assert 'id="loaders"' not in html.render(analysis_of(tmp_path, []))


def page_data(page: str) -> Any:
    """Return the values that the page's script shows."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_the_page_has_the_waits_of_loaders_by_the_bins_of_its_timeline(tmp_path: Path) -> None:
    second = 10**6  # in microseconds; the log starts 50 s after its clock and lasts 10 s
    waits = {"start_mono_ns": 52 * 10**9, "interval_ns": 10**9, "waited_us": [second, second // 2]}
    late = waits | {"start_mono_ns": 57 * 10**9, "waited_us": [second]}
    nothing_known = note(number=1, data="Words")
    timed = {"first_open": moment(0.0), "last_close": moment(9.0), "meta_time": ticks(5.0)}
    for number, those in enumerate([[note(waits=waits), nothing_known], [note(waits=late)]]):
        records = [{"path": "/data/images", "opens": 1, **timed}]
        ProcessLog(pid=1000 + number, records=records, notes=those).write(tmp_path)
    analysis = analyze(read([tmp_path]))
    page = html.render(analysis)
    shown = page_data(page)["timeline"]
    assert shown["loaders"] == ["DataLoader(Images)"]
    bins = len(shown["read"])
    in_second = {
        at: base64.b64decode(shown["waits"])[round((at + 0.5) * bins / 10)] for at in range(10)
    }
    half, quarter = round(255 / 2), round(255 / 4)
    assert in_second == {at: {2: half, 3: quarter, 7: half}.get(at, 0) for at in range(10)}
    assert page.index('id="timeline"') < page.index('id="loader-waits"')


def test_logs_without_times_of_waits_have_no_map_of_loaders(tmp_path: Path) -> None:
    timed = {"first_open": moment(0.0), "last_close": moment(9.0), "meta_time": ticks(5.0)}
    record = {"path": "/data/images", "opens": 1, **timed}
    ProcessLog(records=[record], notes=[note()]).write(tmp_path)
    page = html.render(analyze(read([tmp_path])))
    assert 'id="timeline"' in page and 'id="loader-waits"' not in page


def test_intervals_double_when_a_training_takes_longer() -> None:
    bins = Bins()
    for second in range(1000):
        bins.add(7.0 + second, 7.25 + second)
    assert bins.begin == 7.0 and bins.width == pytest.approx(4.096)
    assert len(bins.seconds) == 244
    assert bins.seconds[:-1] == pytest.approx([bins.width / 4] * 243, abs=0.26)
    assert sum(bins.seconds) == pytest.approx(250.0)


def test_a_wait_lies_in_all_its_intervals() -> None:
    bins = Bins()
    bins.add(3.0, 3.0005)
    bins.add(3.0015, 3.0045)
    assert bins.seconds == pytest.approx([0.0005, 0.0005, 0.001, 0.001, 0.0005])
    bins.add(3.01, 103.0)
    assert (bins.width, sum(bins.seconds)) == (0.512, pytest.approx(0.0035 + 99.99))
    assert bins.seconds[1:-1] == pytest.approx([0.512] * (len(bins.seconds) - 2))
