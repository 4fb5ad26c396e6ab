"""Runs ``pario`` with given times in place of measured ones, so that its judgements are the same on
any machine.

    python timed.py '{"before": 2.0, "after/1": 1.0}' run --fix -- PROGRAM

The first argument has the seconds of runs by the names of their directories, or of the directories
above these; three quarters of them are I/O. ``as it is`` and ``with settings`` are the seconds of
replays. Runs and replays without seconds keep their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pario.see.analyze
import pario.see.launch
from pario.cli import main
from pario.prove.replay import Script
from pario.prove.tune import trials
from pario.prove.tune.choice import Choice
from pario.prove.tune.trials import Play
from pario.see.analyze.model import Analysis, Split
from pario.see.launch import Outcome
from pario.see.tables.model import Job

Times = Mapping[str, float]


def find_seconds(times: Times, directory: Path) -> float | None:
    """Returns the seconds of the run in a directory; None: it keeps its own."""
    last = "/".join(directory.parts[-2:])
    return next((times[name] for name in (last, *directory.parts[:-3:-1]) if name in times), None)


def replace_times_of_runs(times: Times) -> None:
    launching: Any = pario.see.launch
    analyzing: Any = pario.see.analyze
    launch, analyze = launching.launch, analyzing.analyze

    def launch_timed(*given: Any) -> Outcome:
        done: Outcome = launch(*given)
        seconds = find_seconds(times, done.directory)
        return done if seconds is None else replace(done, seconds=seconds)

    def analyze_timed(job: Job) -> Analysis:
        analysis: Analysis = analyze(job)
        wall = find_seconds(times, Path(job.source))
        if wall is None:
            return analysis
        split = Split(wall / 4, 0.0, 0.0, wall * 3 / 4)
        verdict = replace(analysis.verdict, critical=split)
        return replace(analysis, job=replace(analysis.job, wall=wall), verdict=verdict)

    launching.launch, analyzing.analyze = launch_timed, analyze_timed


def time_player(make: Callable[..., Play], times: Times) -> Callable[..., Play]:
    """Returns a function as ``trials.player``, whose replays take the given seconds."""

    def make_timed(*given: Any) -> Play:
        play = make(*given)

        def play_timed(script: Script, choice: Choice, limit: float) -> float:
            seconds = play(script, choice, limit)
            return times.get("with settings" if choice.sections else "as it is", seconds)

        return play_timed

    return make_timed


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    replace_times_of_runs(given)
    vars(trials)["player"] = time_player(trials.player, given)
    sys.exit(main(sys.argv[2:]))
