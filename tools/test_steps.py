"""The steps of `make test-all`: each runs a kind of tests and adds a result for each test.

A step leaves out the tests that the result file holds as good, so that it continues an
interrupted run. A new kind of tests is a function here and a row in STEPS.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.support.results_file import (
    BROKEN,
    Result,
    Results,
    ResultsWriter,
    list_good,
    read_results,
)
from tools.child_process import find_program, run_child, run_children
from tools.junit import read_junit

SUITES = "tests/suites/test_suites.py"
WHEELS = "tests/wheels"
_TIDY = ["clang-tidy", "-p", "build/tidy", "--quiet"]
_NO_SOURCES_OF = "src/bindings/"  # built with the Python package alone
_SECONDS = 60  # for commands that only print a list
#: Seconds of each fuzz target, and the line of libFuzzer with its counts.
_FUZZ_SECONDS = int(os.environ.get("PARIO_FUZZ_SECONDS") or 60)
_EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")


@dataclass(frozen=True)
class Run:
    """The files of a run of all tests, and its display of progress.

    `parts`: result files of other commits, whose good tests need not run again.
    """

    root: Path
    results: Path
    jobs: int
    tick: Callable[[], None] = field(default=lambda: None)
    parts: tuple[Path, ...] = ()

    def log(self, step: str) -> Path:
        """The file for the output of a step."""
        return self.results.parent / f"{step}.log"

    def read(self) -> Results:
        """The results so far."""
        return read_results(self.results)

    def list_good(self) -> set[str]:
        """The tests that need not run again."""
        return list_good([*self.parts, self.results])

    @contextmanager
    def writer(self) -> Iterator[ResultsWriter]:
        """Opens the result file; pytest, which writes to it, must not run meanwhile."""
        with ResultsWriter(self.results) as writer:
            writer.cut_torn_line()
            yield writer

    def add(self, result: Result) -> None:
        """Appends a result."""
        with self.writer() as writer:
            writer.add(result)

    def add_selected(self, count: int) -> None:
        """Appends the number of tests that the step is going to run."""
        with self.writer() as writer:
            writer.add_selected(count)

    def call(self, step: str, command: list[str]) -> int:
        """Runs a command in the checkout and returns its status; its output goes to the log."""
        return run_child(command, self.log(step), self.tick, cwd=self.root)


@dataclass(frozen=True)
class Step:
    """One row of the table of steps. `needs`: programs without which it is skipped."""

    name: str
    title: str
    run: Callable[[Run], None]
    needs: tuple[str, ...] = ()


def run_step(step: Step, run: Run) -> None:
    """Runs a step; a program that it needs and that is missing is a skip in the result file."""
    missing = [name for name in step.needs if not find_program(name)]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        run.add(Result(f"{step.name}::session", "skipped", reason=reason))
        return
    run.log(step.name).unlink(missing_ok=True)
    step.run(run)


def run_unit_tests(run: Run, step: str, preset: str) -> None:
    """Builds the unit tests with a preset of CMake and runs them, one module after the other.

    Modules whose tests are all good already are left out.
    """
    if not _build(run, step, preset, "-DPARIO_UNIT_TESTS=all"):
        return
    good = run.list_good()
    modules: dict[str, list[str]] = {}
    for name in _list_unit_tests(run.root, preset):
        modules.setdefault(name.partition(".")[0], []).append(f"{step}::{name}")
    chosen = {module: tests for module, tests in modules.items() if not good.issuperset(tests)}
    run.add_selected(sum(len(tests) for tests in chosen.values()))
    for module in chosen:
        _run_module(run, step, preset, module)


def _prepare(run: Run, test: str, *commands: list[str]) -> bool:
    """Runs commands, whose result is that of a test of its own; True if all succeed."""
    step = test.partition("::")[0]
    for command in commands:
        if status := run.call(step, command):
            reason = f"{' '.join(command)}: status {status}: {_find_last_error(run.log(step))}"
            run.add(Result(test, "failed", reason=reason))
            return False
    run.add(Result(test, "passed"))
    return True


def _build(run: Run, step: str, preset: str, *options: str) -> bool:
    return _prepare(
        run,
        f"{step}::build",
        ["cmake", "--preset", preset, *options],
        ["cmake", "--build", "--preset", preset, "-j", str(run.jobs)],
    )


def _list_unit_tests(root: Path, preset: str) -> list[str]:
    command = [str(find_program("ctest")), "--preset", preset, "--show-only=json-v1"]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=True, timeout=_SECONDS
    )
    return [test["name"] for test in json.loads(done.stdout)["tests"]]


def _run_module(run: Run, step: str, preset: str, module: str) -> None:
    junit = run.results.parent / f"{step}.{module}.xml"
    junit.unlink(missing_ok=True)
    chosen = ["-R", f"^{module}\\.", "-j", str(run.jobs), "--output-junit", str(junit)]
    status = run.call(step, ["ctest", "--preset", preset, *chosen])
    if not junit.exists():
        reason = f"ctest ended with status {status} and without results"
        run.add(Result(f"{step}::{module}", "error", reason=reason))
        return
    with run.writer() as writer:
        for result in read_junit(junit, step, run.root):
            writer.add(result)


def run_pytest(run: Run, step: str, arguments: Sequence[str]) -> None:
    """Runs pytest, whose plugin writes the results (tests/support/results.py)."""
    files = [f"--results={run.results}", "--resume", *(f"--part={part}" for part in run.parts)]
    workers = ["-n", str(run.jobs), "--dist", "loadgroup"] if run.jobs > 1 else []
    command = [sys.executable, "-m", "pytest", "-q", *workers, *files, *arguments]
    status = run.call(step, command)
    session = f"{step}::session"
    if status not in (0, 1):  # an error of pytest itself: no test has a line for it
        reason = f"pytest ended with status {status}: {_find_last_error(run.log(step))}"
        run.add(Result(session, "error", reason=reason))
    elif session in run.read().latest:
        run.add(Result(session, "passed"))


def run_wheels(run: Run) -> None:
    """Builds the wheels and tests them."""
    if _prepare(run, "wheels::build", [sys.executable, "-m", "tools.build_wheels"]):
        run_pytest(run, "wheels", [WHEELS])


def run_clang_tidy(run: Run, step: str) -> None:
    """Checks each source file of src/ that preset tidy configures."""
    if not _prepare(run, f"{step}::configure", ["cmake", "--preset", "tidy"]):
        return
    good = run.list_good()
    files = [name for name in _list_sources(run.root) if f"{step}::{name}" not in good]
    run.add_selected(len(files))
    folder = run.results.parent / step
    commands = ((name, [*_TIDY, name]) for name in files)
    with closing(run_children(commands, run.jobs, folder, run.tick, cwd=run.root)) as children:
        for done in children:
            outcome = "failed" if done.status else "passed"
            reason = _find_first_error(done.output, run.root) if done.status else ""
            run.add(Result(f"{step}::{done.key}", outcome, done.seconds, reason))


def run_fuzzers(run: Run, step: str) -> None:
    """Runs each fuzzer of preset fuzz for PARIO_FUZZ_SECONDS; new inputs stay in build/fuzz."""
    if not _build(run, step, "fuzz"):
        return
    good = run.list_good()
    names = [path.name for path in sorted((run.root / "tests/fuzz/corpus").iterdir())]
    fuzzers = {name: run.root / f"build/fuzz/tests/fuzz/fuzz_{name}" for name in names}
    chosen = [n for n, path in fuzzers.items() if path.exists() and f"{step}::{n}" not in good]
    run.add_selected(len(chosen))
    folder = run.results.parent / step
    children = ((name, _fuzz_command(run.root, name, fuzzers[name])) for name in chosen)
    with closing(run_children(children, run.jobs, folder, run.tick, cwd=run.root)) as running:
        for done in running:
            found = _EXECUTED.search(done.output)
            counts = {"inputs": int(found[1]) if found else 0}
            outcome = "failed" if done.status else "passed"
            reason = _find_crash(done.output) if done.status else ""
            name = f"{step}::{done.key}"
            run.add(Result(name, outcome, done.seconds, reason, counts=counts))


def _fuzz_command(root: Path, name: str, fuzzer: Path) -> list[str]:
    grown = root / "build/fuzz/corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={_FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048"]
    places = [f"-artifact_prefix={grown.parent}/{name}-", str(grown), f"tests/fuzz/corpus/{name}"]
    return [str(fuzzer), *limits, "-max_len=16384", "-print_final_stats=1", *places]


def _find_crash(output: str) -> str:
    """The broken promise or the summary of a sanitizer, and the file that shows it."""
    marks = ("broken promise", "SUMMARY", "Test unit written")
    return "; ".join(line for line in output.splitlines() if any(m in line for m in marks))[:500]


def run_module(run: Run, step: str, command: Sequence[str]) -> None:
    """Runs a module of tests that adds its own lines to the result file.

    Its status is 3 where some of them are failures; others are errors of the module itself.
    """
    arguments = [f"--results={run.results}", *(f"--part={part}" for part in run.parts)]
    arguments.append(f"--jobs={run.jobs}")
    status = run.call(step, [sys.executable, "-m", *command, *arguments])
    if status not in (0, BROKEN):  # an error without a line of its own
        reason = f"status {status}: {_find_last_error(run.log(step))}"
        run.add(Result(f"{step}::session", "error", reason=reason))
    else:
        run.add(Result(f"{step}::session", "passed"))


def _list_sources(root: Path) -> list[str]:
    """The C++ files of src/ in the compilation database, as paths from the root."""
    database = json.loads((root / "build/tidy/compile_commands.json").read_text(encoding="utf-8"))
    files = {str(Path(entry["file"]).relative_to(root)) for entry in database}
    return sorted(
        file
        for file in files
        if file.startswith("src/") and file.endswith(".cpp") and not file.startswith(_NO_SOURCES_OF)
    )


def _find_first_error(output: str, root: Path) -> str:
    lines = output.replace(f"{root}/", "").splitlines()
    return next((line.strip() for line in lines if "error: " in line), lines[-1] if lines else "")


def _find_last_error(log: Path) -> str:
    """The last line of a log that names an error, else its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1][:300]


