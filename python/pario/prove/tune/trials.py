"""Replays of remedies beside replays of the run as it is: the one measurement of ``pario advise``
and ``pario tune``.

    measured = measure(plan, play, tell)
    measured.chosen  # the fastest remedy that needs no change of the program; None: none pays
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pario import wording
from pario.errors import ParioError
from pario.prove.replay import ReplayError, Script
from pario.prove.replay.errors import LateError
from pario.prove.replay.limits import Limits
from pario.prove.tune.choice import Choice
from pario.prove.tune.pairs import LEAST_GAIN, UNCLEAR, Pairs
from pario.see.analyze.comparison import Sample
from pario.see.analyze.model import Finding
from pario.see.analyze.noise import LEAST_RUNS

#: The least seconds of a beginning whose measurement says something about the whole run.
LEAST_BEGINNING = 0.1
#: The most remedies that are measured again, and the most rounds after the first one.
FINALISTS, AGAIN = 3, LEAST_RUNS - 1
#: The most rounds after these for a remedy that saves this share, but not beyond noise.
UNDECIDED_ROUNDS, LIKELY_GAIN = 4, 0.1
#: The share of a limited number of replays that one round of confirmation takes.
ROUND_SHARE = 6

LARGER, JOINED = ", larger", "these settings together"


@dataclass(frozen=True, eq=False)
class Remedy:
    """Settings that may save time, with or without a change of the source."""

    name: str
    choice: Choice
    findings: tuple[Finding, ...] = ()  # those that the settings repair
    collective: bool = False  # the source makes its independent calls collective
    added: bool = False  # measured in addition to the fastest settings before it


@dataclass(frozen=True)
class Plan:
    """The replays of a measurement."""

    script: Script
    together: Script | None  # with collective calls
    directory: Path
    remedies: tuple[Remedy, ...]  # the most promising first
    seconds: float = inf  # of all replays
    replays: float = inf  # the most, those of the run as it is included
    cold: bool = False
    pauses: bool = False
    grow: bool = False  # try larger sizes of the fastest settings
    most_seconds: float = inf  # an original that takes longer says nothing about the run

    @property
    def size(self) -> int:
        """The bytes of the files of one replay, at most."""
        return self.script.size + self.script.written

    @property
    def confirming(self) -> int:
        """The replays that the first round leaves for further ones."""
        return 2 * int(min(AGAIN, self.replays // ROUND_SHARE))


@dataclass(frozen=True)
class Measured:
    """One remedy beside the replays without it."""

    remedy: Remedy
    pairs: Pairs
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Its seconds relative to those without it; infinite if it failed."""
        return inf if self.failure else self.pairs.ratio

    @property
    def pays(self) -> bool:
        """True if it is faster beyond noise."""
        return not self.failure and self.pairs.pays


@dataclass(frozen=True)
class Measurement:
    """The results: the seconds without remedies, and the remedies, the fastest first."""

    original: Sample
    remedies: tuple[Measured, ...]
    share: float = 1.0  # of the run's calls that were replayed
    untried: tuple[str, ...] = ()  # remedies for which no replay was left
    replays: int = 0  # in all
    seconds: float = inf  # of the run in all calls that replays make

    @property
    def chosen(self) -> Measured | None:
        """The fastest remedy that pays and needs no change of the program, among those that were
        measured as often as possible; None: there is none."""
        most = max((len(one.pairs.seconds.values) for one in self.remedies), default=0)
        for one in self.remedies:
            often = len(one.pairs.seconds.values) >= min(most, LEAST_RUNS)
            if one.pays and often and not one.remedy.collective:
                return one
        return None


#: Replays a script with settings; returns its seconds. The last argument is the limit in seconds.
Play = Callable[[Script, Choice, float], float]
#: Gets the name of each replay, and its seconds or its error.
Tell = Callable[[str, float | ParioError], None]


