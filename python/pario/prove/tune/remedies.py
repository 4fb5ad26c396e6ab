"""Measures the remedies of a run's findings before anything is promised: the recorded calls are
replayed with each remedy, beside replays without.

    plan = plan_measurement(job, analysis, directory, allowed)  # what will be replayed, and where
    measured = measure(plan, player(plan, mpiexec), tell)
    measured.chosen  # the fastest remedy that needs no change of the program; None: none pays
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pario import wording
from pario.errors import ParioError
from pario.prove.replay import ReplayError, Script, script_of
from pario.prove.replay.beginning import Beginning
from pario.prove.replay.errors import LateError
from pario.prove.replay.script import AS_POSIX
from pario.prove.replay.together import make_collective
from pario.prove.tune.choice import MPIIO_ON, Choice
from pario.prove.tune.pairs import LEAST_GAIN, UNCLEAR, Pairs
from pario.see.analyze.advise import Advice, advise
from pario.see.analyze.comparison import Sample
from pario.see.analyze.model import Analysis, Finding
from pario.see.analyze.noise import LEAST_RUNS
from pario.see.tables.model import LAYERS, Job

#: The seconds that all replays may take together, the seconds of calls in one of them, and the
#: share of the free space that the files of the run may take, and the bytes that one writes.
SECONDS, SECONDS_EACH, SPACE = 60.0, 4.0, 0.05
#: The least seconds of a beginning whose measurement says something about the whole run.
LEAST_BEGINNING = 0.1
#: Replays that take more than this many times the seconds of the run say nothing about it.
BUSY = 4.0
#: The most findings whose remedies are tried alone, and the remedies that are measured again.
MOST, FINALISTS = 4, 3
#: The replays that the first round leaves for further ones.
CONFIRMING = 2 * (LEAST_RUNS - 1)
#: Settings whose calls a replay leaves out.
_NOT_PLAYED = {("streams", "map_ahead")}

MPIIO, TOGETHER = "pario's MPI-IO", "collective calls on pario's MPI-IO"


class NothingToMeasureError(ParioError):
    """No replay can measure any of the remedies."""


@dataclass(frozen=True, eq=False)
class Remedy:
    """Settings that repair some findings, with or without a change of the source."""

    name: str
    choice: Choice
    findings: tuple[Finding, ...] = ()
    collective: bool = False  # the source makes its independent calls collective


@dataclass(frozen=True)
class Plan:
    """The replays of a measurement."""

    script: Script
    together: Script | None  # with collective calls
    directory: Path
    remedies: tuple[Remedy, ...]
    seconds: float  # of all replays
    cold: bool

    @property
    def size(self) -> int:
        """The bytes of the files of one replay, at most."""
        return self.script.size + self.script.written


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

    @property
    def chosen(self) -> Measured | None:
        """The fastest remedy that pays and needs no change of the program; None: there is none."""
        return next((one for one in self.remedies if one.pays and not one.remedy.collective), None)


#: Replays a script with settings; returns its seconds. The last argument is the limit in seconds.
Play = Callable[[Script, Choice, float], float]


def plan_measurement(
    job: Job,
    analysis: Analysis,
    directory: Path,
    allowed: Collection[str] = (),
    seconds: float = SECONDS,
) -> Plan:
    """Plan the replays of a run. Raises ReplayError if its calls cannot be replayed, and
    NothingToMeasureError if no remedy can be measured."""
    space = _find_space(directory)
    script = script_of(job, beginning=Beginning(min(SECONDS_EACH, seconds / 8), space))
    if script.size > space:
        raise ReplayError(
            f"{directory} has too little space for a replay: its files need"
            f" {wording.size(script.size)}, {wording.share(SPACE)} of the free space are"
            f" {wording.size(space)}"
        )
    together = make_collective(script) if script.plays_mpiio else None
    remedies = tuple(_remedies(job, analysis, allowed, script, together))
    if not remedies:
        why_not = script.mpiio.removeprefix(AS_POSIX)
        raise NothingToMeasureError(
            f"MPI-IO calls cannot be replayed as such: {why_not}"
            if why_not != script.mpiio
            else "replays leave out the calls that the settings change"
        )
    return Plan(script, together, directory, remedies, seconds, analysis.cold)


def _find_space(directory: Path) -> float:
    """The bytes that the files of a replay may take, and those that it may write; infinite if the
    file system has no size (a CephFS without statistics). Raises ReplayError if it is full."""
    usage = shutil.disk_usage(directory) if directory.is_dir() else None
    if usage is None or not usage.total:
        return inf
    if not usage.free:
        raise ReplayError(f"{directory} has no free space for a replay")
    return SPACE * usage.free


def _remedies(
    job: Job,
    analysis: Analysis,
    allowed: Collection[str],
    script: Script,
    together: Script | None,
) -> Iterator[Remedy]:
    tried: set[Choice] = {Choice()}
    for finding in analysis.findings:
        choice = choice_for(analysis, (finding,), allowed)
        tables = {table for table, _ in choice.keys}
        played = script.plays_mpiio or not tables & {"run", "mpiio"}
        if choice in tried or not played or choice.keys & _NOT_PLAYED or len(tried) > MOST:
            continue
        tried.add(choice)
        yield Remedy(_name(finding, choice), choice, (finding,))
    own = dict(analysis.job.settings).get("PARIO_MPIIO", "")
    upper = job.records["layer"] == LAYERS.index("mpiio")
    if script.plays_mpiio and not own and upper.any() and MPIIO_ON not in tried:
        yield Remedy(MPIIO, MPIIO_ON)
    if together:
        yield Remedy(TOGETHER, MPIIO_ON, collective=True)


def choice_for(analysis: Analysis, findings: Sequence[Finding], allowed: Collection[str]) -> Choice:
    """The applied settings of some findings."""
    advice = advise(replace(analysis, findings=tuple(findings)), allowed)
    return Choice.of_proposals(advice.proposals)


def _name(finding: Finding, choice: Choice) -> str:
    """The settings as pario.toml names them, and their files."""
    keys = dict.fromkeys(
        MPIIO if (table, key) == ("run", "mpiio") else f"{table}.{key}={value}"
        for _, of in choice.sections
        for table, key, value in of
    )
    more = f" and {finding.file_count - 1} more" if finding.file_count > 1 else ""
    files = f" for {wording.name(finding.files[0])}{more}" if finding.files else ""
    return f"{', '.join(keys)}{files}"


def measure(
    plan: Plan,
    play: Play,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Replay all remedies once, the settings that helped together, and then the fastest ones
    again, as long as the seconds of the plan allow. Raises ReplayError if the original cannot be
    replayed, or is a beginning too short to judge the run. ``tell`` is called with the name of each
    replay."""
    rounds = _Rounds(plan, play, tell, clock)
    rounds.play(plan.remedies)
    helped = [one for one in rounds.results() if one.ratio <= 1 - LEAST_GAIN]
    several = [one.remedy for one in reversed(helped) if not one.remedy.collective]
    joined = _join(several) if len(several) > 1 else None
    if joined and joined.choice not in {one.choice for one in several}:
        rounds.play((joined,))
    for _ in range(LEAST_RUNS - 1):
        unclear = [one.remedy for one in rounds.results() if one.ratio <= 1 + UNCLEAR]
        if unclear:
            rounds.play(unclear[:FINALISTS])
    return Measurement(Sample(tuple(rounds.originals)), rounds.results(), plan.script.share)


