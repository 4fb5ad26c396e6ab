"""The search: a trial is one replay with settings, beside one without; what is kept has to be better than noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pario.analyze.comparison import Sample
from pario.analyze.noise import noise
from pario.replay.script import Script
from pario.tables.model import Job
from pario.tune.choice import Choice
from pario.tune.knobs import Knob, knobs

#: What a setting has to gain, as a part of the original's seconds, and the trials that confirm the best one.
LEAST_GAIN, CONFIRMATIONS = 0.03, 3

#: Plays the script with settings; the seconds that it took.
Measure = Callable[[Choice], float]


@dataclass(frozen=True)
class Trial:
    """One replay with settings, and the one of the original beside it."""

    name: str
    choice: Choice
    seconds: float
    original: float

    @property
    def ratio(self) -> float:
        """Of the original's seconds."""
        return self.seconds / self.original if self.original else 1.0


@dataclass(frozen=True)
class Tuning:
    """What was found. An empty choice: leave it."""

    choice: Choice
    trials: tuple[Trial, ...]
    best: Sample | None  # seconds with the best settings; None: nothing was tried
    original: Sample  # in the same session
    why: str

    @property
    def gain(self) -> float:
        """Part of the original's seconds that the settings save."""
        return 1 - self.best.median / self.original.median if self.best and self.choice.sections else 0.0


def tune(job: Job, directory: Path, measure: Measure, trials: int, tell: Callable[[Trial], None]) -> Tuning:
    """Tries knobs one after the other, each on top of what has proved better, and then the best one again."""
    done: list[Trial] = []

    def attempt(name: str, choice: Choice) -> Trial:
        first = len(done) % 2 == 0  # which of both comes first changes from trial to trial
        before = measure(Choice()) if first else 0.0
        seconds = measure(choice)
        done.append(Trial(name, choice, seconds, before or measure(Choice())))
        tell(done[-1])
        return done[-1]

    exploring = max(trials - CONFIRMATIONS, 1)
    best = _explore(list(knobs(job, directory)), exploring, attempt)
    if best is None:
        return _nothing(done)
    again = [attempt(f"{best.name}, again", best.choice) for _ in range(min(trials - len(done), CONFIRMATIONS))]
    return _judge(best.choice, done, again)


def _explore(ways: list[Knob], trials: int, attempt: Callable[[str, Choice], Trial]) -> Trial | None:
    """The best of the first trials; a knob that helps stays turned."""
    best: Trial | None = None
    tried: set[Choice] = {Choice()}
    for way in ways:
        choice = best.choice.with_(way.choice) if best else way.choice
        if choice in tried or len(tried) > trials:
            continue
        tried.add(choice)
        trial = attempt(way.name, choice)
        if trial.ratio < (1 - LEAST_GAIN) * (best.ratio if best else 1.0):
            best = trial
    return best


def _nothing(done: list[Trial]) -> Tuning:
    original = Sample(tuple(trial.original for trial in done) or (0.0,))
    return Tuning(Choice(), tuple(done), None, original, "no setting was faster" if done else "there is nothing to set")


def _judge(choice: Choice, done: list[Trial], again: list[Trial]) -> Tuning:
    """By the trials that came after the choice: those by which it was chosen flatter it."""
    original = Sample(tuple(trial.original for trial in done))
    if not again:
        return Tuning(Choice(), tuple(done), None, original, "of one trial nothing is certain")
    best = Sample(tuple(trial.seconds for trial in again))
    certain = noise(best.values, original.values)
    why = ""
    if certain == "within" or (certain == "unknown" and max(best.values) >= min(original.values)):
        why = "the difference is within what replays differ anyhow"
    elif best.median > (1 - LEAST_GAIN) * original.median or max(best.values) > max(original.values):
        why = "no setting was faster each time"
    return Tuning(Choice() if why else choice, tuple(done), best, original, why)


def measurement(script: Script, directory: Path, mpiexec: tuple[str, ...], pauses: bool) -> Measure:
    """Replays on a file system."""
    from pario.replay.perform import Manner, perform

    def measure(choice: Choice) -> float:
        return perform(script, directory, Manner(pauses, choice.settings(), mpiexec)).longest

    return measure
