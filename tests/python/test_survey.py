"""Surveys of many runs: the search for logs, jobs of several logs, rows, selections and totals."""

from __future__ import annotations

import csv
import io
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pario.see.analyze.survey import Cause, RunRow, Selection, Survey, summarize
from pario.see.report import csv as csv_report
from pario.see.report import json as json_report
from pario.see.report import survey as page
from pario.see.survey import survey, useful_processes
from pario.see.survey.pool import Pool
from pario.see.survey.tasks import Failure, Identify
from pario.see.tables import ReadError, read
from pario.see.tables.darshan.identity import LONGEST_PAUSE
from pario.see.tables.search import find_logs
from tests.python.plog import ProcessLog
from tests.python.support.surveys import (  # noqa: F401
    NOON,
    add_darshan_library,
    hostile,
    many,
    surveys_of_one_process,
    write_log,
)


def look(*places: Path | str, **selection: object) -> Survey:
    """Surveys places without progress."""
    chosen = Selection(**selection)  # type: ignore[arg-type]
    return survey([str(place) for place in places], chosen, "lost", None, lambda *_: None)


def own_run(directory: Path, **facts: object) -> Path:
    directory.mkdir(parents=True)
    small = {"path": "/a", "writes": 500_000, "bytes_written": 25_000_000, "write_time": 0}
    ProcessLog(records=[small], **facts).write(directory)  # type: ignore[arg-type]
    return directory


# ---- finding logs


def test_directories_are_searched_to_the_bottom_for_both_kinds_of_logs(tmp_path: Path) -> None:
    write_log(tmp_path / "2026/11/a.darshan", 1)
    own_run(tmp_path / "deep/er/run.pario")
    (tmp_path / "deep" / "notes.txt").write_text("no log")
    found = find_logs([tmp_path])
    assert found.darshan == [tmp_path / "2026/11/a.darshan"]
    assert found.runs == [(tmp_path / "deep/er/run.pario",)]


def test_a_pattern_names_logs_across_directories(tmp_path: Path) -> None:
    for number in range(3):
        write_log(tmp_path / f"{number}/x{number}.darshan", number)
    found = find_logs([f"{tmp_path}/**/x[12].darshan"])
    assert [path.name for path in found.darshan] == ["x1.darshan", "x2.darshan"]


def test_a_log_that_is_given_twice_is_found_once(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.darshan", 1)
    run = own_run(tmp_path / "run.pario")
    (tmp_path / "link.darshan").symlink_to(log)
    found = find_logs([log, tmp_path, run, *run.glob("*.plog")])
    assert (found.darshan, found.runs) == ([log], [(run,)])
    assert found.repeated == 4


def test_process_logs_of_one_directory_are_one_run(tmp_path: Path) -> None:
    run = own_run(tmp_path / "run.pario")
    ProcessLog(pid=7).write(run)
    assert find_logs(sorted(run.glob("*.plog"))).runs == [tuple(sorted(run.glob("*.plog")))]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ([], "no path: no logs"),
        (["none"], "none: no such file or directory"),
        (["*.none"], r"\*.none: no such file or directory"),
        (["empty"], "empty: no logs; expected run.pario directories"),
        (["empty", "empty"], "empty and 1 more: no logs"),
    ],
)
def test_places_without_logs_are_refused(tmp_path: Path, names: list[str], error: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReadError, match=error):
        find_logs([tmp_path / name for name in names])


def test_a_pipe_and_a_missing_target_of_a_link_are_rows_with_errors(tmp_path: Path) -> None:
    write_log(tmp_path / "a.darshan", 1)
    os.mkfifo(tmp_path / "pipe.darshan")
    (tmp_path / "link.darshan").symlink_to("nowhere")
    found = look(tmp_path)
    assert [row.error for row in found.rows[1:]] == [
        f"{tmp_path}/link.darshan: no such file or directory; expected readable logs",
        f"{tmp_path}/pipe.darshan: not a regular file; expected readable logs",
    ]


