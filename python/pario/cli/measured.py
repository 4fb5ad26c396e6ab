"""Settings that were measured: replays of the recorded calls decide which ones pay, for ``pario
advise`` and ``pario tune``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_place
from pario.cli.numbers import seconds_or_none
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.replay.limits import Limits
    from pario.prove.tune.history import Setting
    from pario.prove.tune.trials import Measured, Measurement, Plan, Tell
    from pario.see.analyze.advise import Advice
    from pario.see.analyze.model import Analysis
    from pario.see.tables.model import Job

#: ``--measure``: its help, and its parsing by argparse.
MEASURE_HELP = (
    "the most time for replays that measure the settings (default 60; 0: none, the seconds are"
    " estimates)"
)
MEASURE: dict[str, Any] = {"type": seconds_or_none, "default": 60.0, "metavar": "SECONDS"}
#: The share of the seconds in I/O below which the calls that replays make are not all that matter.
MOSTLY = 0.9
#: The parsing of ``--allow``, with the keys of risky settings or without.
ALLOW: dict[str, Any] = {"nargs": "?", "const": "all", "default": "", "metavar": "KEY,..."}


def advise_by_replays(
    job: Job,
    analysis: Analysis,
    allowed: Collection[str],
    seconds: float,
    on: Path | None = None,
    mpiexec: str | None = None,
) -> tuple[Advice, list[str]]:
    """Advice whose settings were measured within ``seconds``, and the lines that say how. If the
    calls cannot be replayed, its seconds are estimates, and the lines say why.

    ``on``: a directory of the file system, by default that of the run's files; ``mpiexec``: the
    launcher of replays with ranks.
    """
    from pario.prove.replay import ReplayError
    from pario.prove.replay.limits import Limits
    from pario.prove.replay.perform import expect_scratch
    from pario.prove.tune.remedies import (
        NothingToMeasureError,
        advise_measured,
        find_directory,
        nothing_to_tune,
        plan_measurement,
    )
    from pario.see.analyze.advise import advise, mark_served, without_settings

    whole, settings, place = analysis, *_find_rejected(job, analysis, on)
    analysis, names = without_settings(analysis, settings)
    rejected = _name_rejected(names, place)
    estimated = advise(analysis, allowed)
    if not seconds or nothing_to_tune(job, analysis):
        return estimated, rejected
    try:
        directory = on or find_directory(analysis)
        expect_scratch(directory)
        plan = plan_measurement(job, analysis, directory, allowed, seconds)
        _announce(plan)
        with progress("pario: replaying"):
            measured = replay_remedies(plan, Limits(job.wall), mpiexec)
        if not measured.remedies:
            raise ReplayError("there was no time for a replay with settings (--measure)")
    except ParioError as error:
        if isinstance(error, NothingToMeasureError) and not estimated.acts:
            return estimated, rejected
        reason = f"pario: the seconds are estimates, not measured by replays: {error}"
        return estimated, [*rejected, reason]
    advice, again = mark_served(whole, advise_measured(analysis, measured, allowed), settings)
    rejected = _name_rejected([name for name in names if name not in again], place)
    if again:
        rejected.append(
            f"pario: chosen by replays, although an earlier run was not faster with it and others:"
            f" {', '.join(again)}"
        )
    return advice, [*rejected, *describe(measured), *_describe_left_out(analysis, measured)]


def _find_rejected(
    job: Job, analysis: Analysis, on: Path | None
) -> tuple[frozenset[Setting], Path | None]:
    """Return the settings with which an earlier run of the program was not faster, and the file
    that keeps them."""
    from pario.prove.replay import ReplayError
    from pario.prove.tune.history import find_rejected, rejections
    from pario.prove.tune.remedies import find_directory

    try:
        directory = on or find_directory(analysis)
    except ReplayError:
        return frozenset(), None
    settings = find_rejected(job, directory)
    return settings, rejections(job, directory) if settings else None


def _name_rejected(names: Collection[str], place: Path | None) -> list[str]:
    """Return a line on settings that are left out, which a file keeps."""
    if not names:
        return []
    return [
        f"pario: left out, because an earlier run was not faster with it: {', '.join(names)}"
        f" (to try again, remove {place})"
    ]


def replay_remedies(
    plan: Plan, limits: Limits, mpiexec: str | None, tell: Tell = lambda _, __: None
) -> Measurement:
    """Measure the remedies of a plan. Raises ParioError."""
    from pario.cli.replay import launcher_for
    from pario.prove.tune.trials import measure, player

    return measure(plan, player(plan, launcher_for(plan.script, mpiexec), limits), tell)


def add_measure(parser: argparse.ArgumentParser) -> None:
    """--measure, --on and --mpiexec: the time, the place and the launcher of replays."""
    parser.add_argument("--measure", help=MEASURE_HELP, **MEASURE)
    add_place(parser, None, "that of the run's files")


def _announce(plan: Plan) -> None:
    """Prints the limits of the replays, before they begin."""
    print_note(
        f"pario: measuring {wording.plural(len(plan.remedies), 'remedy', 'remedies')} by replays in"
        f" {plan.directory}: at most {wording.seconds(plan.seconds)} and"
        f" {wording.size(plan.size)}; none of the run's files is used (--measure 0: no replays)"
    )


def describe(measured: Measurement) -> Iterator[str]:
    """Yield the seconds as they are and with each remedy, the fastest first."""
    calls = (
        "all calls"
        if measured.share == 1
        else f"the first {wording.share(measured.share)} of the calls"
    )
    runs = len(measured.original.values)
    median = f", median of {runs}" if runs > 1 else ""
    yield f"pario: measured by replays of {calls}{median}:"
    original = wording.seconds(measured.original.median)
    yield f"  {original:>8}  as it is"
    for one in measured.remedies:
        time, beside = "failed", ""
        if one.ratio != inf:
            time, own = (
                wording.seconds(sample.median) for sample in (one.pairs.seconds, one.pairs.original)
            )
            beside = f" (as it is, in the same rounds: {own})" if own != original else ""
        yield f"  {time:>8}  {one.remedy.name}{beside}{_judgement(one, measured)}"
    if measured.untried:
        yield f"pario: not tried, for want of replays: {', '.join(measured.untried)}"


def _describe_left_out(analysis: Analysis, measured: Measurement) -> Iterator[str]:
    """Yield a line if calls that replays leave out took a good part of the time."""
    io = analysis.verdict.critical.io
    if measured.seconds < MOSTLY * io:
        yield (
            f"pario: replays make the calls that took {wording.seconds(measured.seconds)} of the"
            f" {wording.seconds(io)} that the run spent in I/O, and leave the others out"
        )


def _judgement(one: Measured, measured: Measurement) -> str:
    if one.failure:
        return f": {one.failure}"
    if one is measured.chosen:
        return ": set"
    if one.remedy.collective:
        return f" (a change of the program){'' if one.pays else f': {one.pairs.verdict}'}"
    chosen = measured.chosen
    kept = chosen is not None and not one.remedy.choice.without(chosen.remedy.choice).sections
    return "" if one.pays or kept else f": {one.pairs.verdict}, left out"
