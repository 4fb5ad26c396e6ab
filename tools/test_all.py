"""Runs every test there is, and goes on where an interrupted run was left.

All results go to one file (tests/support/results_file.py). A step that is complete at this commit
is not run again; in the other steps, passed and skipped tests are not run again. The exit status
is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.support.results_file import (
    Result,
    Results,
    ResultsError,
    begin_results,
    format_counts,
    iterate_rows,
    read_results,
    result_of,
    resume_results,
)
from tests.support.run_header import read_commit
from tools.child_process import handle_signals
from tools.test_steps import STEPS, Run, Step, run_step

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-all" / "results.jsonl"
_ANEW = "make test-all RESTART=1 (the file is then renamed to FILE.previous)"
#: Seconds between lines of progress.
INTERVAL = 30.0


def parse(arguments: Sequence[str] | None, steps: Sequence[Step]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.test_all",
        description=__doc__,
        epilog="Steps: " + "; ".join(f"{step.name}: {step.title}" for step in steps),
    )
    names = [step.name for step in steps]
    parser.add_argument("steps", nargs="*", metavar="STEP", help="only these steps")
    parser.add_argument("--restart", action="store_true", help="begin anew")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the result file")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--interval", type=float, default=INTERVAL, help="seconds of progress")
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.steps) - set(names):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; steps: {', '.join(names)}")
    parsed.results = parsed.results.resolve()
    return parsed


class Progress:
    """Prints failures as they are written to the result file, and a line every few seconds."""

    def __init__(self, path: Path, interval: float, label: str, remaining: Sequence[str]) -> None:
        self._path = path
        self._interval = interval
        self._label = label
        self._remaining = f"; then: {', '.join(remaining)}" if remaining else "; the last step"
        self._offset = path.stat().st_size
        self._start = self._printed = time.monotonic()
        self._selected: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def seconds(self) -> float:
        """Since the step began."""
        return time.monotonic() - self._start

    def update(self) -> None:
        """Reads the new lines of the result file; prints a line if one is due."""
        self._read()
        if time.monotonic() - self._printed >= self._interval:
            self._printed = time.monotonic()
            self.print_line(self._describe())

    def finish(self, ending: str) -> None:
        """Prints the counts of the step."""
        self._read()
        counts = format_counts(self.counts)
        self.print_line(f"{ending}: {counts} in {format_seconds(self.seconds)}")

    def print_line(self, text: str) -> None:
        """Prints a line that begins with the number and the name of the step."""
        print(f"{self._label}: {text}", flush=True)

    def _read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += data.rfind(b"\n") + 1
        for row in iterate_rows(data, str(self._path)):
            if "test" in row:
                self._add(result_of(row))
            self._selected = row.get("selected", self._selected)

    def _add(self, result: Result) -> None:
        self.counts[result.outcome] += 1
        if not result.good:
            self.print_line(f"{result.outcome}: {result.test}: {result.reason}")

    def _describe(self) -> str:
        done = sum(self.counts.values())
        count = f"{done} of {self._selected}" if self._selected is not None else f"{done}"
        failed = self.counts["failed"] + self.counts["error"]
        elapsed = format_seconds(self.seconds)
        return f"{count} finished, {failed} failed, {elapsed}{self._remaining}"


def format_seconds(seconds: float) -> str:
    """As 1 h 5 min, 5 min 10 s, or 10 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_of_hour = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_of_hour} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def run_steps(steps: Sequence[Step], run: Run, interval: float) -> None:
    names = [step.name for step in steps]
    for number, step in enumerate(steps):
        label = f"[{number + 1}/{len(steps)}] {step.name}"
        results = read_results(run.results)
        if step.name in results.steps:
            took = format_seconds(results.steps[step.name])
            print(f"{label}: complete already ({took})", flush=True)
            continue
        progress = Progress(run.results, interval, label, names[number + 1 :])
        progress.print_line(f"begins: {step.title}")
        try:
            run_step(step, replace(run, tick=progress.update))
        except BaseException:
            progress.finish("interrupted")
            raise
        progress.finish("ended")
        _complete(step, run, progress)


def _complete(step: Step, run: Run, progress: Progress) -> None:
    """Marks a step as complete if all of its tests are good."""
    if not progress.counts["failed"] + progress.counts["error"]:
        with run.writer() as writer:
            writer.add_step(step.name, progress.seconds)


def open_results(path: Path, root: Path, restart: bool) -> None:
    """Begins the result file, or checks that it is of this commit."""
    commit = read_commit(root)
    if restart:
        begin_results(path, commit).close()
    else:
        resume_results(path, commit, _ANEW)[0].close()


@contextmanager
def lock_run(path: Path) -> Iterator[None]:
    """Keeps a second run from the same files. Raises ResultsError if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"{path}: another run that is not over writes to it") from None
        yield


def print_summary(results: Results, path: Path) -> int:
    """Prints the failed tests and the counts. Returns the exit status."""
    failed = [result for result in results.latest.values() if not result.good]
    for result in failed:
        print(f"{result.outcome}: {result.test}: {result.reason}")
    print(f"results: {os.path.relpath(path)}")
    print(format_counts(results.count()))
    return 1 if failed else 0


def main(
    arguments: Sequence[str] | None = None, steps: Sequence[Step] = STEPS, root: Path = ROOT
) -> int:
    options = parse(arguments, steps)
    chosen = [step for step in steps if not options.steps or step.name in options.steps]
    run = Run(root, options.results, options.jobs)
    handle_signals()
    try:
        with lock_run(options.results):
            open_results(options.results, root, options.restart)
            run_steps(chosen, run, options.interval)
            return print_summary(run.read(), options.results)
    except ResultsError as error:
        print(f"test-all: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("test-all: interrupted; make test-all goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
