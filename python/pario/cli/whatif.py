"""Predict the time of a recorded run on another machine, with other stripes, or on more ranks. A
model computes it; nothing runs.

Machines are text files; docs/model.md compares predictions with published figures and names the
errors of the model.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_flag, add_logs, add_plot, add_value, check_plot
from pario.cli.numbers import between, several
from pario.cli.paths import path_text
from pario.errors import ParioError
from pario.messages import print_json, print_lines, print_note
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.model.machine import Machine
    from pario.prove.model.whatif import Outcome, Use
    from pario.see.tables.model import Job

#: Type of numbers of ranks, stripes and aggregators. The limit is beyond all machines; the model
#: still answers within seconds.
_COUNT = between(1, 1_000_000)
_COUNTS = several(_COUNT)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario whatif``."""
    add_logs(parser, nargs="*")
    parser.add_argument(
        "--machine",
        type=path_text,
        metavar="NAME",
        help=(
            "a machine of --list, or a .toml file (default: the measured one of the run's file"
            " system, pario bench --calibrate; else the recorded times)"
        ),
    )
    add_value(parser, "--stripes", _COUNTS, "N,N,...", "stripes of its files (default 1)", (1,))
    parser.add_argument(
        "--aggregators",
        type=_COUNTS,
        default=(),
        metavar="N,N,...",
        help="aggregators of collective calls (default: chosen by pario)",
    )
    add_value(
        parser, "--ranks", _COUNT, "N", "divide the same work among N ranks (default: as recorded)"
    )
    add_flag(parser, "--list", "list the machines")
    add_flag(parser, "--tables", "print predicted beside published times, in Markdown")
    add_plot(parser, "draw seconds of I/O by stripes")
    add_flag(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    if arguments.list or arguments.tables:
        print_lines(_machines() if arguments.list else _page())
        return 0
    if not arguments.logs:
        raise ParioError("no log given; expected: pario whatif LOG --machine NAME")
    check_plot(arguments)
    from pario.prove.calibration import machine_of_run
    from pario.prove.model.machine import THIS, load
    from pario.see.tables import read

    machine = load(arguments.machine) if arguments.machine not in (None, THIS) else None
    with progress("pario: reading the logs"):
        job = read(arguments.logs)
    machine = machine or machine_of_run(job) or (load(THIS) if arguments.machine else None)
    if arguments.plot and machine is None:
        raise ParioError(f"--plot {arguments.plot}: expected a --machine")
    ranks = arguments.ranks or job.ranks
    outcomes, uses = predict(job, machine, arguments.stripes, ranks, arguments.aggregators)
    lines = list(describe(job, outcomes, machine, ranks))
    if machine:
        _note_stripes(machine, arguments.stripes)
    if arguments.plot:
        _plot(arguments.plot, outcomes, "\n".join(lines))
    if arguments.json:
        print_json(_document(outcomes, uses, machine, ranks))
    else:
        print_lines(lines)
    return 0


def _note_stripes(machine: Machine, stripes: tuple[int, ...]) -> None:
    """Prints the stripe counts that the machine cannot have."""
    targets = int(machine.values["targets"])
    if more := [wording.count(count) for count in stripes if count > targets]:
        print_note(
            f"pario whatif: --stripes {' and '.join(more)}: {machine.name} has"
            f" {wording.plural(targets, 'target')}; predicted with {targets} stripes"
        )


def _machines() -> Iterator[str]:
    from pario.prove.model.machine import load, names

    for name in names():
        machine = load(name)
        yield (
            f"{name:14} {machine.title}; {wording.plural(int(machine.values['targets']), 'target')}"
        )


def _page() -> Iterator[str]:
    from pario.prove.model.page import page

    return page()


def predict(
    job: Job,
    machine: Machine | None,
    stripes: tuple[int, ...],
    ranks: int,
    aggregators: tuple[int, ...] = (),
) -> tuple[list[Outcome], list[Use]]:
    """Predicts the run on ``ranks`` ranks: as recorded, then on the machine for each stripe count,
    with its own calls and, for shared files, collectively with each number of aggregators."""
    from pario.prove.model.whatif import Outcome, Way, outcome, scale_computation, uses_of
    from pario.see.analyze import analyze

    split = analyze(job).verdict.critical
    beside = scale_computation(split.wall - split.io, job.ranks, ranks)
    uses = [use.of_ranks(ranks / job.ranks) for use in uses_of(job)]
    requests, moved = sum(use.requests for use in uses), sum(use.bytes for use in uses)
    recorded = Outcome(0, "as it is", split.io, beside, "", requests=requests, bytes=moved)
    outcomes = [recorded]
    ways: list[tuple[Way, int]] = [("as it is", 0)]
    if any(use.sharers for use in uses):
        ways += [("collective", count) for count in aggregators or (0,)]
    if machine is not None:
        there = dict.fromkeys(min(count, int(machine.values["targets"])) for count in stripes)
        outcomes += [
            outcome(machine, uses, count, way, beside, by) for count in there for way, by in ways
        ]
    return outcomes, uses


def describe(
    job: Job, outcomes: list[Outcome], machine: Machine | None, ranks: int
) -> Iterator[str]:
    """Yields the table of predictions, and warnings."""
    where = f" on {machine.title}" if machine else ""
    program = wording.command(job.command, 60) or "the recorded run"
    yield (
        f"{program}{where}, {wording.plural(ranks, 'rank')} instead of {job.ranks}: predicted, not"
        " measured"
    )
    yield (
        f"{'stripes':>9}  {'way':16}  {'I/O':>8}  {'beside':>8}  {'run':>8}  {'I/O is':>6} "
        f" {'requests':>10}  {'bytes':>8}  {'hand-overs':>10}  limited by"
    )
    yield from map(_row, outcomes)
    yield from _list_lacks(outcomes)
    for warning in dict.fromkeys(text for found in outcomes for text in found.warnings):
        yield f"warning: {warning}"


def _row(found: Outcome) -> str:
    """The line of an outcome; seconds are unknown if the machine lacks costs."""
    io, run, share, bound = (
        ("unknown", "unknown", "", "")
        if found.lacks
        else (
            wording.seconds(found.io),
            wording.seconds(found.seconds),
            wording.percent(found.io, found.seconds),
            found.bound,
        )
    )
    stripes = str(found.stripes) if found.stripes else "as it was"
    handovers = "" if found.handovers is None else wording.count(found.handovers)
    return (
        f"{stripes:>9}  {_way(found):16}  {io:>8}  {wording.seconds(found.beside):>8}  {run:>8} "
        f" {share:>6}  {wording.count(found.requests):>10}  {wording.size(found.bytes):>8} "
        f" {handovers:>10}  {bound}"
    ).rstrip()


def _list_lacks(outcomes: list[Outcome]) -> Iterator[str]:
    """Yields the costs that the machine's description lacks, and the ways that they concern."""
    ways: dict[str, list[str]] = {}
    for found in outcomes:
        for text in found.lacks:
            ways.setdefault(text, []).append(_way(found))
    if ways:
        yield (
            "These ways cannot be compared, because the description of the machine lacks costs"
            " (docs/model.md, Machines):"
        )
    for text, concerned in ways.items():
        yield f"  {', '.join(dict.fromkeys(concerned))}: {text}"


def _way(found: Outcome) -> str:
    return f"{found.way} by {found.aggregators}" if found.aggregators else found.way


def _plot(path: Path, outcomes: list[Outcome], text: str) -> None:
    """Draws the seconds of I/O over stripes, a line for each way; ``text``: the caption."""
    from pario.see.report.lines import Axes, Panel
    from pario.see.report.picture import draw

    there = [found for found in outcomes if found.stripes and found.io > 0 and not found.lacks]
    lines = {
        way: [(float(found.stripes), found.io) for found in there if _way(found) == way]
        for way in dict.fromkeys(map(_way, there))
    }
    counts = [found.stripes for found in there]
    if counts and outcomes[0].io > 0:
        lines["as it was"] = [
            (float(count), outcomes[0].io) for count in sorted({min(counts), max(counts)})
        ]
    axes = Axes("stripes of a file", "seconds of I/O, predicted", wording.count, wording.seconds)
    draw(path, "pario whatif", [Panel("Seconds of I/O by stripes", lines)], axes, text)


def _document(
    outcomes: list[Outcome], uses: list[Use], machine: Machine | None, ranks: int
) -> dict[str, Any]:
    return {
        "machine": machine.name if machine else None,
        "ranks": ranks,
        "uses": [vars(use) for use in uses],
        "outcomes": [_outcome_document(found) for found in outcomes],
    }


def _outcome_document(found: Outcome) -> dict[str, Any]:
    """Seconds are null if the machine lacks costs."""
    times = {"io": None, "seconds": None} if found.lacks else {"seconds": found.seconds}
    return {**vars(found), **times}
