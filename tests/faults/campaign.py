"""Campaigns of system-call faults and of crashes over all scenarios.

usage: python -m tests.faults.campaign faults|crashes [--results FILE] [--part FILE] [--jobs N]
                                       [--scenario NAME] [--sample N] [--seed S]

faults   fails or shortens every call of every family, or kills the program before it, one run each.
         After it, the files keep their promise, or an error names path and reason; the next run
         succeeds and leaves no stale files.
crashes  builds each state of the disk that a crash during the work may leave (crash_states.py): the
         newest result is complete, or the previous one is.

Each line of the result file is one scenario with one kind of fault, with its counts. A campaign
resumes an interrupted one, leaves out the good lines of a --part, and runs N scenarios at a time.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.faults.apart import run_apart
from tests.faults.crash_states import Interpreter, apply_state, list_states, read_disk, write_disk
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.tracing import KILL, SHORT, Fault, Outcome, read_records, run_traced
from tests.support.campaigns import add_options, run_campaign
from tests.support.results_file import Result

#: Faults to inject into the calls of a family; a plus: into all later calls, too.
ERRORS = {
    "write": f"EIO ENOSPC ENOSPC+ EDQUOT EINTR {SHORT} {KILL}",
    "read": f"EIO EINTR {SHORT}",
    "fsync": f"EIO ENOSPC EDQUOT EINTR {KILL}",
    "open": f"EIO ENOSPC EDQUOT EINTR EMFILE EMFILE+ {KILL}",
    "close": "EIO ENOSPC EDQUOT",
    "mmap": "ENOMEM ENODEV",
    "truncate": f"EIO ENOSPC EDQUOT EINTR {KILL}",
    "mkdir": f"EIO ENOSPC EDQUOT {KILL}",
    "unlink": f"EIO {KILL}",
    "rename": f"EIO ENOSPC EDQUOT {KILL}",
    "link": f"EIO ENOSPC EDQUOT {KILL}",
    "copy": f"EIO ENOSPC EDQUOT {KILL}",
}
#: Known defects: prefix of a line's name -> description. A matching line with a problem is an
#: expected failure; one without passes.
KNOWN: dict[str, str] = {}
#: Largest number of problems in a reason.
_EXAMPLES = 3


@dataclass(frozen=True)
class Verdict:
    """The result of a run: absorbed, reported, killed, whole or missed; or its problem."""

    kind: str
    problem: str = ""


@contextmanager
def prepared_folder(scenario: Scenario) -> Iterator[Path]:
    """Yields a folder with the scenario's initial state in `before`; removes it afterwards."""
    with tempfile.TemporaryDirectory(prefix="pario-faults-") as name:
        folder = Path(name).resolve()
        root = folder / "root"
        root.mkdir()
        outcome = run_traced(lambda: scenario.prepare(root), root)
        if outcome.status:
            raise RuntimeError(f"{scenario.name}: cannot be prepared: {outcome.output}")
        root.rename(folder / "before")
        yield folder


@contextmanager
def copied_root(folder: Path) -> Iterator[Path]:
    """Yields a copy of `before` at `root`, the path at which it was prepared."""
    root = folder / "root"
    shutil.copytree(folder / "before", root, symlinks=True)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def judge_end(outcome: Outcome, fault: Fault) -> str:
    """Returns the problem of how a run ended, or an empty text."""
    if outcome.late:
        return "it hangs"
    if "Traceback (most recent call last)" in outcome.output:
        return f"traceback: {last_line(outcome)}"
    if outcome.status < 0 and (fault.error != KILL or outcome.status != -signal.SIGKILL):
        return f"it died of {signal.Signals(-outcome.status).name}"
    return ""


def judge_error(outcome: Outcome, fault: Fault, root: Path) -> str:
    """Returns the information missing in a failed run's error, or an empty text."""
    if str(root) not in outcome.output:
        return f"the error names no path: {last_line(outcome)}"
    number = getattr(errno, fault.error, 0)
    if number and os.strerror(number).lower() not in outcome.output.lower():
        return f"the error does not say why: {last_line(outcome)}"
    return ""


def last_line(outcome: Outcome) -> str:
    return (outcome.output.strip().splitlines() or ["no output"])[-1][:300]


def try_fault(scenario: Scenario, folder: Path, fault: Fault) -> Verdict:
    """Judges a run with one fault and the run after it."""
    with copied_root(folder) as root:
        outcome = run_traced(lambda: scenario.work(root), root / scenario.faulted, fault)
        if not outcome.injected:
            return Verdict("missed")
        if problem := judge_end(outcome, fault):
            return Verdict("", problem)
        done = outcome.status == 0
        if problems := run_apart(lambda: list(scenario.check(root, done))):
            return Verdict("", f"{'done' if done else 'failed'}, and {problems[0]}")
        if outcome.status > 0 and (problem := judge_error(outcome, fault, root)):
            return Verdict("", problem)
        if problem := try_again(scenario, root):
            return Verdict("", problem)
    if outcome.status < 0:
        return Verdict("killed")
    return Verdict("absorbed" if done else "reported")


