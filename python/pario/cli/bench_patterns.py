"""Compare ways of doing I/O on a file system of yours, with real MPI: one rank for all, a file per
process, one shared file, groups."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_flag, add_plot, add_value, check_plot
from pario.cli.bench_common import add_keeping, add_place, add_ranks, earlier, keep, place_below
from pario.cli.numbers import positive, positive_size
from pario.cli.paths import path
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.prove.bench.results import Row

HELP = "access patterns of parallel programs"
_MANY = 0.25  # of the median: repetitions that differ by more say little


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario bench patterns``."""
    add_place(parser, repeat=5)
    add_ranks(parser, ranks=4)
    add = parser.add_argument
    add_value(parser, "--size", positive_size, "SIZE", "of the whole array (default 64M)", 64 << 20)
    add(
        "--array",
        choices=("1d", "2d", "3d"),
        default="3d",
        help="how many sides the array has that is divided among ranks (default 3d)",
    )
    add(
        "--pattern",
        action="append",
        metavar="NAME",
        help="only this one; may be repeated (default: all; --list names them)",
    )
    add_flag(parser, "--list", "list the patterns and end")
    add(
        "--groups",
        type=positive,
        default=0,
        metavar="N",
        help="groups of ranks that share a writer or a file (default: half the ranks)",
    )
    add(
        "--stripes",
        type=positive,
        default=0,
        metavar="M",
        help="stripes of each group's file, where the file system has stripes",
    )
    add_flag(parser, "--sync", "written means on the device: time os.sync(), too")
    add_keeping(parser)
    add(
        "--logs",
        type=path,
        metavar="DIR",
        help="run each pattern once more under pario run: a log with timeline and report for each",
    )
    add_plot(parser, "run each once more under pario run, and draw the calls of its ranks")


def run(arguments: argparse.Namespace) -> int:
    """Measures and shows the table."""
    if arguments.list:
        return _list()
    from pario.prove.bench.launch import launcher, measure

    names = _names(arguments)
    check_plot(arguments)
    before = earlier(arguments)
    mpiexec = launcher(arguments.mpiexec)
    with place_below(arguments.directory) as place:
        result = measure(
            _request(arguments, place, names, arguments.repeat),
            arguments.ranks,
            mpiexec,
            mpiio=arguments.mpiio,
        )
        text = "\n".join(_page(result))
        print(text)
        keep(arguments, result, before)
        if arguments.logs or arguments.plot:
            with _folder(arguments.logs) as folder:
                logs = {name: folder / f"{name}.pario" for name in names}
                for name, log in logs.items():
                    measure(
                        _request(arguments, place, [name], 1),
                        arguments.ranks,
                        mpiexec,
                        mpiio=arguments.mpiio,
                        log=log,
                    )
                    if arguments.logs:
                        print(f"{name}: {log / 'report.html'}")
                if arguments.plot:
                    _plot(arguments.plot, logs, place, text)
    return 0


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    """A directory for logs; a temporary one if no name is given."""
    if wanted:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="pario-bench-") as folder:
        yield Path(folder)


def _plot(path: Path, logs: Mapping[str, Path], place: Path, text: str) -> None:
    from pario.prove.bench.timelines import KINDS, panels_of
    from pario.see.report.picture import draw_spans
    from pario.see.tables import read

    panels = [panel for name, log in logs.items() for panel in panels_of(name, read([log]), place)]
    draw_spans(path, "pario bench patterns", panels, KINDS, text)


def _request(arguments: argparse.Namespace, place: Path, names: Sequence[str], repeat: int) -> Any:
    from pario.prove.bench.launch import Request

    dimensions = int(arguments.array[0])
    return Request(
        str(place),
        names,
        arguments.size,
        dimensions,
        repeat,
        arguments.groups,
        arguments.stripes,
        arguments.sync,
    )


def _list() -> int:
    from pario.prove.bench.table import PATTERNS

    for name, text in PATTERNS.items():
        print(f"{name:16} {text}")
    return 0


def _names(arguments: argparse.Namespace) -> list[str]:
    from pario.prove.bench.table import PATTERNS

    for name in arguments.pattern or ():
        if name not in PATTERNS:
            raise ParioError(f"--pattern {name}: not known; expected one of {', '.join(PATTERNS)}")
    return [name for name in PATTERNS if not arguments.pattern or name in arguments.pattern]


def _page(result: dict[str, Any]) -> Iterator[str]:
    from pario.prove.bench.results import best, rows_of
    from pario.prove.bench.table import PATTERNS

    rows = rows_of(result)
    shape = " x ".join(map(str, result["shape"]))
    yield (
        f"{result['ranks']} ranks, {wording.size(result['bytes'])} as {shape} doubles,"
        f" {result['groups']} groups; {result['mpi']}\n"
    )
    yield (
        f"{'':16} {'write':>10} {'of best':>8} {'calls':>8} {'writes':>8} {'read':>12}"
        f" {'of best':>8} {'calls':>8} {'reads':>8}"
    )
    fastest = {"write": best(rows, "write").write.rate, "read": best(rows, "read").read.rate}
    for row in rows:
        cells = []
        for direction, width in (("write", 10), ("read", 12)):
            taken = getattr(row, direction)
            share = wording.share(taken.rate / fastest[direction])
            cells.append(
                f"{wording.rate(taken.rate):>{width}} {share:>8} {taken.calls:>8}"
                f" {taken.system_calls:>8}"
            )
        yield f"{row.pattern:16} {' '.join(cells)}"
    yield ""
    for direction in ("write", "read"):
        row = best(rows, direction)
        yield (
            f"Fastest to {direction} here: {row.pattern} ({PATTERNS[row.pattern]}),"
            f" {wording.rate(getattr(row, direction).rate)}."
        )
    yield from _noisy(rows)


def _noisy(rows: Sequence[Row]) -> Iterator[str]:
    noisy = [
        row.pattern
        for row in rows
        if max(row.write.seconds.spread, row.read.seconds.spread) > _MANY
    ]
    if noisy:
        share = wording.share(_MANY)
        yield (
            f"Repetitions differ by more than {share} of the median: {', '.join(noisy)} (try a"
            " larger --size, more --repeat)."
        )
