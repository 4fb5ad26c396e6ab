"""``pario survey``, and ``--fail-above`` of ``pario report`` and ``pario survey``."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from pario import progress
from pario.cli import main
from tests.python.darshanlog import posix_record
from tests.python.plog import ProcessLog
from tests.python.support.surveys import (  # noqa: F401
    add_darshan_library,
    surveys_of_one_process,
    write_log,
)
from tests.support.commands import Command, run_command
from tests.support.waiting import wait_until

PARIO = [sys.executable, "-m", "pario"]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Ten runs of two users that lose 0 to 4.5 of 11 s, and a damaged log."""
    folder = tmp_path / "logs"
    for number in range(10):
        user = "ada" if number % 2 else "bob"
        name = f"{user}_sim_id{number}_11-14-43200-{number}_1.darshan"
        write_log(folder / name, number, number / 2)
    (folder / "cut.darshan").write_bytes(b"\0" * 100)
    return folder


def test_the_table_has_runs_totals_and_the_damaged_log(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", str(logs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("10 runs with 110 s of wall time: ")
    first = next(index for index, line in enumerate(lines) if line.startswith("Program "))
    assert lines[first + 1].split()[:4] == ["app", "4.44", "s", "40"]
    assert "writes of 50 B to /scratch/a" in lines[first + 2]
    assert lines[first + 3].endswith("ada_sim_id9_11-14-43200-9_1.darshan")
    assert "cut.darshan: a file that begins with 00" in " ".join(line.strip() for line in lines)
    assert [line.split()[:2] for line in lines if line.startswith(("ada", "bob"))] == [
        ["ada", "5"],
        ["bob", "5"],
    ]


def test_files_of_a_survey_hold_all_runs_of_the_selection(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = {name: tmp_path / f"out.{name}" for name in ("csv", "json", "html")}
    options = [word for name, path in targets.items() for word in (f"--{name}", str(path))]
    assert main(["survey", str(logs), "--user", "ada", "--min-seconds", "1", *options]) == 0
    assert "6 runs: left out by the options" in capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(targets["csv"].read_text(encoding="utf-8"))))
    assert [(row["user"], row["error"] != "") for row in rows] == [("ada", False)] * 4 + [
        ("", True)
    ]
    document = json.loads(targets["json"].read_text())
    assert [row["path"] for row in document["rows"]] == [row["path"] for row in rows]
    page = targets["html"].read_text(encoding="utf-8")
    assert "ada_sim_id9_" in page and "bob_sim" not in page