# ---- jobs of several logs


def test_darshan_logs_of_one_job_are_one_row(tmp_path: Path) -> None:
    write_log(tmp_path / "a.darshan", 7, lost=4.0)
    write_log(tmp_path / "b.darshan", 7, lost=2.0, start=NOON + 20)
    write_log(tmp_path / "c.darshan", 8, lost=1.0)
    rows = look(tmp_path).rows
    assert [(row.logs, Path(row.path).name) for row in rows] == [(2, "a.darshan"), (1, "c.darshan")]
    assert rows[0].wall == pytest.approx(30, abs=1.5)


def test_a_number_that_is_used_again_later_is_another_job(tmp_path: Path) -> None:
    write_log(tmp_path / "a.darshan", 7)
    write_log(tmp_path / "b.darshan", 7, start=NOON + 12 + round(LONGEST_PAUSE))
    assert len(look(tmp_path).rows) == 2


def test_a_copy_of_a_log_counts_once(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.darshan", 7)
    (tmp_path / "copy.darshan").write_bytes(log.read_bytes())
    found = look(tmp_path)
    assert [(row.logs, row.path) for row in found.rows] == [(1, str(log))]
    assert found.repeated == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"nprocs": 4}, {"nprocs": 4}),
        ({}, {"start": NOON + 100_000}),
    ],
)
def test_a_report_on_logs_of_different_jobs_names_the_survey(
    tmp_path: Path, first: dict[str, int], second: dict[str, int]
) -> None:
    logs = [
        write_log(tmp_path / "a.darshan", 1, **first),  # type: ignore[arg-type]
        write_log(tmp_path / "b.darshan", 2, **second),  # type: ignore[arg-type]
    ]
    with pytest.raises(ReadError, match=r"b.darshan: a log of job 2, and .*pario survey"):
        read(logs)


def test_the_user_is_that_in_the_name_of_the_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "ada_my_app_id42_11-14-43200-123_1.darshan", 42)
    other = write_log(tmp_path / "renamed.darshan", 43)
    users = {row.path: row.user for row in look(tmp_path).rows}
    assert users[str(log)] == "ada"
    assert users[str(other)] not in ("", "renamed")


# ---- rows


def test_rows_are_sorted_by_seconds_lost_with_damaged_logs_last(tmp_path: Path) -> None:
    for number, lost in enumerate((1.0, 3.0, 0.0, 2.0)):
        write_log(tmp_path / f"{number}.darshan", number, lost)
    (tmp_path / "cut.darshan").write_bytes((tmp_path / "1.darshan").read_bytes()[:200])
    (tmp_path / "zeros.darshan").write_bytes(bytes(500))
    rows = look(tmp_path).rows
    assert [Path(row.path).stem for row in rows] == ["1", "3", "0", "2", "cut", "zeros"]
    assert [row.verdict for row in rows[-2:]] == ["damaged", "damaged"]
    assert str(tmp_path / "cut.darshan") in rows[-2].error
    assert rows[0].causes[0].rule == "small-writes"
    assert rows[0].lost == pytest.approx(3.0, rel=0.1)


def test_own_and_darshan_logs_stand_in_one_table(tmp_path: Path) -> None:
    own_run(tmp_path / "run.pario")
    write_log(tmp_path / "a.darshan", 1, command="/home/ada/bin/sim -x")
    rows = look(tmp_path).rows
    assert {(row.format, row.program) for row in rows} == {("pario", "app"), ("darshan", "sim")}


def test_a_row_equals_the_report_of_its_run(tmp_path: Path) -> None:
    from pario.see.analyze import analyze

    log = write_log(tmp_path / "a.darshan", 1)
    analysis, row = analyze(read([log])), look(log).rows[0]
    assert (row.lost, row.wall, row.io, row.sentence) == (
        analysis.seconds_lost,
        analysis.job.wall,
        analysis.verdict.critical.io,
        analysis.verdict.sentence,
    )


