"""`make flaky` with small tests and a load that does nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkouts import commit_all
from tests.support.results_file import Result, Results, read_results
from tests.support.waiting import wait_until
from tools.find_flaky import list_flaky, list_load, name_test

ROOT = Path(__file__).parents[2]
TESTS = """
import pathlib
import time

import pytest

RUNS = pathlib.Path("build/runs")

@pytest.fixture
def run():
    text = RUNS.read_text() if RUNS.exists() else ""
    RUNS.write_text(text + "x")
    return len(text)

@pytest.mark.parametrize("name", ["a-b"])
def test_sometimes(name, run):
    assert run not in (1, 2), "not this time"

def test_always():
    pass

def test_waits():
    mark = pathlib.Path("build/waits")
    if pathlib.Path("build/wait").exists() and not mark.exists():
        mark.touch()
        time.sleep(600)
"""
STRESS = """#!/bin/sh
echo "$@" > build/load
echo $$ > build/pid
exec sleep 600
"""
DRIVER = "import sys; from pathlib import Path; from tools.find_flaky import main; "
DRIVER += "sys.exit(main(sys.argv[1:], Path.cwd()))"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a checkout with tests; its stress-ng writes its process id to a file and sleeps."""
    pytest.importorskip("pytest_repeat")
    options = "-p tests.support.results -p pytest_repeat -p no:cacheprovider"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / ".gitignore").write_text("build\nprograms\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "stress-ng").write_text(STRESS)
    (tmp_path / "programs" / "stress-ng").chmod(0o755)
    commit_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def start(*options: str) -> subprocess.Popen[str]:
    files = ["--results", "build/results.jsonl"]
    command = [sys.executable, "-c", DRIVER, *files, "--jobs", "1", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(*options: str) -> tuple[int, list[str]]:
    """Returns the exit status and the lines of the summary."""
    with start(*options) as process:
        printed = process.communicate()[0].splitlines()
    place = printed.index("results: build/results.jsonl")
    return process.returncode, printed[place + 1 :]


@pytest.mark.system
def test_a_flaky_test_is_named_with_its_failures(checkout):
    summary = (
        1,
        ["test_small.py::test_sometimes[a-b]: failed 2 of 4: AssertionError: not this time"],
    )
    assert run("--count", "4", "test_small.py") == summary
    assert (checkout / "build" / "runs").read_text() == "xxxx"
    assert run("--count", "4", "test_small.py") == summary
    assert (checkout / "build" / "runs").read_text() == "xxxx"


@pytest.mark.system
def test_without_failures_there_are_counts(checkout):
    assert run("--count", "3", "test_small.py", "--", "-k", "always or waits") == (
        0,
        ["2 tests: 6 passed, 0 failed, 0 skipped"],
    )


@pytest.mark.system
def test_the_load_runs_beside_the_tests_and_ends_with_them(checkout):
    run("--count", "1", "--load", "4", "test_small.py")
    load = (checkout / "build" / "load").read_text()
    assert load.startswith("--quiet --cpu 3 --hdd 1 --hdd-bytes 64M --temp-path ")
    assert not Path(f"/proc/{(checkout / 'build' / 'pid').read_text().strip()}").exists()


@pytest.mark.system
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)]
)
def test_an_interrupted_run_ends_the_load_and_is_resumed(checkout, number):
    (checkout / "build" / "wait").touch()
    with start("--count", "2", "test_small.py", "--", "-k", "always or waits") as process:
        wait_until((checkout / "build" / "waits").exists, "a test waits")
        process.send_signal(number)
        printed = process.communicate()[0]
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], printed
    assert not Path(f"/proc/{(checkout / 'build' / 'pid').read_text().strip()}").exists()
    assert list(read_results(checkout / "build" / "results.jsonl").latest) == [
        "test_small.py::test_always[1-2]",
        "test_small.py::test_always[2-2]",
    ]
    assert run("--count", "2", "test_small.py", "--", "-k", "always or waits") == (
        0,
        ["2 tests: 4 passed, 0 failed, 0 skipped"],
    )


@pytest.mark.system
def test_a_load_that_ends_early_is_an_error(checkout):
    (checkout / "programs" / "stress-ng").write_text("#!/bin/sh\nexit 3\n")
    assert run("--count", "1", "test_small.py", "--", "-k", "always") == (
        1,
        ["flaky::load: failed 1 of 1: stress-ng ended with status 3 before the tests"],
    )


@pytest.mark.system
def test_a_missing_load_is_a_named_skip(checkout, monkeypatch):
    (checkout / "programs" / "stress-ng").unlink()
    for name in ("git", "env"):
        (checkout / "programs" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(checkout / "programs"))
    assert run("--count", "1", "test_small.py", "--", "-k", "always") == (
        0,
        ["2 tests: 1 passed, 0 failed, 1 skipped"],
    )
    skipped = read_results(checkout / "build" / "results.jsonl").latest["flaky::load"]
    assert skipped.reason.startswith("not installed: stress-ng")


@pytest.mark.parametrize(
    ("repetition", "name"),
    [
        ("a.py::test[3-20]", "a.py::test"),
        ("a.py::test[mpich-5-3-20]", "a.py::test[mpich-5]"),
        ("a.py::test", "a.py::test"),
        ("flaky::load", "flaky::load"),
    ],
)
def test_the_number_of_the_repetition_is_no_part_of_the_name(repetition, name):
    assert name_test(Result(repetition, "passed")) == name


def test_errors_count_as_failures():
    results = Results()
    for number, outcome in enumerate(["passed", "error", "failed", "skipped"], 1):
        result = Result(f"a.py::test[{number}-4]", outcome, reason=f"because of {number}")
        results.latest[result.test] = result
    assert list(list_flaky(results)) == ["a.py::test: failed 2 of 4: because of 2"]


def test_a_load_of_one_writes_to_the_disk_alone(tmp_path):
    assert "--cpu" not in list_load(1, tmp_path)
