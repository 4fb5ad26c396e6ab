"""Find settings with which the recorded I/O of a run is faster on a file system: rules and knobs
propose, replays measure.

Each trial is a replay with settings beside one without. Settings whose gain is within the noise are
left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_output, add_replays
from pario.cli.numbers import positive, seconds
from pario.errors import ParioError
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.tune import Trial, Tuning
    from pario.see.tables.model import Job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario tune``."""
    add = parser.add_argument
    add_replays(parser)
    add_output(parser, "FILE", "write the settings here (default: standard output)")
    add(
        "--trials",
        type=positive,
        default=8,
        metavar="N",
        help="the most replays with settings (default 8)",
    )
    add(
        "--limit",
        type=seconds,
        metavar="SECONDS",
        help=(
            "end replays that take longer (default: 5 times the slowest without settings, at least"
            " a minute)"
        ),
    )
    add(
        "what",
        nargs=argparse.REMAINDER,
        metavar="LOG | -- COMMAND ...",
        help="run.pario or .darshan files, or a command to record",
    )


def run(arguments: argparse.Namespace) -> int:
    """Makes the trials, and writes the settings."""
    from pario.cli.advise import expect_writable, hand_out
    from pario.prove.replay.perform import expect_scratch
    from pario.prove.tune import Tuning, nothing_to_tune

    expect_scratch(arguments.on)
    expect_writable(arguments.output)
    with tempfile.TemporaryDirectory(prefix="pario-tune-") as place:
        job = _job(arguments.what, Path(place))
    why = nothing_to_tune(job)
    tuning = Tuning.without_trials(why) if why else _search(job, arguments)
    _keep(job, arguments.on, tuning)
    hand_out(settings(job, arguments.on, tuning), arguments.output, describe(tuning))
    return 0


def _search(job: Job, arguments: argparse.Namespace) -> Tuning:
    """Makes the trials. An interrupt is reported with the number of trials; no settings are
    written then."""
    from pario.cli.replay import launcher_for
    from pario.prove.replay import script_of
    from pario.prove.replay.limits import Limits
    from pario.prove.tune import tune
    from pario.prove.tune.search import measurement

    script = script_of(job)
    limits = Limits(job.wall, arguments.limit)
    measure = measurement(
        script,
        arguments.on,
        tuple(launcher_for(script, arguments.mpiexec)),
        arguments.think,
        limits,
    )
    done: list[Trial] = []

    def tell(trial: Trial) -> None:
        done.append(trial)
        print(f"pario: {line(trial)}", file=sys.stderr)

    try:
        return tune(job, arguments.on, measure, arguments.trials, tell)
    except (KeyboardInterrupt, SystemExit) as end:
        print(
            f"pario: interrupted after {wording.plural(len(done), 'trial')}: no settings are"
            " written",
            file=sys.stderr,
        )
        raise SystemExit(130 if isinstance(end, KeyboardInterrupt) else end.code) from None


def _keep(job: Job, directory: Path, tuning: Tuning) -> None:
    """Keeps the result for the next tune of the same pattern."""
    from pario.prove.tune.history import keep_choice

    if not tuning.trials:
        return
    try:
        keep_choice(job, directory, tuning.choice)
    except OSError as error:
        print(f"pario: the result is not kept: {error}", file=sys.stderr)


def _job(words: list[str], place: Path) -> Job:
    """The job of the logs, or of a run of the command in ``place``."""
    from pario.see.launch import Settings, launch
    from pario.see.tables import read

    if not words or words == ["--"]:
        raise ParioError(
            "no log and no command given; expected: pario tune [options] LOG, or pario tune"
            " [options] -- COMMAND"
        )
    if words[0] != "--":
        with progress("pario: reading the logs"):
            return read([Path(word) for word in words])
    outcome = launch(words[1:], Settings(output=place / "log"))
    if outcome.ending.status:
        raise ParioError(
            f"the command failed, {wording.exit_status(outcome.ending.status)}: there is nothing"
            " to tune"
        )
    return read([place / "log"])


def line(trial: Trial) -> str:
    """The result of a trial in one line."""
    if trial.failure:
        return f"{trial.name}: failed, the others go on: {trial.failure}"
    return (
        f"{trial.name}: {wording.seconds(trial.seconds)} instead of"
        f" {wording.seconds(trial.original)}"
    )


def settings(job: Job, directory: Path, tuning: Tuning) -> str:
    """The text of the settings file."""
    from pario.settings import write

    head = [
        f"Written by pario tune from {job.source}, replayed on {directory.absolute()}:"
        f" {job.command}"
    ]
    head += list(describe(tuning))
    return write([line.removeprefix("pario: ") for line in head], tuning.choice.proposals())


def describe(tuning: Tuning) -> Iterator[str]:
    """Yields the result of the search, and the settings that were not tried."""
    yield _result(tuning)
    if tuning.untried:
        yield (
            f"pario: not tried, for want of trials: {', '.join(tuning.untried)} (--trials"
            f" {tuning.enough_trials} tries all)"
        )


def _result(tuning: Tuning) -> str:
    count = wording.plural(len(tuning.trials), "trial")
    if not tuning.choice.sections or tuning.best is None:
        return f"pario: leave it as it is ({count}): {tuning.why}"
    best, original = tuning.best, tuning.original
    return (
        f"pario: {wording.seconds(best.median)} instead of {wording.seconds(original.median)},"
        f" {wording.share(tuning.gain)} less ({count}; between {wording.seconds(min(best.values))}"
        f" and {wording.seconds(max(best.values))}, as it was"
        f" {wording.seconds(min(original.values))} to {wording.seconds(max(original.values))})"
    )
