"""The search: a trial is one replay with settings and one without beside it; a setting is kept if
its gain exceeds the noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pario import wording
from pario.errors import ParioError
from pario.prove.replay.limits import Limits
from pario.prove.replay.script import Script
from pario.prove.tune.choice import Choice
from pario.prove.tune.knobs import Knob, knobs
from pario.prove.tune.pairs import LEAST_GAIN, Pairs
from pario.see.analyze import analyze
from pario.see.analyze.comparison import Sample
from pario.see.analyze.model import Analysis
from pario.see.analyze.split import Times
from pario.see.tables.model import Job

#: The least I/O that is worth a trial, as a share of the run and in seconds.
LEAST_SHARE, LEAST_SECONDS = 0.02, 0.01
#: The counters of calls that settings can affect.
CALLS = ("opens", "closes", "reads", "writes", "seeks", "syncs", "flushes")
#: The number of trials that confirm the best setting.
CONFIRMATIONS = 3

LARGER, AGAIN = ", larger", ", again"

#: Replays the script with settings; returns its seconds.
Measure = Callable[[Choice], float]


@dataclass(frozen=True)
class Trial:
    """One replay with settings and one of the original beside it."""

    name: str
    choice: Choice
    seconds: float
    original: float
    failure: str = ""  # the error of one of both; their seconds are meaningless then

    @property
    def ratio(self) -> float:
        """The seconds relative to the original's; infinite if the trial failed."""
        if self.failure:
            return inf
        return self.seconds / self.original if self.original else 1.0


@dataclass(frozen=True)
class Tuning:
    """The result of the search. An empty choice: no setting is better."""

    choice: Choice
    trials: tuple[Trial, ...]
    best: Sample | None  # seconds with the best settings; None: nothing was tried
    original: Sample  # in the same session
    why: str
    untried: tuple[str, ...] = ()  # settings for which no trial was left

    @staticmethod
    def without_trials(why: str) -> Tuning:
        """The result of a search that needs no trial."""
        return Tuning(Choice(), (), None, Sample((0.0,)), why)

    @property
    def enough_trials(self) -> int:
        """The number of trials with which none of these settings would be left out."""
        explored = sum(not trial.name.endswith(AGAIN) for trial in self.trials)
        return explored + len(self.untried) + CONFIRMATIONS

    @property
    def gain(self) -> float:
        """The share of the original's seconds that the settings save."""
        return (
            1 - self.best.median / self.original.median
            if self.best and self.choice.sections
            else 0.0
        )


def nothing_to_tune(job: Job, analysis: Analysis | None = None) -> str:
    """The reason why no trial is needed; empty if the run's I/O is worth trials. ``analysis``: that
    of the job, if it is known already."""
    times = Times(job)
    calls = int(
        sum(
            times.job.records[name][times.storage[times.job.records["file"]]].sum()
            for name in CALLS
        )
    )
    if not calls:
        return (
            f"the run of {wording.seconds(times.wall)} made no I/O calls to files: there is nothing"
            " to tune"
        )
    found = (analysis or analyze(job)).verdict
    if found.critical.io < LEAST_SHARE * found.critical.wall:
        return f"{found.sentence.rstrip('.')}; there is nothing to tune"
    if found.critical.io < LEAST_SECONDS:
        return (
            f"all I/O takes {wording.seconds(found.critical.io)}, too little to compare: there is"
            " nothing to tune"
        )
    return ""


def tune(
    job: Job, directory: Path, measure: Measure, trials: int, tell: Callable[[Trial], None]
) -> Tuning:
    """Try knobs one after the other, each in addition to the best settings so far, and then confirm
    the best.

    ``tell`` is called with each trial. A trial that fails is reported, and the search continues.
    Raises ParioError if the original cannot be replayed.
    """
    done: list[Trial] = []

    def attempt(name: str, choice: Choice) -> Trial:
        done.append(_trial(name, choice, measure, len(done)))
        tell(done[-1])
        return done[-1]

    exploring = max(trials - CONFIRMATIONS, 1)
    best, untried = _explore(list(knobs(job, directory)), exploring, attempt)
    if best is None:
        return replace(_nothing(done), untried=untried)
    again = [
        attempt(f"{best.name}{AGAIN}", best.choice)
        for _ in range(min(trials - len(done), CONFIRMATIONS))
    ]
    return replace(_judge(best.choice, done, again), untried=untried)


