"""Measures the ranking of the patterns of `pario bench patterns` on several file systems.

    python bench/patterns.py --dir DIRECTORY [--place directory|lab|ceph]... [--size 4M]
        [--repeat 3] [--mpiio]

Places: a directory, a lab as `pario lab up` creates it, and a CephFS of four OSDs with links of
50 MB/s each (root). The table shows rates as shares of the best one of each place and direction,
with the rank; ~ marks repetitions that differ by more than a quarter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from measuring import make_parser
from places import mounted_lab, slow_ceph
from recording import Recorder

from pario import wording
from pario.prove.bench.results import Row, rows_of
from pario.prove.lab.mount import Model

OSDS, MEGABYTES = 4, 50
NOISY = 0.25


@contextmanager
def create_lab() -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory() as folder,
        mounted_lab(Path(folder, "lab"), Model(process=True)) as point,
    ):
        yield point


@contextmanager
def create_ceph() -> Iterator[Path]:
    with slow_ceph(OSDS, MEGABYTES) as (point, _):
        yield point


def run_patterns(point: Path, arguments: argparse.Namespace) -> list[Row]:
    """Measures the patterns at one place."""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, "result.json")
        words = ["--size", arguments.size, "--repeat", str(arguments.repeat), "--json", result]
        words += ["--mpiio"] if arguments.mpiio else []
        command = [sys.executable, "-m", "pario", "bench", "patterns", point, *words]
        environment = {**os.environ, "XDG_STATE_HOME": scratch}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return rows_of(json.loads(result.read_text()))


def record_rows(recorder: Recorder, place: str, rows: list[Row], mpiio: bool) -> None:
    """Records the seconds of each repetition, and of as many bytes at the rate of the best one."""
    for direction in ("write", "read"):
        measures = {row.pattern: getattr(row, direction) for row in rows}
        best = max(measure.rate for measure in measures.values())
        for pattern, measure in measures.items():
            for number, seconds in enumerate(measure.seconds, 1):
                recorder.add(
                    place=place,
                    mpiio=mpiio,
                    operation=direction,
                    bytes=measure.bytes,
                    pattern=pattern,
                    way="pario bench",
                    round=number,
                    seconds=seconds,
                    limit_seconds=measure.bytes / best,
                    calls=measure.calls,
                    system_calls=measure.system_calls,
                )


def format_cells(rows: list[Row], direction: str) -> dict[str, str]:
    """Returns by pattern: rank, a mark if repetitions differ, and the share of the best rate."""
    ranked = sorted((getattr(row, direction) for row in rows), key=lambda measure: -measure.rate)
    cells = {}
    for row in rows:
        measure = getattr(row, direction)
        mark = "~" if measure.seconds.spread > NOISY else ""
        cells[row.pattern] = (
            f"{ranked.index(measure) + 1}{mark} ({wording.share(measure.rate / ranked[0].rate)})"
        )
    return cells


def format_table(places: dict[str, list[Row]]) -> Iterator[str]:
    """Returns the table in Markdown."""
    columns = {
        f"{name}, {direction}": format_cells(rows, direction)
        for name, rows in places.items()
        for direction in ("write", "read")
    }
    yield "| | " + " | ".join(columns) + " | system writes |"
    yield "|---" * (len(columns) + 2) + "|"
    for row in next(iter(places.values())):
        shown = " | ".join(column.get(row.pattern, "") for column in columns.values())
        yield f"| `{row.pattern}` | {shown} | {row.write.system_calls} |"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--place", action="append", choices=("directory", "lab", "ceph"))
    parser.add_argument("--size", default="4M")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--mpiio", action="store_true")
    arguments = parser.parse_args()
    creators: dict[str, Callable[[], AbstractContextManager[Path]]] = {
        "directory": lambda: nullcontext(arguments.dir),
        "lab": create_lab,
        "ceph": create_ceph,
    }
    launchers = [Path(sys.executable).with_name("mpiexec")] if arguments.mpiio else []
    places: dict[str, list[Row]] = {}
    with Recorder(
        "patterns", arguments, directories=[arguments.dir], launchers=launchers
    ) as recorder:
        for name in arguments.place or creators:
            with creators[name]() as point:
                places[name] = run_patterns(point, arguments)
                record_rows(recorder, name, places[name], arguments.mpiio)
                print(f"{name}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    print("\n".join(format_table(places)))


if __name__ == "__main__":
    main()