def _join(remedies: Sequence[Remedy]) -> Remedy:
    """All remedies as one; of two settings of one key, the faster remedy's wins, which is last."""
    choice = Choice()
    for remedy in remedies:
        choice = choice.with_(remedy.choice)
    findings = tuple(finding for remedy in reversed(remedies) for finding in remedy.findings)
    return Remedy("these settings together", choice, findings)


class _Rounds:
    """Replays in rounds: the original, and remedies beside it; the order alternates."""

    def __init__(
        self, plan: Plan, play: Play, tell: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._plan, self._play, self._tell, self._clock = plan, play, tell, clock
        self._end = clock() + plan.seconds
        self._longest = 0.0
        self._pairs: dict[Remedy, list[tuple[float, float]]] = {}
        self._failures: dict[Remedy, str] = {}
        self.originals: list[float] = []

    def play(self, remedies: Sequence[Remedy]) -> None:
        """Play a round, as far as time is left. Raises ParioError if the first original fails."""
        if self.originals and not self._has_time(2):
            return
        try:
            self._play_round(remedies)
        except LateError:
            if not self.originals:
                raise
            self._end = -inf  # the earlier rounds count

    def _play_round(self, remedies: Sequence[Remedy]) -> None:
        sides = [None, *remedies]
        found: dict[Remedy | None, float] = {}
        for side in sides if len(self.originals) % 2 == 0 else reversed(sides):
            if side is None:
                found[None] = self._time("as it is", self._plan.script, Choice())
                self._expect_enough(found[None])
            elif self._has_time(1 + self._count_reserved(found)):
                self._attempt(side, found)
        original = found.pop(None)
        self.originals.append(original)
        for remedy, seconds in found.items():
            assert remedy is not None
            self._pairs.setdefault(remedy, []).append((seconds, original))

    def _expect_enough(self, seconds: float) -> None:
        share, recorded = self._plan.script.share, self._plan.script.seconds
        if recorded and seconds > BUSY * recorded + LEAST_BEGINNING:
            raise ReplayError(
                f"a replay took {wording.seconds(seconds)}, the same calls of the run"
                f" {wording.seconds(recorded)}: other programs use this machine, or its files lie"
                " elsewhere"
            )
        if share < 1 and seconds < LEAST_BEGINNING:
            raise ReplayError(
                f"the space and the time for replays allow only the first {wording.share(share)} of"
                f" the calls, which take {wording.seconds(seconds)}: too little for a judgement"
                " (--measure, --on)"
            )

    def results(self) -> tuple[Measured, ...]:
        """All remedies that were played, the fastest first."""
        made = []
        for remedy in dict.fromkeys([*self._pairs, *self._failures]):
            pairs = self._pairs.get(remedy, [(0.0, 0.0)])
            seconds, original = (Sample(values) for values in zip(*pairs, strict=True))
            made.append(Measured(remedy, Pairs(seconds, original), self._failures.get(remedy, "")))
        return tuple(sorted(made, key=lambda one: one.ratio))

    def _attempt(self, remedy: Remedy, found: dict[Remedy | None, float]) -> None:
        script = self._plan.together if remedy.collective else self._plan.script
        assert script is not None  # a collective remedy exists only with its script
        try:
            found[remedy] = self._time(remedy.name, script, remedy.choice)
        except ParioError as error:
            self._failures[remedy] = str(error)

    def _count_reserved(self, found: Collection[Remedy | None]) -> int:
        """The number of replays that must remain possible: the original of this round; in the first
        round, after the first remedy, the replays that confirm the best remedy."""
        if self.originals:
            return int(None not in found)
        return CONFIRMING if len(found) > 1 else 0

    def _has_time(self, replays: int) -> bool:
        return self._clock() + replays * self._longest <= self._end

    def _time(self, name: str, script: Script, choice: Choice) -> float:
        self._tell(name)
        begin = self._clock()
        seconds = self._play(script, choice, max(self._end - begin, 1.0))
        self._longest = max(self._longest, self._clock() - begin)
        return seconds


def player(plan: Plan, mpiexec: Sequence[str]) -> Play:
    """Return a function that replays on the plan's file system. The limit of a replay includes the
    creation of its files."""
    from pario.prove.replay.perform import Manner, prepare_scratch
    from pario.prove.replay.perform import play as play_prepared

    def play(script: Script, choice: Choice, limit: float) -> float:
        deadline = time.monotonic() + limit
        try:
            with prepare_scratch(script, plan.directory, cold=plan.cold, deadline=deadline) as root:
                manner = Manner(
                    settings=choice.settings(),
                    mpiexec=mpiexec,
                    close_files=True,
                    limit=max(deadline - time.monotonic(), 0.0),
                )
                return play_prepared(script, root, manner).longest
        except LateError as error:
            raise LateError(
                f"a replay was not over after {wording.seconds(limit)} (--measure raises the limit)"
            ) from error

    return play


def find_directory(analysis: Analysis) -> Path:
    """The directory of the replays: that of the file with most seconds whose directory exists and
    may be written, or its parent, which is on the same file system, if the directory was removed.
    Raises ReplayError if there is none."""
    for row in analysis.files:
        if row.stream or row.group:
            continue
        place = Path(row.path).parent
        for one in (place, *place.parents[:-1][:1]):  # not the root directory
            # is_dir() raises an error for a name that access() rejects.
            if os.access(one, os.W_OK | os.X_OK) and one.is_dir():
                return one
    raise ReplayError("the directories of the run's files do not exist here or cannot be written")


def advise_measured(
    analysis: Analysis, measurement: Measurement, allowed: Collection[str] = ()
) -> Advice:
    """Propose the settings of the chosen remedy. Findings that were measured have the seconds of
    the measurement; those whose settings do not pay have none."""
    chosen = measurement.chosen
    alone = {
        one.remedy.findings[0].title: one
        for one in measurement.remedies
        if len(one.remedy.findings) == 1 and not one.remedy.collective
    }
    kept = {finding.title for finding in chosen.remedy.findings} if chosen else set()
    io = analysis.verdict.critical.io
    together = _find_share_together(chosen, alone)
    findings = tuple(
        _set_seconds(finding, alone[finding.title], together * io, kept=finding.title in kept)
        if finding.title in alone
        else finding
        for finding in analysis.findings
    )
    advice = advise(replace(analysis, findings=findings), allowed)
    if chosen is None or chosen.remedy.choice == Choice.of_proposals(advice.proposals):
        return advice
    own = chosen.remedy.choice.without(Choice.of_proposals(advice.proposals))
    reason = f"{chosen.remedy.name}: measured by replays, {_figures(chosen)}."
    return replace(advice, proposals=(*own.proposals((reason,)), *advice.proposals))


def _find_share_together(chosen: Measured | None, alone: Mapping[str, Measured]) -> float:
    """The gain of the chosen remedy relative to the sum of the gains of its settings alone, which
    overlap."""
    if chosen is None or len(chosen.remedy.findings) < 2:
        return 1.0
    gains = [max(1 - alone[finding.title].ratio, 0.0) for finding in chosen.remedy.findings]
    return max(1 - chosen.ratio, 0.0) / sum(gains) if sum(gains) else 1.0


def _set_seconds(finding: Finding, found: Measured, io: float, *, kept: bool) -> Finding:
    """A finding with the seconds that its remedy saved in replays, in proportion to the run, whose
    seconds in I/O are ``io``."""
    if found.failure:
        return finding
    method = f"{finding.method} Measured by replays: {_figures(found)}."
    if kept:
        saved = max(1 - found.ratio, 0.0) * io
        if not saved:
            return replace(finding, method=method)
        least, most = (max(1 - ratio, 0.0) * io for ratio in found.pairs.range)
        return replace(finding, seconds=saved, method=method, measured=True, least=least, most=most)
    return replace(
        finding,
        settings=(),
        method=method,
        why_not=f"replays with {found.remedy.name} were {found.pairs.verdict}: {_figures(found)}",
    )


def _figures(found: Measured) -> str:
    return (
        f"{wording.seconds(found.pairs.seconds.median)} instead of"
        f" {wording.seconds(found.pairs.original.median)}"
    )
