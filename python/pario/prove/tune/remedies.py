"""The remedies of a run's findings, measured by replays before anything is promised, and the advice
that follows.

    plan = plan_measurement(job, analysis, directory, allowed)  # the replays, and their directory
    measured = measure(plan, player(plan, mpiexec, limits), tell)
    advise_measured(analysis, measured, allowed)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

from pario import wording
from pario.errors import ParioError
from pario.prove.replay import ReplayError, Script, script_of
from pario.prove.replay.beginning import Beginning
from pario.prove.replay.script import AS_POSIX
from pario.prove.replay.together import make_collective
from pario.prove.tune.choice import MPIIO_ON, Choice
from pario.prove.tune.history import last_choice
from pario.prove.tune.knobs import LAST, knobs
from pario.prove.tune.trials import JOINED, LEAST_BEGINNING, Measured, Measurement, Plan, Remedy
from pario.see.analyze.advise import OUTDONE, Advice, advise, applies, list_settings
from pario.see.analyze.model import Analysis, Finding
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, Job
from pario.settings import Proposal

#: The least I/O that is worth replays, as a share of the run and in seconds.
LEAST_SHARE, LEAST_SECONDS = 0.02, 0.01
#: The counters of calls that settings can affect.
CALLS = ("opens", "closes", "reads", "writes", "seeks", "syncs", "flushes")
#: The seconds that all replays may take together, the seconds of calls in one of them, and the
#: share of the free space that the files of the run may take, and the bytes that one writes.
SECONDS, SECONDS_EACH, SPACE = 60.0, 4.0, 0.05
#: Replays that take more than this many times the seconds of the run say nothing about it.
BUSY = 4.0
#: The most choices of findings that are tried alone.
MOST = 4
#: Settings whose calls a replay leaves out.
_NOT_PLAYED = {("streams", "map_ahead"), ("run", "cached_trees"), ("run", "loader_ahead")}

MPIIO, TOGETHER = "pario's MPI-IO", "collective calls on pario's MPI-IO"


class NothingToMeasureError(ParioError):
    """No replay can measure any of the remedies."""


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
    earlier = last_choice(job, directory)
    if earlier and earlier not in {one.choice for one in remedies}:
        remedies = (Remedy(LAST, earlier), *remedies)
    if not remedies:
        why_not = script.mpiio.removeprefix(AS_POSIX)
        raise NothingToMeasureError(
            f"MPI-IO calls cannot be replayed as such: {why_not}"
            if why_not != script.mpiio
            else "replays leave out the calls that the settings change"
        )
    most = BUSY * script.seconds + LEAST_BEGINNING if script.seconds else inf
    cold = analysis.cold
    return Plan(script, together, directory, remedies, seconds, cold=cold, most_seconds=most)


def plan_tuning(
    job: Job, analysis: Analysis, directory: Path, replays: int, *, pauses: bool = False
) -> Plan:
    """Plan at most ``replays`` replays of a whole run. Raises ReplayError if its calls cannot be
    replayed."""
    return Plan(
        script_of(job),
        None,
        directory,
        tuple(knobs(job, analysis, directory)),
        replays=replays,
        cold=analysis.cold,
        pauses=pauses,
        grow=True,
    )


def nothing_to_tune(job: Job, analysis: Analysis) -> str:
    """The reason why no replay is needed; empty if the run's I/O is worth replays."""
    times = Times(job)
    stored = times.job.records[times.storage[times.job.records["file"]]]
    if not sum(int(stored[name].sum()) for name in CALLS):
        return (
            f"the run of {wording.seconds(times.wall)} made no I/O calls to files: there is nothing"
            " to tune"
        )
    critical = analysis.verdict.critical
    if critical.io < LEAST_SHARE * critical.wall:
        return f"{analysis.verdict.sentence.rstrip('.')}; there is nothing to tune"
    if critical.io < LEAST_SECONDS:
        return (
            f"all I/O takes {wording.seconds(critical.io)}, too little to compare: there is"
            " nothing to tune"
        )
    return ""


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
    repairs = list_repairs(analysis, allowed, mpiio=script.plays_mpiio)
    yield from repairs
    own = dict(analysis.job.settings).get("PARIO_MPIIO", "")
    upper = job.records["layer"] == LAYERS.index("mpiio")
    known = any(repair.choice == MPIIO_ON for repair in repairs)
    if script.plays_mpiio and not own and upper.any() and not known:
        yield Remedy(MPIIO, MPIIO_ON)
    if together:
        yield Remedy(TOGETHER, MPIIO_ON, collective=True)


def list_repairs(
    analysis: Analysis, allowed: Collection[str] = (), *, mpiio: bool = True
) -> tuple[Remedy, ...]:
    """List the remedies of the first findings that a replay can measure; findings with the same
    settings share a remedy. ``mpiio``: replays make MPI-IO calls."""
    found: dict[Choice, list[Finding]] = {}
    for finding in analysis.findings:
        choice = choice_for(analysis, finding, allowed)
        tables = {table for table, _ in choice.keys}
        played = (mpiio or not tables & {"run", "mpiio"}) and not choice.keys & _NOT_PLAYED
        if choice.sections and played and (choice in found or len(found) < MOST):
            found.setdefault(choice, []).append(finding)
    return tuple(
        Remedy(_name(findings[0], choice), choice, tuple(findings))
        for choice, findings in found.items()
    )