@pytest.mark.system
def test_a_log_that_kills_its_reader_is_a_row_with_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_darshan_library(tmp_path / "fake", "import os; os.abort() if 'bad' in path else None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    paths = [write_log(tmp_path / f"{name}.darshan", 1) for name in ("a", "bad", "c")]
    with Pool(1) as pool:
        answers = dict(pool.perform([Identify(path) for path in paths]))
    texts = [answer.text for answer in answers.values() if isinstance(answer, Failure)]
    assert [text for text in texts if "SIGABRT" in text] == [
        f"{paths[1]}: reading failed (it died of SIGABRT)"
    ]
    assert len(texts) == 3  # the others are answered, here with errors of the false library


@pytest.mark.parametrize(
    ("logs", "size", "processes"), [(3, 100, 1), (40, 100, 2), (3, 4 << 20, 3), (80, 100, 4)]
)
def test_processes_are_as_many_as_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: int, size: int, processes: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(4))
    for number in range(logs):
        with (tmp_path / f"{number}.darshan").open("wb") as log:
            log.truncate(size)
    assert useful_processes(find_logs([tmp_path])) == processes


def test_the_size_of_a_run_is_that_of_its_logs(tmp_path: Path) -> None:
    run = own_run(tmp_path / "run.pario")
    with next(run.glob("*.plog")).open("ab") as log:
        log.truncate(9 << 20)
    assert useful_processes(find_logs([run])) == 2