def test_csv_and_json_on_standard_output_replace_the_table(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", str(logs), "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 11
    assert main(["survey", str(logs), "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 11
    assert main(["survey", str(logs), "--json", "-", "--csv", "-"]) == 2
    assert "expected one of them on standard output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "status", "error"),
    [
        ("30%", 3, "the findings of 3 runs cost more than 30 %"),
        ("4.2s", 3, "the findings of 1 run cost more than 4.20 s"),
        ("50%", 4, "1 run cannot be judged"),
    ],
)
@pytest.mark.system
def test_a_survey_fails_above_the_limit_of_any_run(
    logs: Path, capsys: pytest.CaptureFixture[str], limit: str, status: int, error: str
) -> None:
    assert main(["survey", str(logs), "--fail-above", limit]) == status
    assert capsys.readouterr().err == f"pario survey: {error}\n"
    (logs / "cut.darshan").unlink()
    assert main(["survey", str(logs), "--fail-above", "50%"]) == 0


def test_a_damaged_log_beside_runs_that_are_left_out_is_no_error(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", str(logs), "--since", "2100-01-01"]) == 0
    shown = capsys.readouterr()
    assert ("10 runs: left out by the options" in shown.out, shown.err) == (True, "")


@pytest.fixture(scope="module")
def log_with_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    log = write_log(tmp_path_factory.mktemp("log") / "a.darshan", 1, 4.0)
    shown = io.StringIO()
    with redirect_stdout(shown):
        assert main(["report", str(log)]) == 0
    return log, shown.getvalue()


@pytest.mark.parametrize(
    ("limit", "status", "error"),
    [
        ("10%", 3, "the findings cost 3.95 s (36 %), more than 10 %"),
        ("3s", 3, "the findings cost 3.95 s (36 %), more than 3.00 s"),
        ("0%", 3, "the findings cost 3.95 s (36 %), more than 0 %"),
        ("40%", 0, ""),
        ("4 s", 0, ""),
    ],
)
@pytest.mark.system
def test_a_report_fails_above_the_limit(
    log_with_report: tuple[Path, str],
    capsys: pytest.CaptureFixture[str],
    limit: str,
    status: int,
    error: str,
) -> None:
    log, shown = log_with_report
    assert main(["report", str(log), "--fail-above", limit]) == status
    found = capsys.readouterr()
    assert found.out == shown
    assert found.err == (f"pario report: {error}\n" if error else "")


def test_a_report_on_an_incomplete_run_has_its_own_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ProcessLog(rank=0, size=2, records=[{"path": "/a", "writes": 1}]).write(tmp_path)
    assert main(["report", str(tmp_path), "--fail-above", "10%"]) == 4
    assert capsys.readouterr().err == "pario report: the verdict does not cover the whole run\n"
    assert main(["report", str(tmp_path)]) == 0


@pytest.mark.system
def test_findings_of_an_incomplete_run_count(tmp_path: Path) -> None:
    """The part that is known exceeds the limit."""
    log = write_log(tmp_path / "a.darshan", 1, 4.0)
    modules = {"POSIX": posix_record(1, 0)}
    partial = write_log(
        tmp_path / "b.darshan",
        1,
        start=1_600_000_000,
        modules=modules,
        partial=("POSIX",),  # type: ignore[arg-type]
    )
    assert main(["report", str(log), "--fail-above", "10%"]) == 3
    assert main(["report", str(partial), "--fail-above", "10%"]) == 4


def test_only_damaged_logs_are_an_error(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", str(logs / "cut.darshan")]) == 2
    assert "none of the logs can be read" in capsys.readouterr().err


def test_an_unknown_rule_is_named_with_the_known_ones(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", str(logs), "--rule", "smal-writes"]) == 2
    error = capsys.readouterr().err
    assert "--rule smal-writes; expected one of " in error and "small-writes" in error


def test_a_file_that_cannot_be_written_is_named(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", str(logs), "--csv", str(tmp_path / "none" / "a.csv")]) == 2
    assert "cannot write the CSV survey" in capsys.readouterr().err


@pytest.mark.system
def test_an_interrupt_leaves_no_process_and_no_part_of_a_file(tmp_path: Path) -> None:
    """Interrupts a survey whose processes wait in the Darshan library without end."""
    for number in range(5):
        write_log(tmp_path / "logs" / f"{number}.darshan", number)
    add_darshan_library(tmp_path / "fake", "import time; time.sleep(1e6)")
    kept = tmp_path / "a.csv"
    kept.write_text("earlier")
    before = sorted(path.name for path in tmp_path.iterdir())
    words = [*PARIO, "survey", "logs", "--jobs", "2", "--csv", kept, "--html", "a.html"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "fake")}
    with Command(words, cwd=tmp_path, stdout=-1, stderr=-1, env=environment) as running:
        wait_until(lambda: len(_children(running.pid)) == 2, "two processes read logs")
        readers = _children(running.pid)
        os.kill(running.pid, signal.SIGINT)
        done = running.finish()
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "pario survey: interrupted; no file was left half written\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert kept.read_text() == "earlier"
    assert [number for number in readers if Path(f"/proc/{number}").exists()] == []


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(number) for number in text.split()]


def test_progress_is_shown_on_a_terminal_and_erased(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    assert main(["survey", str(logs)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["survey", str(logs)]) == 0
    shown = capsys.readouterr().err
    assert "pario: reading logs: 1 of 22, " in shown
    assert "pario: reading logs: 21 of 21, 0 s left" in shown
    assert shown.endswith("\r\x1b[K")


def test_help_of_the_survey_names_its_options() -> None:
    done = run_command([*PARIO, "survey", "--help"], status=0)
    for option in ("--sort", "--user", "--since", "--fail-above", "10%", "--jobs"):
        assert option in done.stdout
