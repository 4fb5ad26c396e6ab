"""The ranking of the patterns of `pario bench patterns` on three kinds of file system: a directory's, a lab as `pario lab up` makes it, and
a CephFS of four OSDs whose links carry so many megabytes per second each (root).

    python bench/patterns.py --dir DIRECTORY [--place directory|lab|ceph]... [--size 4M] [--repeat 3] [--mpiio]

Shows rates in parts of the best one of each place and direction, with the rank; ~ where repetitions differ by more than a quarter.
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

sys.path.insert(0, str(Path(__file__).parent))

from places import slow_ceph

from pario import wording
from pario.bench.results import Row, rows_of
from pario.lab.mount import Model, down, up

OSDS, MEGABYTES = 4, 50
NOISY = 0.25


@contextmanager
def on_lab() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        point = Path(folder, "lab")
        up(point, Model(process=True))
        try:
            yield point
        finally:
            down(point, force=True)


@contextmanager
def on_ceph() -> Iterator[Path]:
    with slow_ceph(OSDS, MEGABYTES) as (point, _):
        yield point


def measured(point: Path, arguments: argparse.Namespace) -> list[Row]:
    """The patterns at one place."""
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, "result.json")
        words = [
            "--size",
            arguments.size,
            "--repeat",
            str(arguments.repeat),
            "--json",
            result,
            *(["--mpiio"] if arguments.mpiio else []),
        ]
        command = [sys.executable, "-m", "pario", "bench", "patterns", point, *words]
        environment = {**os.environ, "XDG_STATE_HOME": scratch}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return rows_of(json.loads(result.read_text()))


def cells(rows: list[Row], direction: str) -> dict[str, str]:
    """By pattern: part of the best rate, rank, and a mark where repetitions differ."""
    ranked = sorted((getattr(row, direction) for row in rows), key=lambda measure: -measure.rate)
    found = {}
    for row in rows:
        measure = getattr(row, direction)
        mark = "~" if measure.spread > NOISY else ""
        found[row.pattern] = (
            f"{ranked.index(measure) + 1}{mark} ({wording.share(measure.rate / ranked[0].rate)})"
        )
    return found


def table(places: dict[str, list[Row]]) -> Iterator[str]:
    columns = {
        f"{name}, {direction}": cells(rows, direction)
        for name, rows in places.items()
        for direction in ("write", "read")
    }
    yield "| | " + " | ".join(columns) + " | system writes |"
    yield "|---" * (len(columns) + 2) + "|"
    for row in next(iter(places.values())):
        shown = " | ".join(column.get(row.pattern, "") for column in columns.values())
        yield f"| `{row.pattern}` | {shown} | {row.write.system_calls} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--place", action="append", choices=("directory", "lab", "ceph"))
    parser.add_argument("--size", default="4M")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--mpiio", action="store_true")
    arguments = parser.parse_args()
    made: dict[str, Callable[[], AbstractContextManager[Path]]] = {
        "directory": lambda: nullcontext(arguments.dir),
        "lab": on_lab,
        "ceph": on_ceph,
    }
    places: dict[str, list[Row]] = {}
    for name in arguments.place or made:
        with made[name]() as point:
            places[name] = measured(point, arguments)
            print(f"{name}: load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    for line in table(places):
        print(line)


if __name__ == "__main__":
    main()