def _trial(name: str, choice: Choice, measure: Measure, number: int) -> Trial:
    """Make one trial; the order of both replays alternates. Raises ParioError if the original of
    the very first trial fails."""
    sides = [Choice(), choice] if number % 2 == 0 else [choice, Choice()]
    seconds: dict[Choice, float] = {}
    for side in sides:
        try:
            seconds[side] = measure(side)
        except ParioError as error:
            if number == 0 and side == Choice():
                raise
            return Trial(name, choice, 0.0, 0.0, failure=str(error))
    return Trial(name, choice, seconds[choice], seconds[Choice()])


def _explore(
    ways: list[Knob], trials: int, attempt: Callable[[str, Choice], Trial]
) -> tuple[Trial | None, tuple[str, ...]]:
    """Find the best of the first trials; a knob that helps stays set. The remaining trials try
    larger sizes, as long as these help. Also returns the names of the knobs for which no trial
    was left."""
    best: Trial | None = None
    tried: set[Choice] = {Choice()}
    untried: list[str] = []

    def better(name: str, choice: Choice) -> bool:
        """Try a choice, unless it was tried before or no trial is left; True if it is the best
        now."""
        nonlocal best
        if choice in tried:
            return False
        if len(tried) > trials:
            untried.append(name)
            return False
        tried.add(choice)
        trial = attempt(name, choice)
        if trial.ratio >= (1 - LEAST_GAIN) * (best.ratio if best else 1.0):
            return False
        best = trial
        return True

    for way in ways:
        better(way.name, best.choice.with_(way.choice) if best else way.choice)
    while best and better(f"{best.name.removesuffix(LARGER)}{LARGER}", best.choice.larger()):
        pass
    return best, tuple(name for name in untried if not name.endswith(LARGER))


def _nothing(done: list[Trial]) -> Tuning:
    why = (
        "no setting was faster"
        if any(not trial.failure for trial in done)
        else "no trial could be played"
    )
    return Tuning(
        Choice(), tuple(done), None, _originals(done), why if done else "there is nothing to set"
    )


def _originals(done: list[Trial]) -> Sample:
    return Sample(tuple(trial.original for trial in done if not trial.failure) or (0.0,))


def _judge(choice: Choice, done: list[Trial], again: list[Trial]) -> Tuning:
    """Judge a choice by the trials that confirm it: those by which it was chosen are biased in its
    favour."""
    original = _originals(done)
    if not again:
        return Tuning(
            Choice(), tuple(done), None, original, "one trial is not enough to be certain"
        )
    if failed := next((trial for trial in again if trial.failure), None):
        return Tuning(
            Choice(),
            tuple(done),
            None,
            original,
            f"the fastest setting failed in a later trial: {failed.failure}",
        )
    best = Sample(tuple(trial.seconds for trial in again))
    pairs = Pairs(best, Sample(tuple(trial.original for trial in again)))
    why = "" if pairs.pays else f"the fastest settings were {pairs.verdict}"
    return Tuning(Choice() if why else choice, tuple(done), best, original, why)


def measurement(
    script: Script,
    directory: Path,
    mpiexec: tuple[str, ...],
    pauses: bool,
    limits: Limits | None = None,
) -> Measure:
    """Return a function that measures replays on a file system; without ``limits``, their time is
    not limited."""
    from pario.prove.replay.perform import Manner, perform

    def measure(choice: Choice) -> float:
        begin = time.monotonic()
        limit = limits.now() if limits else inf
        found = perform(
            script,
            directory,
            Manner(pauses, choice.settings(), mpiexec, close_files=True, limit=limit),
        ).longest
        if limits and not choice.sections:
            limits.original_took(time.monotonic() - begin)
        return found

    return measure