@pytest.mark.system
def test_processes_end_with_the_pool(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.darshan", 1)
    with Pool(2) as pool:
        list(pool.perform([Identify(path)] * 4))
        numbers = [worker._process.pid for worker in pool._workers]
        assert len(numbers) == 2
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


# ---- selections and totals


def test_filters_leave_runs_out_and_count_them(tmp_path: Path) -> None:
    for number, (user, command) in enumerate(
        [("ada", "./sim"), ("ada", "./post"), ("bob", "python3 train.py --lr 1"), ("eve", "./sim")]
    ):
        name = f"{user}_x_id{number}_11-14-43200-{number}_1.darshan"
        write_log(
            tmp_path / name, number, number + 1.0, command=command, start=NOON + 86400 * number
        )

    rows = look(tmp_path).rows

    def numbers(**selection: object) -> list[int]:
        chosen = Selection(**selection)  # type: ignore[arg-type]
        return sorted(round(row.lost) - 1 for row in rows if chosen.accepts(row))

    few = look(tmp_path, users=("ada", "e*"), least_lost=1.5)
    assert sorted(round(row.lost) - 1 for row in few.rows) == [1, 3]
    assert few.left_out == 2
    assert numbers() == [0, 1, 2, 3]
    assert numbers(users=("ada",)) == [0, 1]
    assert numbers(users=("ada", "e*")) == [0, 1, 3]
    assert numbers(programs=("sim",)) == [0, 3]
    assert numbers(programs=("train.py",), users=("bob",)) == [2]
    assert numbers(since=NOON + 86400.0) == [1, 2, 3]
    assert numbers(least_lost=2.5) == [2, 3]
    assert numbers(rules=("small-*",)) == [0, 1, 2, 3]
    assert numbers(rules=("small-reads",)) == []


def test_totals_add_the_runs_of_a_user_a_program_and_a_cause() -> None:
    def row(name: str, lost: float, ranks: int, *rules: str) -> RunRow:
        causes = tuple(Cause(rule, rule, lost / len(rules)) for rule in rules)
        return RunRow(
            name, user=name[0], program="p", wall=10, ranks=ranks, lost=lost, causes=causes
        )

    found = summarize([row("a1", 4, 2, "x", "y"), row("a2", 1, 1, "x"), row("b1", 3, 8, "y", "y")])
    assert [(total.name, total.runs, total.lost, total.rank_seconds) for total in found.users] == [
        ("a", 2, 5, 9),
        ("b", 1, 3, 24),
    ]
    assert [(total.name, total.runs, total.lost) for total in found.causes] == [
        ("y", 2, 5.0),
        ("x", 2, 3.0),
    ]
    assert [(total.name, total.runs, total.wall) for total in found.programs] == [("p", 3, 30)]
    assert (found.total.lost, found.total.wall) == (8, 30)


@pytest.mark.parametrize("order", ["lost", "io", "wall"])
def test_every_order_puts_the_largest_first(order: str) -> None:
    rows = summarize(many(100).rows, order).rows
    values = [getattr(row, order) for row in rows if not row.error]
    assert values == sorted(values, reverse=True)
    assert len(values) == 100


# ---- many logs


@pytest.mark.exhaustive
def test_two_thousand_logs_need_little_memory_in_the_parent(tmp_path: Path) -> None:
    for number in range(2000):
        name = f"u{number % 9}_p_id{number}_1-2-3-{number}_1.darshan"
        write_log(tmp_path / str(number % 16) / name, number, number % 40 / 10)
    (tmp_path / "3" / "cut.darshan").write_bytes(b"\0" * 100)
    tracemalloc.start()
    found = look(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.total.runs, found.damaged, len(found.users)) == (2000, 1, 9)
    assert found.rows[0].lost == pytest.approx(3.9, rel=0.1)
    assert peak < 20_000_000


# ---- pages


def page_lines(found: Survey, width: int, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    page.render(found, Console(file=stream, width=width), all=everything)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = page_lines(many(200), width, everything=True)
    assert [line for line in lines if len(line) > width] == []


@pytest.mark.system
def test_one_screen_shows_the_most_costly_runs_and_counts_the_others() -> None:
    lines = page_lines(many(2000), 100)
    assert len(lines) < 65
    assert "and 1,994 more runs: --all" in lines
    assert "and 97 more logs: --all" in lines
    assert "40 runs: incomplete logs, or an unknown verdict" in lines
    assert len(page_lines(many(2000), 100, everything=True)) > 6000


def test_names_of_a_survey_cannot_control_the_terminal() -> None:
    text = "\n".join(page_lines(hostile(), 120))
    assert "\x1b" not in text and "\u202e" not in text
    assert "\\x1b" in text


def test_csv_holds_every_row_and_reads_back() -> None:
    found = many(300)
    rows = list(csv.DictReader(io.StringIO(csv_report.render_survey(found))))
    assert [row["path"] for row in rows] == [row.path for row in found.rows]
    for text, row in zip(rows, found.rows, strict=True):
        if row.error:
            assert (text["error"], text["verdict"], text["lost_seconds"]) == (
                row.error,
                "damaged",
                "",
            )
            continue
        assert float(text["lost_seconds"]) == row.lost
        assert float(text["wall_seconds"]) == row.wall
        assert (int(text["ranks"]), text["command"]) == (row.ranks, row.command)
        assert text["top_finding"] == (row.causes[0].title if row.causes else "")
    strange = replace(found.rows[0], command='a "b", c\nd', program="é")
    text = csv_report.render_survey(summarize([strange]))
    assert next(csv.DictReader(io.StringIO(text)))["command"] == 'a "b", c\\nd'


def test_json_holds_the_rows_and_totals() -> None:
    document = json.loads(json_report.render_survey(many(40)))
    assert (document["format"], document["version"]) == ("pario-survey", 1)
    assert len(document["rows"]) == 42
    assert document["rows"][0]["causes"][0]["seconds"] == document["rows"][0]["lost"]
    assert document["total"]["runs"] == 40


def test_the_document_names_every_field_and_column() -> None:
    text = (Path(__file__).parents[2] / "docs" / "survey.md").read_text(encoding="utf-8")
    from dataclasses import fields

    from pario.see.analyze.survey import Total

    names = {field.name for kind in (Survey, RunRow, Cause, Total) for field in fields(kind)}
    assert {name for name in names | csv_report.COLUMNS.keys() if f"`{name}`" not in text} == set()
