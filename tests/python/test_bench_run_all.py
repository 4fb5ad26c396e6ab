"""All benchmarks run in turn (bench/run_all.py)."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.commands import run_command

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import run_all
from run_all import STEPS, Schedule, Step

sys.path.pop(0)

BENCH = run_all.HERE

#: A benchmark that keeps its rows when it is interrupted.
PATIENT = """
import time
try:
    print("started", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("kept", flush=True)
"""


@pytest.fixture
def runners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of fake runners on an idle machine."""
    monkeypatch.setattr(run_all, "HERE", tmp_path)
    monkeypatch.setattr(run_all, "PAUSE", 0.0)
    set_loads(monkeypatch, 0.0)
    note = "import pathlib, sys; pathlib.Path(sys.argv[1], '../order').open('a').write({!r})\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(note.format(f"{name} "))
    (tmp_path / "bad.py").write_text(note.format("bad ") + "raise SystemExit(3)")
    return tmp_path


def set_loads(monkeypatch: pytest.MonkeyPatch, *loads: float) -> None:
    """Sets the load averages of the next calls; the last one stays."""
    left = list(loads)
    monkeypatch.setattr(
        "os.getloadavg", lambda: (left.pop(0) if len(left) > 1 else left[0], 0.0, 0.0)
    )


def run(runners: Path, *steps: Step, seconds: float | None = None) -> tuple[dict[str, str], str]:
    """Runs steps; returns their outcomes, and the runners that ran."""
    outcomes = run_all.run_all(steps, runners, Schedule(seconds))
    order = runners / "order"
    return outcomes, order.read_text() if order.exists() else ""


def test_benchmarks_run_in_turn_and_a_failure_stops_none(runners: Path) -> None:
    (runners / "pario-benchmarks").mkdir()  # left by a killed run
    steps = [Step(name, "{data}", 60) for name in ("two", "bad", "one")]
    outcomes, order = run(runners, *steps)
    assert order == "two bad one "
    assert outcomes == {
        "two": "recorded",
        "bad": "failed: it ended with status 3",
        "one": "recorded",
    }
    assert not (runners / "pario-benchmarks").exists()


def test_missing_requirements_are_named(runners: Path) -> None:
    needs = ("python:json", "sh", "no-such-command", "python:no_such_package", "/no/such/file")
    outcomes, order = run(runners, Step("one", "{data}", 60, needs), Step("two", "{data}", 60))
    assert order == "two "
    missing = "no-such-command, python:no_such_package, /no/such/file"
    assert outcomes["one"] == f"skipped: missing: {missing}"


def test_a_benchmark_that_takes_too_long_is_skipped_for_a_shorter_one(runners: Path) -> None:
    outcomes, order = run(
        runners, Step("one", "{data}", 900), Step("two", "{data}", 100), seconds=600
    )
    assert order == "two "
    assert re.fullmatch(r"skipped: it takes about 900 s, \d+ s are left", outcomes["one"])


def test_a_benchmark_waits_for_an_idle_machine(
    runners: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    set_loads(monkeypatch, 2.5, 0.99, 0.5, 9.0)
    _, order = run(runners, Step("one", "{data}", 60))
    assert order == "one "
    assert "one: waits for an idle machine, 0 s so far, load 2.50" in capfd.readouterr().err


def test_a_busy_machine_ends_the_wait_with_the_time(
    runners: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_loads(monkeypatch, 2.5)
    outcomes, order = run(runners, Step("one", "{data}", 60), seconds=60.2)
    assert order == ""
    assert outcomes["one"].startswith("skipped: it takes about 60 s")


def test_a_benchmark_over_its_limit_is_interrupted(runners: Path) -> None:
    (runners / "one.py").write_text(PATIENT)
    outcomes, order = run(runners, Step("one", "", 0.1), Step("two", "{data}", 60))
    assert outcomes["one"] == "interrupted after 0 s: its rows are incomplete"
    assert order == "two "


def test_an_interrupted_benchmark_cleans_up() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT], stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == b"started\n"
        run_all.end_process(process)
        assert process.stdout.read() == b"kept\n"
    assert process.returncode == 0


def test_ctrl_c_ends_the_rest(runners: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_all, "run_command", interrupt)
    outcomes, _ = run(runners, Step("one", "", 60), Step("two", "", 60))
    assert outcomes == {"one": "interrupted: its rows are incomplete"}


def test_only_selects_and_orders() -> None:
    chosen = run_all.parse_arguments(["--only", "readers move"]).steps
    assert [step.name for step in chosen] == ["readers", "move"]
    with pytest.raises(SystemExit):
        run_all.parse_arguments(["--only", "moves"])


@pytest.mark.parametrize(
    ("text", "seconds"), [("23:50", 3000), ("00:10", 4200), ("22:59", None), ("x", None)]
)
def test_until_is_a_time_within_twelve_hours(text: str, seconds: float | None) -> None:
    now = datetime(2026, 3, 4, 23, 0)
    if seconds is None:
        with pytest.raises(argparse.ArgumentTypeError):
            run_all.parse_until(text, now)
    else:
        assert run_all.parse_until(text, now) == seconds


def read_with_imports(path: Path) -> str:
    """The text of a runner and of the modules of bench/ that it imports."""
    text = path.read_text()
    names = re.findall(r"^ *(?:from|import) (\w+)", text, re.M)
    modules = (BENCH / f"{name}.py" for name in names)
    return text + "".join(module.read_text() for module in modules if module.exists())


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_the_options_of_a_step_are_those_of_its_runner(step: Step) -> None:
    text = read_with_imports(BENCH / f"{step.runner}.py")
    options = re.findall(r"--[a-z-]+", step.words)
    assert [option for option in options if f'"{option}"' not in text] == []


def list_runners() -> Iterator[str]:
    for path in BENCH.glob("*.py"):
        if re.search(r"\b(?:Recorder|open_place)\(\s*\"\w+\"", path.read_text()):
            yield path.stem


def test_every_runner_that_records_is_a_step() -> None:
    assert set(list_runners()) - {"recording"} == {step.runner for step in STEPS}


@pytest.mark.system
def test_every_runner_starts() -> None:
    names = sorted({step.runner for step in STEPS})
    imports = f"import sys; sys.path.insert(0, {str(BENCH)!r}); import {', '.join(names)}"
    run_command([sys.executable, "-c", imports], status=0, cwd=BENCH.parent)