def choice_for(analysis: Analysis, finding: Finding, allowed: Collection[str]) -> Choice:
    """The applied settings of a finding."""
    made = Choice()
    for match, one in list_settings(analysis, finding):
        if applies(one, allowed):
            made = Choice.of(match, (one.table, one.key, one.value)).with_(made)
    return made


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


def find_directory(analysis: Analysis) -> Path:
    """The directory of the replays: that of the file with most seconds whose directory may be
    written, or its parent; of a removed directory, the nearest one above that exists. Raises
    ReplayError if there is none."""
    for row in analysis.files:
        if row.stream or row.group:
            continue
        place = Path(row.path).parent
        *above, root = place, *place.parents
        there = next((one for one in above if os.access(one, os.F_OK)), root)
        for one in (there, *there.parents[:1]):
            if one == root:
                continue
            # is_dir() raises an error for a name that access() rejects.
            if os.access(one, os.W_OK | os.X_OK) and one.is_dir():
                return one
    raise ReplayError("the directories of the run's files do not exist here or cannot be written")


def advise_measured(
    analysis: Analysis, measurement: Measurement, allowed: Collection[str] = ()
) -> Advice:
    """Propose the settings of the chosen remedy. Findings that were measured have the seconds of
    the measurement; those whose settings do not pay have none. Of findings with further settings,
    without which the chosen remedy is faster, the chosen settings stay."""
    chosen = measurement.chosen
    alone = {
        finding.title: one
        for one in measurement.remedies
        if one.remedy.name != JOINED
        for finding in one.remedy.findings
    }
    if chosen and not chosen.remedy.findings:
        analysis, chosen, served = _adopt_findings(analysis, chosen, alone)
        alone |= served
    kept = {finding.title for finding in chosen.remedy.findings} if chosen else set()
    # Settings save nothing in calls that replays leave out.
    io = min(analysis.verdict.critical.io, measurement.seconds)
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
    others = [_drop_lines(proposal, own) for proposal in advice.proposals]
    left = [proposal for proposal in others if proposal.lines]
    return replace(advice, proposals=(*own.proposals((reason,)), *left))


def _adopt_findings(
    analysis: Analysis, chosen: Measured, alone: Mapping[str, Measured]
) -> tuple[Analysis, Measured, dict[str, Measured]]:
    """The analysis and the chosen remedy, which no finding proposes, with the findings whose own
    settings include all of its settings; and the chosen remedy by their titles."""
    choice = chosen.remedy.choice
    titles = {title for title, one in alone.items() if not choice.without(one.remedy.choice).keys}
    findings = tuple(
        replace(
            finding,
            settings=tuple(one for one in finding.settings if (one.table, one.key) in choice.keys),
        )
        if finding.title in titles
        else finding
        for finding in analysis.findings
    )
    adopted = tuple(finding for finding in findings if finding.title in titles)
    found = replace(chosen, remedy=replace(chosen.remedy, findings=adopted))
    return replace(analysis, findings=findings), found, dict.fromkeys(titles, found)


def _drop_lines(proposal: Proposal, choice: Choice) -> Proposal:
    """A proposal without the lines whose keys have other values in a choice."""
    keys = {
        (table, key)
        for match, settings in choice.sections
        if match == proposal.match
        for table, key, _ in settings
    }
    kept = tuple(line for line in proposal.lines if (line.table, line.key) not in keys)
    return replace(proposal, lines=kept)


def _find_share_together(chosen: Measured | None, alone: Mapping[str, Measured]) -> float:
    """The gain of the chosen remedy relative to the sum of the gains of its settings alone, which
    overlap."""
    if chosen is None or len(chosen.remedy.findings) < 2:
        return 1.0
    gains = [max(1 - alone[finding.title].ratio, 0.0) for finding in chosen.remedy.findings]
    return max(1 - chosen.ratio, 0.0) / sum(gains) if sum(gains) else 1.0


def _set_seconds(finding: Finding, found: Measured, io: float, *, kept: bool) -> Finding:
    """A finding with the seconds that its remedy saved in replays, in proportion to the run, whose
    seconds in the replayed calls are ``io``."""
    if found.failure:
        why_not = f"a replay with {found.remedy.name} failed: {found.failure}"
        return replace(finding, settings=(), why_not=why_not)
    method = f"{finding.method} Measured by replays: {_figures(found)}."
    if kept:
        saved = max(1 - found.ratio, 0.0) * io
        if not saved:
            return replace(finding, method=method)
        least, most = (max(1 - ratio, 0.0) * io for ratio in found.pairs.range)
        return replace(finding, seconds=saved, method=method, measured=True, least=least, most=most)
    why_not = f"replays with {found.remedy.name} were {found.pairs.verdict}: {_figures(found)}"
    if found.pays:
        why_not = f"replays with {found.remedy.name} ({_figures(found)}) were {OUTDONE}"
    return replace(finding, settings=(), method=method, why_not=why_not)


def _figures(found: Measured) -> str:
    return (
        f"{wording.seconds(found.pairs.seconds.median)} instead of"
        f" {wording.seconds(found.pairs.original.median)}"
    )
