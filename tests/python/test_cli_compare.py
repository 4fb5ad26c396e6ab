"""``pario compare``, and the files of ``pario run --repeat --verify``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pario.see.tables import read
from tests.python.darshanlog import DarshanLog, posix_record
from tests.support.commands import run_command

PARIO = [sys.executable, "-m", "pario"]


def pario(*words: str, cwd: Path, **kwargs: object) -> subprocess.CompletedProcess[str]:
    return run_command([*PARIO, *words], cwd=cwd, **kwargs)


def record(place: Path, name: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return pario("run", "--no-report", "-o", name, *options, "--", "sh", "-c", script, cwd=place)


@pytest.mark.system
def test_two_runs_are_compared(tmp_path: Path) -> None:
    record(tmp_path, "after", "echo hello > out.txt")
    longer = 2 * read([tmp_path / "after"]).wall + 0.3
    record(tmp_path, "before", f"sleep {longer}; echo hello > out.txt")
    done = pario("compare", "before", "after", "--html", "page.html", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("B takes ")
    assert "less" in done.stdout.splitlines()[0]
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.system
def test_repetitions_lie_in_numbered_directories(tmp_path: Path) -> None:
    done = record(tmp_path, "before", "echo once >> count", "--repeat", "3")
    assert done.returncode == 0
    assert (tmp_path / "count").read_text() == "once\n" * 3
    assert sorted(path.name for path in (tmp_path / "before").iterdir()) == ["1", "2", "3"]
    document = json.loads(pario("compare", "before", "before", "--json", cwd=tmp_path).stdout)
    assert document["a"]["runs"] == 3
    assert document["measures"][0]["noise"] in ("within", "equal")


@pytest.mark.system
def test_a_report_on_repetitions_names_their_times(tmp_path: Path) -> None:
    done = pario("run", "--repeat", "2", "--", "true", cwd=tmp_path)
    assert "2 runs in " in done.stderr
    assert len(list((tmp_path / "run.pario").glob("*/report.html"))) == 1


def test_a_run_that_fails_is_the_last_and_gives_its_status(tmp_path: Path) -> None:
    done = record(tmp_path, "before", "echo once >> count; exit 5", "--repeat", "3")
    assert done.returncode == 5
    assert (tmp_path / "count").read_text() == "once\n"


@pytest.mark.system
def test_each_repetition_reads_a_file_as_standard_input_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("hello\n")
    with (tmp_path / "input").open() as file:
        done = pario("run", "--no-report", "--repeat", "2", "--", "cat", cwd=tmp_path, stdin=file)
    assert done.stdout == "hello\nhello\n"


def test_a_pipe_as_standard_input_that_cannot_be_read_again_is_reported(tmp_path: Path) -> None:
    done = pario("run", "--no-report", "--repeat", "3", "--", "cat", cwd=tmp_path, input="hello\n")
    assert done.stdout == "hello\n"
    assert done.stderr.count("standard input is a pipe") == 1


def test_a_rank_cannot_repeat_its_job(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PMI_RANK": "0", "PMI_SIZE": "2"}
    done = pario("run", "--repeat", "2", "--", "true", cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert "before the launcher" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.system
@pytest.mark.parametrize("times", ["0", "many", "-1"])
def test_an_impossible_number_of_repetitions_is_refused(tmp_path: Path, times: str) -> None:
    done = pario("run", f"--repeat={times}", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected a number from 1 to" in done.stderr


@pytest.mark.system
def test_equal_outputs_are_verified(tmp_path: Path) -> None:
    for name in ("before", "after"):
        record(tmp_path, name, "mkdir -p out; echo hello > out/a.txt", "--verify", "out/*.txt")
    done = pario("compare", "before", "after", "--verify", "*.txt", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 output file: identical on both sides" in done.stdout


@pytest.mark.system
def test_outputs_that_differ_fail_the_verification_and_are_named(tmp_path: Path) -> None:
    for name in ("before", "after"):
        record(tmp_path, name, f"echo {name} > a.txt; echo same > b.txt", "--verify", "*.txt")
    done = pario("compare", "before", "after", "--verify", "*.txt", cwd=tmp_path)
    assert done.returncode == 1
    assert "differs (7 B, then 6 B)  a.txt" in done.stdout
    assert pario("compare", "before", "after", "--verify", "b.*", cwd=tmp_path).returncode == 0
    assert pario("compare", "before", "after", cwd=tmp_path).returncode == 0


@pytest.mark.system
def test_an_output_that_the_second_run_did_not_write_proves_nothing(tmp_path: Path) -> None:
    record(tmp_path, "before", "echo hello > a.txt", "--verify", "*.txt")
    record(tmp_path, "after", "true", "--verify", "*.txt")
    done = pario("compare", "before", "after", "--verify", "*.txt", cwd=tmp_path)
    assert done.returncode == 1
    assert "not written in every run" in done.stdout


@pytest.mark.system
def test_verification_without_recorded_outputs_is_an_error(tmp_path: Path) -> None:
    record(tmp_path, "before", "echo hello > a.txt")
    done = pario("compare", "before", "before", "--verify", "*", cwd=tmp_path)
    assert done.returncode == 2
    assert "pario run --verify" in done.stderr


@pytest.mark.system
def test_an_argument_without_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, words in (("none", "no such file"), ("empty", "without logs")):
        done = pario("compare", path, path, cwd=tmp_path)
        assert done.returncode == 2
        assert words in done.stderr


@pytest.mark.system
def test_darshan_logs_are_compared_each_a_run_or_a_directory_of_repetitions(tmp_path: Path) -> None:
    for number, seconds in ((1, 10), (2, 6)):
        log = DarshanLog(
            seconds=seconds, modules={"POSIX": posix_record(1, 0, {0: 1, 4: 10}, {2: 1.0})}
        )
        (tmp_path / "runs" / str(number)).mkdir(parents=True)
        log.write(tmp_path / f"{number}.darshan")
        log.write(tmp_path / "runs" / str(number) / "log.darshan")
    done = pario("compare", "1.darshan", "2.darshan", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert [document["measures"][0][side]["values"] for side in "ab"] == [
        [11.0],
        [7.0],
    ]  # whole seconds, rounded up
    assert "system_writes" not in {row["key"] for row in document["measures"]}
    assert (
        json.loads(pario("compare", "1.darshan", "runs", "--json", cwd=tmp_path).stdout)["b"][
            "runs"
        ]
        == 2
    )
