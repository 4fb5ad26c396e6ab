"""Find settings with which the recorded I/O of a run is faster on a file system: rules and knobs
propose, replays measure.

The settings are replayed beside the run as it is. Settings whose gain is within the noise are left
out.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_output, add_replays
from pario.cli.measured import describe, replay_remedies
from pario.cli.numbers import positive, seconds
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.tune.trials import Measurement
    from pario.see.analyze.model import Analysis
    from pario.see.tables.model import Job

#: The replays that are made if the user gives no number.
REPLAYS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario tune``."""
    _add_options(parser)
    parser.add_argument(
        "what",
        nargs=argparse.REMAINDER,
        metavar="LOG | -- COMMAND ...",
        help="run.pario or .darshan files, or a command to record",
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_replays(parser)
    add_output(parser, "FILE", "write the settings here (default: standard output)")
    add(
        "--trials",
        type=positive,
        default=REPLAYS,
        metavar="N",
        help=f"the most replays, those without settings included (default {REPLAYS})",
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


def _take_options_after_logs(arguments: argparse.Namespace) -> None:
    """Move the options behind the first log, which argparse leaves among the logs, to their
    places."""
    parser = argparse.ArgumentParser(prog="pario tune")
    _add_options(parser)
    parser.add_argument("what", nargs="*", metavar="LOG")
    parser.parse_args(arguments.what, arguments)


def run(arguments: argparse.Namespace) -> int:
    """Replays the settings, and writes the best."""
    from pario.cli.advise import expect_writable, hand_out
    from pario.prove.replay.perform import expect_scratch
    from pario.prove.tune.remedies import nothing_to_tune
    from pario.see.analyze import analyze

    if arguments.what[:1] != ["--"]:
        _take_options_after_logs(arguments)
    expect_scratch(arguments.on)
    expect_writable(arguments.output)
    with tempfile.TemporaryDirectory(prefix="pario-tune-") as place:
        job = _job(arguments.what, Path(place))
    analysis = analyze(job)
    why = nothing_to_tune(job, analysis)
    measured = None if why else _search(job, analysis, arguments)
    if measured and measured.remedies:
        _keep(job, arguments.on, measured)
    lines = [*(describe(measured) if measured else ()), conclude(measured, why)]
    hand_out(settings(job, arguments.on, measured, lines), arguments.output, lines)
    return 0


def _search(job: Job, analysis: Analysis, arguments: argparse.Namespace) -> Measurement:
    """Makes the replays. An interrupt is reported with their number; no settings are written
    then."""
    from pario.prove.replay.limits import Limits
    from pario.prove.tune.remedies import plan_tuning

    plan = plan_tuning(job, analysis, arguments.on, arguments.trials, pauses=arguments.think)
    limits, done = Limits(job.wall, arguments.limit), list[str]()

    def tell(name: str, result: float | ParioError) -> None:
        done.append(name)
        print_note(f"pario: {line(name, result)}")

    try:
        return replay_remedies(plan, limits, arguments.mpiexec, tell)
    except (KeyboardInterrupt, SystemExit) as end:
        print_note(
            f"pario: interrupted after {wording.plural(len(done), 'replay')}: no settings are"
            " written"
        )
        raise SystemExit(
            wording.INTERRUPTED if isinstance(end, KeyboardInterrupt) else end.code
        ) from None


def _keep(job: Job, directory: Path, measured: Measurement) -> None:
    """Keeps the result for the next tune of the same pattern."""
    from pario.prove.tune.choice import Choice
    from pario.prove.tune.history import keep_choice

    chosen = measured.chosen
    try:
        keep_choice(job, directory, chosen.remedy.choice if chosen else Choice())
    except (OSError, ParioError) as error:
        print_note(f"pario: the result is not kept: {error}")


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


def line(name: str, result: float | ParioError) -> str:
    """The result of a replay in one line."""
    if isinstance(result, ParioError):
        return f"{name}: failed, the others go on: {result}"
    return f"{name}: {wording.seconds(result)}"


def settings(job: Job, directory: Path, measured: Measurement | None, lines: Iterable[str]) -> str:
    """The text of the settings file."""
    from pario.settings import write

    head = [
        f"Written by pario tune from {job.source}, replayed on {directory.absolute()}:"
        f" {job.command}",
        *(line.removeprefix("pario: ") for line in lines),
    ]
    chosen = measured.chosen if measured else None
    return write(head, chosen.remedy.choice.proposals() if chosen else [])


def conclude(measured: Measurement | None, why: str = "") -> str:
    """The result in one line; ``why``: the reason why nothing was replayed."""
    count = wording.plural(measured.replays if measured else 0, "replay")
    if measured is None or measured.chosen is None:
        return f"pario: leave it as it is ({count}): {why or _find_reason(measured)}"
    found = measured.chosen.pairs
    best, original = found.seconds, found.original
    return (
        f"pario: {wording.seconds(best.median)} instead of {wording.seconds(original.median)},"
        f" {wording.share(1 - found.ratio)} less ({count}; between"
        f" {wording.seconds(min(best.values))} and {wording.seconds(max(best.values))}, as it was"
        f" {wording.seconds(min(original.values))} to {wording.seconds(max(original.values))})"
    )


def _find_reason(measured: Measurement | None) -> str:
    if measured is None or not measured.remedies:
        return "there was no replay with settings"
    fastest = measured.remedies[0]
    if fastest.failure:
        return "all replays with settings failed"
    return f"the fastest settings were {fastest.pairs.verdict}"
