"""`make test-all` with small steps: progress, resumption, and the results of each kind of step."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.checkouts import commit_all
from tests.support.results_file import Result, read_results
from tests.support.waiting import wait_until
from tools import test_steps
from tools.child_process import find_program
from tools.junit import read_junit
from tools.progress import format_seconds
from tools.test_all import main
from tools.test_steps import Run, Step, run_clang_tidy, run_module, run_unit_tests

ROOT = Path(__file__).parents[2]
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
add_test(NAME base.passes COMMAND true)
add_test(NAME base.fails COMMAND sh -c "
  echo '${CMAKE_SOURCE_DIR}/a.cpp:3: Failure'; echo 'Expected: 1'; exec test -e '${MARK}'")
add_test(NAME base.skips COMMAND sh -c "
  echo 'a.cpp:5: Skipped'; echo 'no such file system'; echo '[  SKIPPED ] A.B'")
set_tests_properties(base.skips PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED ]")
add_test(NAME hints.has_no_program COMMAND /nonexistent)
add_test(NAME hints.is_disabled COMMAND true)
set_tests_properties(hints.is_disabled PROPERTIES DISABLED ON)
file(
  WRITE build/tidy/compile_commands.json
  "[{\\"file\\": \\"${CMAKE_SOURCE_DIR}/src/a.cpp\\"},
    {\\"file\\": \\"${CMAKE_SOURCE_DIR}/src/b.cpp\\"},
    {\\"file\\": \\"${CMAKE_SOURCE_DIR}/src/bindings/c.cpp\\"}]"
)
"""
PRESETS = {
    "version": 6,
    "configurePresets": [
        {
            "name": name,
            "generator": "Ninja",
            "binaryDir": "${sourceDir}/build/${presetName}",
            "cacheVariables": {"MARK": "${sourceDir}/build/mark"},
        }
        for name in ("dev", "tidy")
    ],
    "buildPresets": [{"name": "dev", "configurePreset": "dev"}],
    "testPresets": [{"name": "dev", "configurePreset": "dev"}],
}
#: Runs pytest as one step: DRIVER FOLDER [OPTION...].
DRIVER = """
import sys
from functools import partial
from pathlib import Path
from tools.test_all import main
from tools.test_steps import Step, run_pytest

root = Path(sys.argv[1])
step = Step("pytest", "tests", partial(run_pytest, step="pytest", arguments=[]))
files = ["--results", str(root / "build/results.jsonl")]
sys.exit(main([*files, "--jobs", "1", *sys.argv[2:]], [step], root))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ".gitignore").write_text("build\n")
    commit_all(tmp_path)
    return tmp_path


@pytest.fixture
def run_all(checkout: Path, capsys: pytest.CaptureFixture[str]):
    """Runs steps in the checkout; returns the exit status, the lines without times, and errors."""

    def run(steps: list[Step], *options: str) -> tuple[int, list[str], str]:
        results = checkout / "build" / "results.jsonl"
        handlers = {number: signal.getsignal(number) for number in (1, 2, 15)}
        try:
            status = main(["--results", str(results), *options], steps, checkout)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        printed = capsys.readouterr()
        lines = re.sub(r"\b\d+ s\b", "N s", printed.out).splitlines()
        return status, [line for line in lines if not line.startswith("results: ")], printed.err

    return run


class Script:
    """A step with given runs: one list of outcomes after the other."""

    def __init__(self, name: str, *runs: list[str], **options: object) -> None:
        self._runs = iter(runs)
        self.step = Step(name, f"tests of {name}", self.run, **options)

    def run(self, run: Run) -> None:
        for number, outcome in enumerate(next(self._runs)):
            if outcome == "interrupt":
                raise KeyboardInterrupt
            run.add(Result(f"{self.step.name}::{number}", outcome, 1.0, f"because of {number}"))


def test_steps_run_in_order_and_a_failure_makes_the_exit_status(run_all):
    steps = [Script("first", ["passed", "failed", "skipped"]).step, Script("last", ["passed"]).step]
    assert run_all(steps) == (
        1,
        [
            "[1/2] first: begins: tests of first",
            "[1/2] first: failed: first::1: because of 1",
            "[1/2] first: ended: 1 passed, 1 failed, 1 skipped in N s",
            "[2/2] last: begins: tests of last",
            "[2/2] last: ended: 1 passed, 0 failed, 0 skipped in N s",
            "failed: first::1: because of 1",
            "2 passed, 1 failed, 1 skipped",
        ],
        "",
    )


def test_complete_steps_are_not_run_again_and_steps_with_failures_are(run_all):
    steps = [
        Script("good", ["passed"]).step,
        Script("bad", ["failed"], ["passed"]).step,
        Script("worse", ["error"], ["passed", "xfailed"]).step,
    ]
    assert run_all(steps)[0] == 1
    assert run_all(steps) == (
        0,
        [
            "[1/3] good: complete already (N s)",
            "[2/3] bad: begins: tests of bad",
            "[2/3] bad: ended: 1 passed, 0 failed, 0 skipped in N s",
            "[3/3] worse: begins: tests of worse",
            "[3/3] worse: ended: 1 passed, 0 failed, 0 skipped, 1 expected failures in N s",
            "3 passed, 0 failed, 0 skipped, 1 expected failures",
        ],
        "",
    )
    assert run_all(steps)[:2] == (
        0,
        [
            "[1/3] good: complete already (N s)",
            "[2/3] bad: complete already (N s)",
            "[3/3] worse: complete already (N s)",
            "3 passed, 0 failed, 0 skipped, 1 expected failures",
        ],
    )


def test_an_interrupted_run_continues_with_the_interrupted_step(run_all, checkout):
    steps = [
        Script("one", ["passed"]).step,
        Script("two", ["passed", "interrupt"], ["passed"]).step,
    ]
    status, lines, errors = run_all(steps)
    assert (status, errors) == (130, "test-all: interrupted; make test-all goes on from here\n")
    assert lines[-1] == "[2/2] two: interrupted: 1 passed, 0 failed, 0 skipped in N s"
    assert list(read_results(checkout / "build" / "results.jsonl").steps) == ["one"]
    assert run_all(steps)[1][0] == "[1/2] one: complete already (N s)"


def test_restart_begins_anew(run_all, checkout):
    steps = [Script("one", ["passed"], ["skipped"]).step]
    run_all(steps)
    assert run_all(steps, "--restart")[1][-1] == "0 passed, 0 failed, 1 skipped"
    earlier = read_results(checkout / "build" / "results.jsonl.previous")
    assert earlier.latest["one::0"].outcome == "passed"


def test_results_of_another_commit_are_refused(run_all, checkout):
    steps = [Script("one", ["passed"]).step]
    run_all(steps)
    (checkout / "new").touch()
    commit_all(checkout)
    status, lines, errors = run_all(steps)
    assert (status, lines) == (2, [])
    assert re.search(r"holds the results of commit \w+; this is commit \w+\. .*RESTART=1", errors)


def test_results_of_another_commit_are_completed_where_it_is_named(run_all, checkout):
    steps = [Script("one", ["passed", "failed"]).step]
    run_all(steps)
    first = checkout / "build" / "results.jsonl"
    part = first.rename(first.with_name("part.jsonl"))
    (checkout / "new").touch()
    commit_all(checkout)
    good = []
    step = Step("one", "tests of one", lambda run: good.extend(run.list_good()))
    assert run_all([step], f"--part={part}")[0] == 0
    assert good == ["one::0"]
    results = read_results(first)
    assert list(results.completes) == [read_results(part).header["commit"][:12]]
    assert "one::0" not in results.latest and "one" in results.steps


def test_chosen_steps_run_alone(run_all):
    steps = [Script("one", ["passed"]).step, Script("two", ["passed"]).step]
    assert run_all(steps, "two")[1][0] == "[1/1] two: begins: tests of two"


def test_a_missing_program_is_a_named_skip(run_all, checkout):
    steps = [Script("tidy", needs=("sh", "no-such-tidy")).step]
    assert run_all(steps)[0] == 0
    skipped = read_results(checkout / "build" / "results.jsonl").latest["tidy::session"]
    assert (skipped.outcome, skipped.reason) == ("skipped", "not installed: no-such-tidy")


def test_a_line_of_progress_names_the_steps_to_come(run_all):
    def work(run: Run) -> None:
        run.add_selected(3)
        run.add(Result("one::0", "passed"))
        run.tick()

    steps = [Step("one", "tests", work), Script("two", []).step, Script("three", []).step]
    lines = run_all(steps, "--interval", "0")[1]
    assert lines[1] == "[1/3] one: 1 of 3 finished, 0 failed, N s; then: two, three"


@pytest.mark.system
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive),
        pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive),
    ],
)
def test_a_killed_run_ends_pytest_and_is_resumed(checkout, number):
    (checkout / "build").mkdir()
    (checkout / "pytest.ini").write_text(
        "[pytest]\naddopts = -p tests.support.results -p no:cacheprovider\n"
    )
    (checkout / "test_wait.py").write_text(
        "import os, pathlib, time\n"
        "def test_before():\n    pass\n"
        "def test_wait():\n"
        "    mark = pathlib.Path('build/waits')\n"
        "    if not mark.exists():\n"
        "        mark.write_text(str(os.getpid()))\n"
        "        time.sleep(600)\n"
    )
    commit_all(checkout)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-k no_test_at_all",  # must not make a step complete
    }
    command = [sys.executable, "-c", DRIVER, str(checkout)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as first:
        pid = int(wait_until(lambda: _read(checkout / "build" / "waits"), "a test waits"))
        first.send_signal(number)
        printed = first.communicate()[0]
    status = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert first.returncode == status, printed
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the test has ended")
    results = read_results(checkout / "build" / "results.jsonl")
    assert list(results.latest) == ["test_wait.py::test_before"]
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.system
def test_an_error_of_pytest_itself_is_a_result(checkout, run_all):
    (checkout / "conftest.py").write_text("import no_such_module\n")
    step = partial(test_steps.run_pytest, step="pytest", arguments=["-p", "no:cacheprovider"])
    status, lines, _ = run_all([Step("pytest", "tests", step)])
    assert status == 1
    assert lines[1].startswith("[1/1] pytest: error: pytest::session: pytest ended with status 4: ")


@pytest.fixture
def cmake(checkout: Path) -> Path:
    """Makes a checkout with unit tests of CMake that need no compiler."""
    if missing := [name for name in ("cmake", "ctest", "ninja") if not find_program(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    (checkout / "CMakeLists.txt").write_text(CMAKE)
    (checkout / "CMakePresets.json").write_text(json.dumps(PRESETS))
    commit_all(checkout)
    return checkout


@pytest.mark.system
def test_results_of_unit_tests(cmake, run_all):
    steps = [Step("unit", "unit tests", partial(run_unit_tests, step="unit", preset="dev"))]
    assert run_all(steps)[0] == 1
    results = read_results(cmake / "build" / "results.jsonl")
    lines = [f"{r.test} {r.outcome}: {r.reason}" for r in results.latest.values()]
    assert "\n".join(lines) == (
        "unit::build passed: \n"
        "unit::base.passes passed: \n"
        "unit::base.fails failed: a.cpp:3: Failure: Expected: 1\n"
        "unit::base.skips skipped: no such file system\n"
        "unit::hints.has_no_program error: Unable to find executable\n"
        "unit::hints.is_disabled skipped: disabled"
    )
    (cmake / "build" / "mark").touch()
    assert run_all(steps)[1][-1] == "3 passed, 1 failed, 2 skipped"
    (cmake / "build" / "mark").unlink()
    lines = run_all(steps)[1]  # base passes now; only hints is run
    assert lines[2] == "[1/1] unit: ended: 1 passed, 1 failed, 1 skipped in N s"


@pytest.mark.system
def test_a_failed_build_is_a_result(cmake, run_all):
    (cmake / "CMakeLists.txt").write_text("message(FATAL_ERROR broken)\n")
    commit_all(cmake)
    steps = [Step("unit", "unit tests", partial(run_unit_tests, step="unit", preset="dev"))]
    status, lines, _ = run_all(steps)
    assert status == 1
    assert "failed: unit::build: cmake --preset dev -DPARIO_UNIT_TESTS=all: status 1: " in lines[-2]


@pytest.mark.system
def test_clang_tidy_checks_each_file_until_it_is_good(cmake, run_all, monkeypatch):
    tidy = [
        "sh",
        "-c",
        'test -e build/mark || test $0 = src/a.cpp || echo "$0: error: bad"; '
        "test -e build/mark || test $0 = src/a.cpp",
    ]
    monkeypatch.setattr(test_steps, "_TIDY", tidy)
    steps = [Step("tidy", "clang-tidy", partial(run_clang_tidy, step="tidy"))]
    assert run_all(steps)[1][1:] == [
        "[1/1] tidy: failed: tidy::src/b.cpp: src/b.cpp: error: bad",
        "[1/1] tidy: ended: 2 passed, 1 failed, 0 skipped in N s",
        "failed: tidy::src/b.cpp: src/b.cpp: error: bad",
        "2 passed, 1 failed, 0 skipped",
    ]
    (cmake / "build" / "mark").touch()
    assert run_all(steps)[1][1:] == [
        "[1/1] tidy: ended: 2 passed, 0 failed, 0 skipped in N s",
        "3 passed, 0 failed, 0 skipped",
    ]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1", None),
        ("WARNING: ThreadSanitizer: data race (pid=1)", None),
        ("a.cpp:2:3: runtime error: signed integer overflow: 1 + 2", None),
        ("nothing that is known", "SEGFAULT"),
    ],
)
def test_the_reason_of_a_failed_unit_test(tmp_path, output, reason):
    junit = tmp_path / "junit.xml"
    junit.write_text(
        '<testsuite><testcase name="base.A.B" time="0.5" status="fail">'
        f'<failure message="SEGFAULT"/><system-out>{output}</system-out></testcase></testsuite>'
    )
    wanted = Result("asan::base.A.B", "failed", 0.5, reason or output)
    assert list(read_junit(junit, "asan", tmp_path)) == [wanted]


def test_times_are_readable():
    assert [format_seconds(seconds) for seconds in (0.4, 61, 3600, 3725)] == [
        "0 s",
        "1 min 1 s",
        "1 h 0 min",
        "1 h 2 min",
    ]


def test_each_step_has_a_name_of_its_own():
    names = [step.name for step in test_steps.STEPS]
    assert len(set(names)) == len(names)


def test_a_module_of_tests_that_does_not_start_is_an_error(run_all):
    step = Step("own", "own lines", partial(run_module, step="own", command=["no_such_module"]))
    status, lines, _ = run_all([step])
    assert status == 1
    assert any(line.startswith("error: own::session: status 1: ") for line in lines), lines


def test_a_module_adds_its_own_lines(run_all, checkout):
    code = "import sys; sys.exit(0)"
    (checkout / "own_lines.py").write_text(code)
    step = Step("own", "own lines", partial(run_module, step="own", command=["own_lines"]))
    assert run_all([step])[1][-1] == "1 passed, 0 failed, 0 skipped"