def measure(
    plan: Plan,
    play: Play,
    tell: Tell = lambda _, __: None,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Replay all remedies once, the settings that helped together, and then the fastest ones
    again, as long as the plan allows: on a busy machine more often. Raises ReplayError if the
    original cannot be replayed, or is a beginning too short to judge the run."""
    rounds = _Rounds(plan, play, tell, clock)
    rounds.play(rounds.explore())
    helped = [one.remedy for one in rounds.results() if one.ratio <= 1 - LEAST_GAIN]
    several = [one for one in reversed(helped) if not (one.added or one.collective)]
    if len(several) > 1 and rounds.note_settings(joined := _join(several)):
        rounds.play((joined,))
    for left in range(AGAIN, 0, -1):
        unclear = [one.remedy for one in rounds.results() if one.ratio <= 1 + UNCLEAR]
        if unclear:
            rounds.play(unclear[: max(min(FINALISTS, rounds.room // left - 1), 1)])
    for _ in range(UNDECIDED_ROUNDS):
        if (likely := _find_undecided(rounds.results())) and rounds.room >= 2:
            rounds.play((likely,))
    return Measurement(
        Sample(tuple(rounds.originals)),
        rounds.results(),
        plan.script.share,
        tuple(rounds.untried),
        rounds.count,
        plan.script.whole_seconds,
    )


def _find_undecided(measured: Sequence[Measured]) -> Remedy | None:
    """The fastest settings if they save time, but none do so beyond noise."""
    settings = [one for one in measured if not one.remedy.collective]
    if not settings or any(one.pays for one in settings):
        return None
    return settings[0].remedy if settings[0].ratio <= 1 - LIKELY_GAIN else None


def _join(remedies: Sequence[Remedy]) -> Remedy:
    """All remedies as one; of two settings of one key, the faster remedy's wins, which is last."""
    choice = Choice()
    for remedy in remedies:
        choice = choice.with_(remedy.choice)
    findings = tuple(finding for remedy in reversed(remedies) for finding in remedy.findings)
    return Remedy(JOINED, choice, findings)


class _Rounds:
    """Replays in rounds: the original, and remedies beside it; the order alternates."""

    def __init__(self, plan: Plan, play: Play, tell: Tell, clock: Callable[[], float]) -> None:
        self._plan, self._play, self._tell, self._clock = plan, play, tell, clock
        self._end, self._longest = clock() + plan.seconds, 0.0
        self._now: dict[Remedy | None, float] = {}  # the seconds of this round
        self._pairs: dict[Remedy, list[tuple[float, float]]] = {}
        self._failures: dict[Remedy, str] = {}
        self._tried = {(Choice(), False)}
        self.originals: list[float] = []
        self.untried: list[str] = []
        self.count = 0  # of all replays

    @property
    def room(self) -> int:
        """The number of replays that are left; a large number if there is no limit."""
        seconds = max(self._end - self._clock(), 0.0)
        in_time = seconds / self._longest if self._longest else inf
        return int(min(in_time, self._plan.replays - self.count, 1000))

    def note_settings(self, remedy: Remedy) -> bool:
        """Note the settings of a remedy as tried. Return False if they were tried before."""
        key, known = (remedy.choice, remedy.collective), len(self._tried)
        self._tried.add(key)
        return len(self._tried) > known

    def explore(self) -> Iterator[Remedy]:
        """Yield the remedies of the first round while it is played."""
        for remedy in self._plan.remedies:
            best = self._find_best()
            if remedy.added and best:
                remedy = replace(remedy, choice=best.choice.with_(remedy.choice))
            if self.note_settings(remedy):
                yield remedy
        while self._plan.grow and (best := self._find_best()):
            name = f"{best.name.removesuffix(LARGER)}{LARGER}"
            larger = replace(best, name=name, choice=best.choice.larger())
            if not self.note_settings(larger):
                return
            yield larger

    def _find_best(self) -> Remedy | None:
        """The fastest settings of this round so far; None: none helps."""
        best, least = None, self._now[None]
        for remedy, seconds in self._now.items():
            if remedy and not remedy.collective and seconds < (1 - LEAST_GAIN) * least:
                best, least = remedy, seconds
        return best

    def play(self, remedies: Iterable[Remedy]) -> None:
        """Play a round, as far as replays are left. Raises ParioError if the first original
        fails."""
        if self.originals and self.room < 2:
            return
        self._now = {}
        try:
            if len(self.originals) % 2 == 0:
                self._play_original()
                for remedy in remedies:
                    self._attempt(remedy)
            else:
                for remedy in reversed([*remedies]):
                    self._attempt(remedy)
                self._play_original()
        except LateError:
            if not self.originals:
                raise
            self._end = -inf  # the earlier rounds count
            return
        original = self._now.pop(None)
        self.originals.append(original)
        for one, seconds in self._now.items():
            assert one is not None
            self._pairs.setdefault(one, []).append((seconds, original))

    def _play_original(self) -> None:
        seconds = self._now[None] = self._time("as it is", self._plan.script, Choice())
        share, most = self._plan.script.share, self._plan.most_seconds
        if seconds > most:
            raise ReplayError(
                f"a replay took {wording.seconds(seconds)}, the same calls of the run"
                f" {wording.seconds(self._plan.script.seconds)}: other programs use this machine,"
                " or its files lie elsewhere"
            )
        if share < 1 and seconds < LEAST_BEGINNING:
            raise ReplayError(
                f"the space and the time for replays allow only the first {wording.share(share)} of"
                f" the calls, which take {wording.seconds(seconds)}: too little for a judgement"
                " (--measure, --on)"
            )

    def _attempt(self, remedy: Remedy) -> None:
        """Replay a remedy if enough replays are left: for the original of this round, or in the
        first round, after the first remedy, for those that confirm the best one."""
        confirming = self._plan.confirming if len(self._now) > 1 else 0
        reserved = int(None not in self._now) if self.originals else confirming
        if self.room < 1 + reserved:
            first = not self.originals and not remedy.name.endswith(LARGER)
            self.untried += [remedy.name] if first else []
            return
        script = self._plan.together if remedy.collective else self._plan.script
        assert script is not None  # a collective remedy exists only with its script
        try:
            self._now[remedy] = self._time(remedy.name, script, remedy.choice)
        except ParioError as error:
            self._failures[remedy] = str(error)
            self._tell(remedy.name, error)

    def _time(self, name: str, script: Script, choice: Choice) -> float:
        begin = self._clock()
        self.count += 1
        seconds = self._play(script, choice, max(self._end - begin, 1.0))
        self._longest = max(self._longest, self._clock() - begin)
        self._tell(name, seconds)
        return seconds

    def results(self) -> tuple[Measured, ...]:
        """All remedies that were played, the fastest first."""
        made = []
        for remedy in dict.fromkeys([*self._pairs, *self._failures]):
            pairs = self._pairs.get(remedy, [(0.0, 0.0)])
            seconds, original = (Sample(values) for values in zip(*pairs, strict=True))
            made.append(Measured(remedy, Pairs(seconds, original), self._failures.get(remedy, "")))
        return tuple(sorted(made, key=lambda one: one.ratio))


def player(plan: Plan, mpiexec: Sequence[str], limits: Limits) -> Play:
    """Return a function that replays on the plan's file system. The limit of a replay includes the
    creation of its files."""
    from pario.prove.replay.perform import Manner, prepare_scratch
    from pario.prove.replay.perform import play as play_prepared

    def play(script: Script, choice: Choice, limit: float) -> float:
        begin = time.monotonic()
        deadline = begin + min(limit, limits.now())
        try:
            with prepare_scratch(script, plan.directory, cold=plan.cold, deadline=deadline) as root:
                left = max(deadline - time.monotonic(), 0.0)
                manner = Manner(
                    plan.pauses, choice.settings(), mpiexec, close_files=True, limit=left
                )
                seconds = play_prepared(script, root, manner).longest
        except LateError as error:
            if limit > limits.now():
                raise
            raise LateError(
                f"a replay was not over after {wording.seconds(limit)} (--measure raises the limit)"
            ) from error
        if not choice.sections:
            limits.original_took(time.monotonic() - begin)
        return seconds

    return play