def try_again(scenario: Scenario, root: Path) -> str:
    """Runs the work again; returns an empty text if it succeeds and leaves no stale files."""
    scenario.clear(root)
    again = run_traced(lambda: scenario.work(root), root)
    if again.status:
        return f"the next run fails: {last_line(again)}"
    if problems := run_apart(lambda: list(scenario.check(root, True))):
        return f"after the next run {problems[0]}"
    if stale := scenario.find_stale(root):
        return f"the next run leaves {', '.join(stale)}"
    return ""


def count_calls(scenario: Scenario, folder: Path) -> dict[str, int]:
    """Counts the calls of a run without faults, by family."""
    with copied_root(folder) as root:
        outcome = run_traced(lambda: scenario.work(root), root / scenario.faulted)
    if outcome.status:
        raise RuntimeError(f"{scenario.name}: fails without a fault: {outcome.output}")
    return outcome.counts


def list_faults(counts: dict[str, int]) -> dict[str, list[Fault]]:
    """Lists all faults by group, such as `write,ENOSPC`."""
    return {
        f"{call},{error}": [
            Fault(call, error.rstrip("+"), index + 1, error.endswith("+")) for index in range(count)
        ]
        for call, count in counts.items()
        for error in ERRORS[call].split()
        if count
    }


def summarise(test: str, verdicts: Sequence[Verdict], seconds: float) -> Result:
    """Makes the result line of a group of runs."""
    counts = Counter(verdict.kind or "violated" for verdict in verdicts)
    problems = list(dict.fromkeys(verdict.problem for verdict in verdicts if verdict.problem))
    reason = " | ".join(problems[:_EXAMPLES])
    known = any(test.startswith(name) for name in KNOWN)
    outcome = "passed" if not problems else "xfailed" if known else "failed"
    return Result(test, outcome, seconds, reason, counts=dict(counts) | {"runs": len(verdicts)})


Groups = dict[str, Callable[[], Sequence[Verdict]]]


def list_fault_groups(scenario: Scenario, folder: Path, sample: int, seed: int) -> Groups:
    """Lists the groups of runs of a scenario, of at most `sample` runs in all (0: no limit)."""
    groups = list_faults(count_calls(scenario, folder))
    every = [(name, fault) for name, faults in groups.items() for fault in faults]
    if sample and len(every) > sample:
        every = random.Random(f"{scenario.name} {seed}").sample(every, sample)

    def run(name: str) -> list[Verdict]:
        return [try_fault(scenario, folder, fault) for group, fault in every if group == name]

    names = dict.fromkeys(name for name, _ in every)
    return {f"faults::{scenario.name}[{name}]": partial(run, name) for name in names}


def list_crash_groups(scenario: Scenario, folder: Path, limit: int, seed: int) -> Groups:
    """Lists one group: all states that a crash may leave, or a sample of `limit` of them."""
    name = f"crashes::{scenario.name}"
    return {name: lambda: try_crashes(scenario, folder, limit, seed)}


def try_crashes(scenario: Scenario, folder: Path, limit: int, seed: int) -> list[Verdict]:
    with copied_root(folder) as root, tempfile.TemporaryFile() as records:
        disk, by_inode = read_disk(root)
        outcome = run_traced(lambda: scenario.work(root), root, record=records.fileno())
        if outcome.status:
            raise RuntimeError(f"{scenario.name}: fails without a crash: {outcome.output}")
        records.seek(0)
        interpreter = Interpreter(root, disk, by_inode)
        events = list(interpreter.interpret(list(read_records(records.read()))))
    states = list(list_states(events))
    if limit and len(states) > limit:
        states = random.Random(seed).sample(states, limit)
    verdicts = []
    for state in states:
        root = folder / "root"
        write_disk(apply_state(disk, interpreter.created, events, state), root)
        done = state.at == len(events) and scenario.durable
        problems = run_apart(lambda: list(scenario.check(root, done)))  # noqa: B023
        shutil.rmtree(root)
        place = f"crash after event {state.at} of {len(events)}"
        problem = f"{place}{' (done)' if done else ''}: {problems[0]}" if problems else ""
        verdicts.append(Verdict("" if problem else "whole", problem))
    return verdicts


def run_scenario(
    scenario: Scenario, options: argparse.Namespace, known: Collection[str]
) -> Iterator[Result]:
    """Yields the results of a scenario's groups that are not known."""
    list_groups = list_fault_groups if options.campaign == "faults" else list_crash_groups
    with prepared_folder(scenario) as folder:
        for name, run in list_groups(scenario, folder, options.sample, options.seed).items():
            if name not in known:
                start = time.monotonic()
                yield summarise(name, run(), time.monotonic() - start)


def parse(arguments: Sequence[str] | None, scenarios: Sequence[Scenario]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    parser.add_argument("campaign", choices=("faults", "crashes"))
    add_options(parser)
    names = [scenario.name for scenario in scenarios]
    parser.add_argument("--scenario", action="append", default=[], choices=names)
    parser.add_argument("--sample", type=int, default=0, help="most runs of each scenario")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, scenarios: Sequence[Scenario] = SCENARIOS) -> int:
    options = parse(arguments, scenarios)
    if options.scenario:
        scenarios = [one for one in scenarios if one.name in options.scenario]
    if options.campaign == "crashes":
        scenarios = [one for one in scenarios if one.survives_crashes]
    return run_campaign(options, [partial(run_scenario, one, options) for one in scenarios])


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
