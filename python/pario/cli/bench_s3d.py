"""Write the checkpoint of S3D in three ways, through real MPI: each row by itself, sieved,
collectively; count the calls that reach the file, and time them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pario import wording
from pario.cli.arguments import add_value
from pario.cli.bench_common import add_keeping, add_place, add_ranks, earlier, keep, place_below
from pario.cli.numbers import shape
from pario.messages import print_lines
from pario.prove.bench.s3d_table import FORMAT, GRID, PUBLISHED, RANKS, UNIT, VERSION, WAYS, rows_of

HELP = "S3D's checkpoint: independent, sieved, collective"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario bench s3d``."""
    add_place(parser, repeat=3)
    add_ranks(parser, ranks=RANKS)
    grid = "x".join(str(side) for side in reversed(GRID))
    add_value(
        parser, "--grid", _grid, "NXxNYxNZ", f"cells (default {grid}, the published case)", GRID
    )
    add_keeping(parser)


def _grid(text: str) -> tuple[int, ...]:
    sides = shape(text)
    if len(sides) != 3:
        raise argparse.ArgumentTypeError(f"{text}; expected three numbers such as 32x40x40")
    return sides[::-1]


def run(arguments: argparse.Namespace) -> int:
    """Measures, and prints the table."""
    before = earlier(arguments)
    with place_below(arguments.directory) as place, tempfile.TemporaryDirectory() as logs:
        result = _measure(arguments, place, Path(logs))
    print_lines(page(result))
    keep(arguments, result, before)
    return 0


def _measure(arguments: argparse.Namespace, place: Path, logs: Path) -> dict[str, Any]:
    """Times all ways untraced and in turn, then runs each once more under ``pario run`` to count
    its calls."""
    from pario.prove.bench.launch import Checkpoints, launcher, measure
    from pario.prove.bench.s3d_counts import counts

    mpiexec = launcher(arguments.mpiexec)
    timed = measure(
        Checkpoints(str(place), list(WAYS), arguments.grid, arguments.repeat),
        arguments.ranks,
        mpiexec,
        mpiio=arguments.mpiio,
    )
    rows = []
    for way in WAYS:
        log = logs / f"{way}.pario"
        measure(
            Checkpoints(str(place), [way], arguments.grid, 0),
            arguments.ranks,
            mpiexec,
            mpiio=arguments.mpiio,
            log=log,
        )
        rows.append(
            {
                "way": way,
                "seconds": timed["seconds"][way],
                "bytes": timed["bytes"],
                **counts(log, way),
            }
        )
    about = {key: timed[key] for key in ("ranks", "mpi", "mpiio", "bytes")}
    return {
        "format": FORMAT,
        "version": VERSION,
        "grid": list(arguments.grid),
        **about,
        "rows": rows,
    }


def page(result: dict[str, Any]) -> Iterator[str]:
    """Yields the table; also the published one if it is for the same case."""
    grid = " x ".join(str(side) for side in reversed(result["grid"]))
    through = "pario's MPI-IO" if result["mpiio"] else result["mpi"]
    yield (
        f"{result['ranks']} ranks, {grid} cells, {wording.size(result['bytes'])} in a checkpoint;"
        f" {through}"
    )
    yield ""
    yield (
        f"{'':12} {'writes':>9} {'reads':>7} {'MiB written':>12} {'unaligned':>10} {'seconds':>9} "
        f" {'spread':>7}"
    )
    for row in rows_of(result):
        counted = _format_counts(row.writes, row.reads, row.written / 2**20, row.unaligned)
        spread = wording.share(row.seconds.spread)
        yield f"{row.way:12} {counted} {row.seconds.median:>9.3g}  {spread:>7}"
    yield (
        f"unaligned: writes that begin on no multiple of {wording.block(UNIT)}; seconds: of the"
        " slowest rank, from opening to closing"
    )
    if result["ranks"] == RANKS and tuple(result["grid"]) == GRID:
        yield ""
        yield "published for this case (ATPESC 2020; seconds of the whole run):"
        for way, (writes, reads, mib, unaligned, seconds) in PUBLISHED.items():
            counted = _format_counts(writes, reads, mib, unaligned)
            yield f"{way:12} {counted} {wording.count(seconds):>9}"


def _format_counts(writes: int, reads: int, mib: float, unaligned: int) -> str:
    return (
        f"{wording.count(writes):>9} {wording.count(reads):>7} {mib:>12.2f}"
        f" {wording.count(unaligned):>10}"
    )
