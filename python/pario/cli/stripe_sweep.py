"""``pario stripe sweep``: measures a pattern with each stripe count and stripe size of a file
system, and keeps the result for advice."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_action, add_count, add_flag, add_plot, add_value, check_plot
from pario.cli.numbers import between, positive, positive_size, seconds, several
from pario.cli.paths import path, require_directory
from pario.errors import ParioError
from pario.messages import print_json, print_line, print_lines, print_note
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.model.machine import Machine
    from pario.prove.sweep import Pattern, Progress
    from pario.see.analyze.sweeps import Point, Sweep
    from pario.see.report.table import Column

HELP = "measure a file system with each stripe count and stripe size, and keep the best for advice"
#: The default pattern and stripe sizes.
RANKS, SIZE, UNITS = 4, 64 << 20, (1 << 20, 4 << 20, 16 << 20)


def add_arguments(actions: Any) -> None:
    """The subcommand and its options."""
    parser = add_action(actions, "sweep", HELP)
    add = parser.add_argument
    add("directory", type=path, metavar="DIR", help="a directory on the striped file system")
    add(
        "logs",
        nargs="*",
        type=path,
        metavar="LOG",
        help="replay this run (run.pario, .darshan with DXT) instead of the made pattern",
    )
    add(
        "--ranks",
        type=positive,
        metavar="N",
        help=f"processes that write one file, each its part, and read it (default {RANKS})",
    )
    add_value(parser, "--size", positive_size, "SIZE", "bytes of that file (default 64M)")
    add(
        "--counts",
        type=_counts,
        metavar="N,N,...",
        help="stripe counts (default: 1, 2, 4, ... and all targets)",
    )
    add(
        "--units",
        type=_units,
        default=UNITS,
        metavar="SIZE,SIZE,...",
        help="stripe sizes, multiples of 64K (default 1M,4M,16M)",
    )
    add_count(parser, "--repeat", 3, "rounds (default 3): medians count")
    add(
        "--mpiexec",
        metavar="COMMAND",
        help="start the processes as ranks by this MPI launcher with its options, on several hosts"
        " (default: processes of this host; ranks of a LOG: mpiexec)",
    )
    add(
        "--limit",
        type=seconds,
        metavar="SECONDS",
        help="end a measurement that takes longer (default: as pario replay)",
    )
    add_plot(parser, "draw seconds by stripes")
    add_flag(parser, "--json", "print JSON")


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({*several(between(1, 2000))(text)}))


def _units(text: str) -> tuple[int, ...]:
    from pario.fix.stripe.layout import GRANULE

    found = tuple(sorted({*several(positive_size)(text)}))
    if any(unit % GRANULE for unit in found):
        raise argparse.ArgumentTypeError(f"{text}; expected multiples of {wording.block(GRANULE)}")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints the table, and keeps the result."""
    from pario.fix.stripe.filesystem import facts_of
    from pario.prove.replay.limits import first_limit
    from pario.prove.replay.perform import Manner, expect_scratch
    from pario.prove.sweep import combinations, expect_stripes, sweep, usual_counts

    if arguments.logs and (arguments.ranks or arguments.size):
        raise ParioError("--ranks and --size belong to the made pattern; leave them out with a LOG")
    check_plot(arguments)
    require_directory(arguments.directory, "a directory on the striped file system")
    facts = facts_of(arguments.directory)
    expect_stripes(facts)
    expect_scratch(arguments.directory)
    pattern, wall = _pattern(arguments)
    counts = arguments.counts or usual_counts(facts.targets)
    stripes = combinations(pattern.size, counts, arguments.units)
    manner = Manner(
        mpiexec=_launcher(pattern, arguments.mpiexec),
        limit=first_limit(wall, arguments.limit),
        close_files=True,
    )
    machine = _machine(arguments.directory)
    found = sweep(
        arguments.directory, facts, pattern, stripes, machine, manner, arguments.repeat, _tell
    )
    _report(found, arguments)
    return 0


def _pattern(arguments: argparse.Namespace) -> tuple[Pattern, float]:
    """The pattern, and the seconds of its run (0: no run)."""
    from pario.prove.sweep import pattern_of, shared_file
    from pario.see.tables import read

    if arguments.logs:
        with progress("pario: reading the logs"):
            job = read(arguments.logs)
        return pattern_of(job), job.wall
    ranks = arguments.ranks or RANKS
    return shared_file(ranks, arguments.size or SIZE, mpi=bool(arguments.mpiexec)), 0.0


def _launcher(pattern: Pattern, words: str | None) -> Sequence[str]:
    from pario.cli.replay import launcher_for

    return launcher_for(pattern.phases[0].script, words)


