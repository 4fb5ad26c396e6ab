"""Runs every test, and continues an interrupted run.

All results go to one file (tests/support/results_file.py). A step that is complete at this commit
is not run again; in the other steps, passed and skipped tests are not run again. The exit status
is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.results_file import Results, format_counts, read_results
from tools.progress import INTERVAL, Progress, format_seconds
from tools.run_files import run_resumable
from tools.test_steps import STEPS, Run, Step, run_step

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-all" / "results.jsonl"


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
    parser.add_argument(
        "--part",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a result file of another commit whose good tests need not run again; repeatable",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--interval", type=float, default=INTERVAL, help="seconds of progress")
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.steps) - set(names):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; steps: {', '.join(names)}")
    parsed.results = parsed.results.resolve()
    return parsed


def run_steps(steps: Sequence[Step], run: Run, interval: float) -> None:
    names = [step.name for step in steps]
    for number, step in enumerate(steps):
        label = f"[{number + 1}/{len(steps)}] {step.name}"
        results = read_results(run.results)
        if step.name in results.steps:
            took = format_seconds(results.steps[step.name])
            print(f"{label}: complete already ({took})", flush=True)
            continue
        progress = Progress(run.results, interval, label, _describe_remaining(names[number + 1 :]))
        progress.print_line(f"begins: {step.title}")
        try:
            run_step(step, replace(run, tick=progress.update))
        except BaseException:
            progress.finish("interrupted")
            raise
        progress.finish("ended")
        _complete(step, run, progress)


def _describe_remaining(names: Sequence[str]) -> str:
    return f"; then: {', '.join(names)}" if names else "; this is the last step"


def _complete(step: Step, run: Run, progress: Progress) -> None:
    """Marks a step as complete if all of its tests are good."""
    if not progress.counts["failed"] + progress.counts["error"]:
        with run.writer() as writer:
            writer.add_step(step.name, progress.seconds)


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
    parts = tuple(part.resolve() for part in options.part)
    run = Run(root, options.results, options.jobs, parts=parts)

    def work() -> int:
        if parts:
            with run.writer() as writer:
                writer.add_completes(map(read_results, parts))
        run_steps(chosen, run, options.interval)
        return print_summary(run.read(), options.results)

    return run_resumable("test-all", options.results, root, options.restart, work)


if __name__ == "__main__":
    sys.exit(main())