_BUILD_TOOLS = ("cmake", "ctest", "ninja", "c++")
STEPS = (
    Step("unit", "unit tests", partial(run_unit_tests, step="unit", preset="dev"), _BUILD_TOOLS),
    Step(
        "pytest",
        "pytest tests of all tiers",
        partial(run_pytest, step="pytest", arguments=["--ignore", SUITES, "--ignore", WHEELS]),
    ),
    Step("wheels", "wheels, built and installed without a compiler", run_wheels),
    Step(
        "asan",
        "unit tests under the address and undefined-behaviour sanitizers",
        partial(run_unit_tests, step="asan", preset="asan"),
        _BUILD_TOOLS,
    ),
    Step(
        "tsan",
        "unit tests under the thread sanitizer",
        partial(run_unit_tests, step="tsan", preset="tsan"),
        _BUILD_TOOLS,
    ),
    Step(
        "clang-tidy",
        "clang-tidy over all files",
        partial(run_clang_tidy, step="clang-tidy"),
        ("cmake", "ninja", "c++", "clang-tidy"),
    ),
    Step(
        "faults",
        "faults of every system call of saves, packs, shuffles and others",
        partial(run_module, step="faults", command=["tests.faults.campaign", "faults"]),
        ("cc",),
    ),
    Step(
        "crashes",
        "states of the disk that a crash may leave",
        partial(run_module, step="crashes", command=["tests.faults.campaign", "crashes"]),
        ("cc",),
    ),
    Step(
        "fuzz",
        "fuzzers of the native parsers",
        partial(run_fuzzers, step="fuzz"),
        ("cmake", "ninja", "clang++-19"),
    ),
    Step(
        "python-fuzz",
        "mutated files for the parsers in Python",
        partial(
            run_module,
            step="python-fuzz",
            command=["tests.fuzz.python_parsers", f"--seconds={_FUZZ_SECONDS}"],
        ),
    ),
    Step(
        "suites",
        "test suites of MPICH, ROMIO, mpi4py, HDF5 and PnetCDF under all MPIs",
        partial(run_pytest, step="suites", arguments=[SUITES]),
    ),
)
