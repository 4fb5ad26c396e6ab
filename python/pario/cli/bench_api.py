"""Compare the calls by which one process can move the bytes of a file: read, pread, readv, stdio
and its buffers, mmap, io_uring, O_DIRECT; with pieces of several sizes, in order and at random,
from memory and from the device.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_plot, add_value, check_plot
from pario.cli.bench_common import add_keeping, add_place, earlier, keep, place_below
from pario.cli.numbers import positive_size, seconds, several, size
from pario.errors import ParioError
from pario.progress import Line

if TYPE_CHECKING:
    from pario.prove.bench.verdicts import Result
    from pario.prove.bench.ways import Condition

HELP = "the calls by which a program can move bytes"
_LARGEST = 1 << 30  # of the pieces: one call moves less than 2 GiB in any case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario bench api``."""
    add_place(parser, repeat=3)
    add = parser.add_argument
    add_value(parser, "--size", positive_size, "SIZE", "of the file (default 256M)", 256 << 20)
    add_value(
        parser, "--pieces", _sizes, "SIZE,...", "that are moved at a time (default 512,4K,64K,1M)"
    )
    add(
        "--seconds",
        type=seconds,
        default=0.05,
        metavar="S",
        help="that a single measurement lasts at most (default 0.05)",
    )
    add_plot(parser, "draw the rates")
    add_keeping(parser)


def _sizes(text: str) -> tuple[int, ...]:
    pieces = tuple(sorted({*several(size)(text)}))
    if pieces[0] < 8 or pieces[-1] > _LARGEST or any(piece % 8 for piece in pieces):
        raise argparse.ArgumentTypeError(f"{text}; expected multiples of 8 bytes, 1G at most")
    return pieces


def run(arguments: argparse.Namespace) -> int:
    """Measures, and prints tables and sentences."""
    from pario.prove.bench.verdicts import result_of
    from pario.prove.bench.ways import LEAST_PIECES, PIECES, Request, measure

    pieces = arguments.pieces or PIECES
    if arguments.size < LEAST_PIECES * pieces[-1]:
        raise ParioError(
            f"--size {arguments.size}: expected at least {LEAST_PIECES} of the largest pieces,"
            f" {LEAST_PIECES * pieces[-1]} bytes"
        )
    check_plot(arguments)
    before = earlier(arguments)
    line = Line("pario bench api")
    with place_below(arguments.directory) as place:
        document = measure(
            Request(place, arguments.size, pieces, arguments.repeat, arguments.seconds), line.show
        )
    line.clear()
    text = "\n".join(page(document))
    print(text)
    keep(arguments, document, before)
    if arguments.plot:
        _plot(arguments.plot, result_of(document), text)
    return 0


def page(document: dict[str, Any]) -> Iterator[str]:
    """Tables and sentences, by condition."""
    from pario.prove.bench.verdicts import result_of, verdicts
    from pario.prove.bench.ways import CONDITIONS

    result = result_of(document)
    sentences = dict(verdicts(result))
    yield (
        f"A file of {wording.block(document['size'])}, medians; * the fastest with pieces of this"
        " size"
    )
    for condition in CONDITIONS:
        if condition.name in sentences:
            yield from (
                "",
                *_table(result, condition),
                *(f"  {text}" for text in sentences[condition.name]),
            )
    yield ""
    yield from _remarks(document, result)


def _table(result: Result, condition: Condition) -> Iterator[str]:
    from pario.prove.bench.ways import spoken

    yield f"{condition.name:28}" + "".join(f"{wording.block(piece):>14}" for piece in result.pieces)
    ways = result.ways(condition)
    best = [
        max(
            (rates.median for way in ways if (rates := result.of(way, condition, piece))), default=0
        )
        for piece in result.pieces
    ]
    for way in ways:
        cells = []
        for piece, fastest in zip(result.pieces, best, strict=True):
            rates = result.of(way, condition, piece)
            mark = "*" if rates and rates.median == fastest else " "
            cells.append(f"{wording.rate(rates.median) + mark if rates else '- ':>14}")
        yield f"{spoken(way, condition.writes):28}{''.join(cells)}"


def _remarks(document: dict[str, Any], result: Result) -> Iterator[str]:
    """Yields the failed and the doubtful measurements."""
    by_reason: dict[str, list[str]] = {}
    for what, reason in document["missing"].items():
        by_reason.setdefault(reason, []).append(what.split(", read ")[0].split(", write ")[0])
    for reason, named in by_reason.items():
        yield f"Not everywhere possible here ({reason}): {'; '.join(dict.fromkeys(named))}."
    if document["left_in_memory"] > 0.01:
        left = wording.share(document["left_in_memory"])
        yield (
            f"Up to {left} of the file stayed in memory when it was to be forgotten: the device is"
            " slower than it looks."
        )
    spread = sorted(rates.spread for rates in result.rates.values())
    if spread:
        yield (
            f"Repetitions differ by {wording.share(spread[len(spread) // 2])} of their median (half"
            " of the cells by less)."
        )


def _plot(path: Path, result: Result, text: str) -> None:
    from pario.prove.bench.ways import CONDITIONS
    from pario.see.report.lines import Axes, Panel
    from pario.see.report.picture import draw

    panels = []
    for condition in CONDITIONS:
        found = {
            way: [(piece, result.of(way, condition, piece)) for piece in result.pieces]
            for way in result.ways(condition)
        }
        lines = {
            way: [(float(piece), rates.median) for piece, rates in line if rates]
            for way, line in found.items()
        }
        panels.append(Panel(condition.name, {way: line for way, line in lines.items() if line}))
    axes = Axes("bytes at a time", "bytes per second", wording.block, wording.rate)
    draw(path, "pario bench api", [panel for panel in panels if panel.lines], axes, text)