def _machine(directory: Path) -> Machine:
    """The measured machine for predictions; measured now, and kept, unless it was before."""
    from pario.prove.calibration import keep, kept_machine, measure_machine

    machine = kept_machine(directory)
    if machine is None:
        print_note("pario: measuring the rates of the file system first")
        machine = measure_machine(directory)
        try:
            keep(machine, directory)
        except ParioError as error:
            print_note(f"pario: the rates are not kept: {error}")
    return machine


def _tell(done: Progress) -> None:
    times = ", ".join(f"{name} {wording.seconds(value)}" for name, value in done.seconds.items())
    print_note(f"pario: {_stripes(done)}: {times}")


def _stripes(point: Progress | Point) -> str:
    return f"{wording.plural(point.count, 'stripe')} of {wording.block(point.unit)}"


def _report(found: Sweep, arguments: argparse.Namespace) -> None:
    """Prints the result, draws it, and keeps it."""
    from pario.prove.calibration import file_system
    from pario.see.analyze.sweeps import document, keep

    lines = [*_table(found), *_conclusion(found, arguments.directory)]
    if arguments.json:
        print_json(document(found))
    else:
        print_lines(lines)
    if arguments.plot:
        _plot(arguments.plot, found, "\n".join(lines))
    try:
        kept = keep(found, file_system(arguments.directory))
    except ParioError as error:
        print_note(f"pario stripe: the result is not kept: {error}")
        return
    if not arguments.json:
        print_line(
            f"Kept in {kept}: pario stripe advise and pario advise use it for similar files on"
            f" {found.mount}"
        )


def _table(found: Sweep) -> Iterator[str]:
    from pario.see.report.table import BLOCK, COUNT, Column
    from pario.see.report.text_table import align_columns, terminal_width

    rounds = wording.plural(len(next(iter(found.points[0].seconds.values()))), "round")
    known = wording.plural(found.targets, "target") if found.targets else "targets not reported"
    yield f"{found.mount}: {found.kind}, {known}; {found.pattern}; medians of {rounds}"
    columns: list[Column[Point]] = [
        Column("stripes", lambda point: point.count, COUNT, zeros=True),
        Column("of", lambda point: point.unit, BLOCK, zeros=True),
    ]
    for name in found.points[0].seconds:
        columns += _columns(name)
    best = found.best
    columns += [
        Column("of the best", lambda point: f"{point.total / best.total:.2f} times"),
        Column("", lambda point: "<- best" if point is best else ""),
    ]
    for line in align_columns(columns, found.points, terminal_width()):
        yield line.plain.rstrip()


def _columns(name: str) -> Iterator[Column[Point]]:
    """Yields the measured and the predicted seconds of a phase."""
    from pario.see.report.table import SECONDS, Column

    yield Column(name, lambda point: _median(point, name), SECONDS, zeros=True)
    yield Column("predicted", lambda point: point.predicted.get(name), SECONDS)


def _median(point: Point, name: str) -> float:
    import statistics

    return statistics.median(point.seconds[name])


def _conclusion(found: Sweep, directory: Path) -> Iterator[str]:
    from pario.fix.stripe.commands import short

    best, slowest = found.best, found.slowest
    text = f"Best: {_stripes(best)}, {wording.seconds(best.total)}"
    if slowest != best:
        text += (
            f"; {_stripes(slowest)} take {wording.seconds(slowest.total)},"
            f" {slowest.total / best.total:.1f} times as long"
        )
    yield text
    yield f"  $ pario stripe set --count {best.count} --size {short(best.unit)} {directory}"


def _plot(path: Path, found: Sweep, text: str) -> None:
    """Draws the seconds over stripes, a line for each stripe size and one for the predictions of
    the smallest; ``text``: the caption."""
    from pario.see.report.lines import Axes, Panel
    from pario.see.report.picture import draw

    def line(unit: int, phase: str) -> list[tuple[float, float]]:
        return [
            (float(point.count), _median(point, phase))
            for point in found.points
            if point.unit == unit or point.count == 1
        ]

    units = sorted({point.unit for point in found.points})
    panels = []
    for phase in found.points[0].seconds:
        lines = {f"stripes of {wording.block(unit)}": line(unit, phase) for unit in units}
        predicted = [
            (float(point.count), point.predicted[phase])
            for point in found.points
            if point.unit == units[0] and point.predicted.get(phase)
        ]
        panels.append(Panel(f"Seconds to {phase}", lines | {"predicted": predicted}))
    axes = Axes("stripes of a file", "seconds", wording.count, wording.seconds)
    draw(path, "pario stripe sweep", panels, axes, text)
