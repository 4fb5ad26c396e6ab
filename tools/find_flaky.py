"""Runs tests many times beside a load, to find those that fail sometimes.

Without TEST, these are the quick and the system tests that start processes, threads or servers
(the rule: tests/support/selection.py). An interrupted run continues at its
last test. The exit status is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.results_file import Result, Results, format_counts
from tools.child_process import child_running, find_program
from tools.progress import INTERVAL, Progress
from tools.run_files import run_resumable
from tools.test_steps import Run, run_pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "flaky" / "results.jsonl"
SELECTION = ["--starts-processes", "-m", "not exhaustive"]
#: The number of a repetition, as pytest-repeat adds it to the id of a test.
_REPETITION = re.compile(r"(\[|-)\d+-\d+\]$")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m tools.find_flaky", description=__doc__)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="ids, paths, options of pytest")
    parser.add_argument("--count", type=int, default=20, help="runs of each test")
    parser.add_argument("--restart", action="store_true", help="begin anew")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the result file")
    parser.add_argument(
        "--load",
        type=int,
        default=2 * cores,
        help="busy processes, one of which writes to the disk; 0: none (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=int, default=cores, help="tests at a time (default: %(default)s)"
    )
    parser.add_argument("--interval", type=float, default=INTERVAL, help="seconds of progress")
    parsed = parser.parse_args(arguments)
    parsed.results = parsed.results.resolve()
    return parsed


@contextmanager
def load_running(run: Run, processes: int) -> Iterator[None]:
    """Keeps the processors and the disk busy. A missing or failing stress-ng is a result."""
    if not processes:
        yield
        return
    if not find_program("stress-ng"):
        reason = "not installed: stress-ng (Debian: stress-ng); the tests run without a load"
        run.add(Result("flaky::load", "skipped", reason=reason))
        yield
        return
    folder = run.results.parent / "stress"
    folder.mkdir(exist_ok=True)
    with child_running(list_load(processes, folder), run.log("stress")) as child:
        yield
        if child.poll() is not None:
            reason = f"stress-ng ended with status {child.returncode} before the tests"
            run.add(Result("flaky::load", "error", reason=reason))


def list_load(processes: int, folder: Path) -> list[str]:
    """The command that makes the load; `folder`: for its files."""
    processors = ["--cpu", str(processes - 1)] if processes > 1 else []
    disk = ["--hdd", "1", "--hdd-bytes", "64M", "--temp-path", str(folder)]
    return ["stress-ng", "--quiet", *processors, *disk]


def name_test(result: Result) -> str:
    """The id of a test without the number of the repetition."""
    name = _REPETITION.sub(r"\1", result.test)
    return name.removesuffix("[") if name.endswith("[") else re.sub(r"-$", "]", name)


def list_flaky(results: Results) -> Iterator[str]:
    """A line for each test that failed at least once."""
    runs: dict[str, list[Result]] = {}
    for result in results.latest.values():
        runs.setdefault(name_test(result), []).append(result)
    for name, of_test in runs.items():
        failed = [result for result in of_test if not result.good]
        if failed:
            yield f"{name}: failed {len(failed)} of {len(of_test)}: {failed[0].reason}"


def print_summary(results: Results, path: Path) -> int:
    """Prints the flaky tests, or a line with the counts. Returns the exit status."""
    flaky = list(list_flaky(results))
    print(f"results: {os.path.relpath(path)}")
    tests = len({name_test(result) for result in results.latest.values()})
    print("\n".join(flaky or [f"{tests} tests: {format_counts(results.count())}"]))
    return 1 if flaky else 0


def run_tests(run: Run, count: int, tests: Iterable[str]) -> None:
    arguments = ["--keep-failures", "--count", str(count), *tests]
    run_pytest(run, "flaky", arguments)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    options = parse(arguments)

    def work() -> int:
        progress = Progress(options.results, options.interval, "flaky")
        run = Run(root, options.results, options.jobs, progress.update)
        run.log("flaky").unlink(missing_ok=True)
        with load_running(run, options.load):
            run_tests(run, options.count, options.tests or SELECTION)
        progress.finish("ended")
        return print_summary(run.read(), options.results)

    return run_resumable("flaky", options.results, root, options.restart, work)


if __name__ == "__main__":
    sys.exit(main())
