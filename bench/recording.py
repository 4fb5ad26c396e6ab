"""Records raw measurements of a benchmark in bench/results/DATE-MACHINE/.

    parser = argparse.ArgumentParser(...)
    add_recording_arguments(parser)
    arguments = parser.parse_args()
    with Recorder("move", arguments, directories=[arguments.directory]) as recorder:
        recorder.add(way="pack", files=1000, round=1, seconds=0.12)

Every row is one measurement. The columns of NAME.csv are the run's number, start and commit, then
those of ``add``: columns before ``round`` name the case that is measured (its way and its sizes),
columns after it are results, with units in their names. `bench/compare.py` relies on this order.
env.json describes every run: machine, file system, versions, commit, command line and load.

Runs of one day append to the same files. A run with other columns goes to NAME-2.csv, NAME-3.csv...
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import environment

LOAD_LIMIT = 1.0
MACHINE_VARIABLE = "PARIO_BENCH_MACHINE"
RUN_COLUMNS = ("run", "started", "commit")
CASE_END = "round"
Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Probes:
    """Sources of everything that a recorder does not get from its benchmark; tests inject them."""

    load: Callable[[], float] = lambda: os.getloadavg()[0]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    describe: Callable[[Iterable[Path], Iterable[Path]], dict[str, Any]] = (
        environment.describe_environment
    )


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --no-record, --machine and --results."""
    group = parser.add_argument_group("recording (bench/README.md)")
    group.add_argument(
        "--no-record",
        dest="recording",
        action="store_false",
        help="only print the figures, at any load",
    )
    group.add_argument(
        "--most-load",
        type=float,
        default=LOAD_LIMIT,
        metavar="N",
        help="largest load average at which measurements are recorded (default: %(default)g)",
    )
    group.add_argument(
        "--machine",
        default=os.environ.get(MACHINE_VARIABLE) or default_machine_name(),
        help=f"short name of this machine (default: %(default)s; {MACHINE_VARIABLE} sets it)",
    )
    group.add_argument(
        "--results",
        type=Path,
        default=environment.RESULTS,
        metavar="DIRECTORY",
        help="where DATE-MACHINE/ is created (default: bench/results)",
    )


def default_machine_name() -> str:
    """Returns the name derived from this machine's processor and core count."""
    machine = environment.describe_machine()
    return environment.derive_machine_name(machine["processor"], machine["cores"])


class Recorder:
    """Collects the rows of one run of a benchmark and writes them when the run ends.

    As a context manager it refuses to start, with SystemExit, at a load average above
    ``arguments.most_load``.
    Enter it before files are made or programs are built: the benchmark's own work raises the load.
    A run that ends with an exception (Ctrl-C and SIGTERM, too) keeps its rows and is marked
    incomplete.

    Parameters
    ----------
    name : stem of the CSV file
    arguments : with the options of ``add_recording_arguments``
    directories : the measured directories, whose file systems env.json describes
    launchers : mpiexec of each MPI that is used
    """

    def __init__(
        self,
        name: str,
        arguments: argparse.Namespace,
        *,
        directories: Iterable[Path | str] = (),
        launchers: Iterable[Path | str] = (),
        probes: Probes | None = None,
    ) -> None:
        self._name, self._arguments, self._probes = name, arguments, probes or Probes()
        self._directories = [Path(directory) for directory in directories]
        self._launchers = [Path(launcher) for launcher in launchers]
        self._rows: list[dict[str, Cell]] = []
        self._entry: dict[str, Any] = {}

    def __enter__(self) -> Recorder:
        load = self._probes.load()
        self._started = self._probes.clock()
        if not self._arguments.recording:
            return self
        if load > self._arguments.most_load:
            raise SystemExit(
                f"{self._name}: the load average is {load:.2f}; measurements are recorded at a "
                f"load of at most {self._arguments.most_load:.2f}. Wait until the machine is idle, "
                "or measure without recording: --no-record"
            )
        self._terminate = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        self._entry = {
            "started": self._started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "load": {"start": round(load, 2)},
            **self._probes.describe(self._directories, self._launchers),
        }
        return self

    def add(self, **cells: Cell) -> None:
        """Adds one measurement.

        ``round`` (or the repetition) must be among the cells: cells before it name the case, cells
        after it are results. Every row of a run must have the same columns in the same order; a
        result that this row lacks is None.
        """
        columns = list(cells)
        if CASE_END not in columns or columns[-1] == CASE_END:
            raise ValueError(f"a row needs {CASE_END!r}, followed by a result: {columns}")
        if reserved := set(columns) & set(RUN_COLUMNS):
            raise ValueError(f"columns of the recorder itself: {sorted(reserved)}")
        if self._rows and columns != list(self._rows[0]):
            raise ValueError(f"columns {columns} differ from earlier rows: {list(self._rows[0])}")
        self._rows.append(cells)

    def add_file(self, path: Path) -> None:
        """Adds the rows that another process has written, a JSON object on each line."""
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self.add(**json.loads(line))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._arguments.recording:
            return
        signal.signal(signal.SIGTERM, self._terminate)
        if not self._rows:
            print(f"{self._name}: nothing was measured, nothing is recorded", file=sys.stderr)
            return
        self._entry["load"]["end"] = round(self._probes.load(), 2)
        self._entry["seconds"] = round((self._probes.clock() - self._started).total_seconds(), 3)
        self._entry["complete"] = error is None
        self._entry["error"] = None if kind is None else describe_error(kind, error)
        day = f"{self._started:%Y-%m-%d}-{self._arguments.machine}"
        path, run = append_run(self._arguments.results / day, self._name, self._entry, self._rows)
        state = "" if error is None else ", marked incomplete"
        print(f"recorded {len(self._rows)} rows as run {run} in {path}{state}", file=sys.stderr)


def describe_error(kind: type[BaseException], error: BaseException | None) -> str:
    """Returns the kind of an exception with the first line of its message."""
    lines = str(error).splitlines()
    return f"{kind.__name__}: {lines[0]}" if lines else kind.__name__


def append_run(
    folder: Path, name: str, entry: dict[str, Any], rows: list[dict[str, Cell]]
) -> tuple[Path, int]:
    """Adds a run to env.json and its rows to a CSV file; returns the file and the run's number.

    Runs of a benchmark are numbered from 1 in env.json, which is replaced first: a number is never
    used twice, even if the process ends between the two files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with lock_directory(folder):
        path = folder / "env.json"
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
        number = 1 + max((one["run"] for one in runs if one["benchmark"] == name), default=0)
        table = find_table(folder, name, [*RUN_COLUMNS, *rows[0]])
        head = {"benchmark": name, "run": number, "file": table.name, "rows": len(rows)}
        publish_text(path, json.dumps({"runs": [*runs, head | entry]}, indent=1) + "\n")
        own = [number, entry["started"], format_commit(entry)]
        publish_text(table, extend_table(table, own, rows))
    return table, number


@contextmanager
def lock_directory(folder: Path) -> Iterator[None]:
    """Keeps other recorders from writing to a directory at the same time."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def find_table(folder: Path, name: str, columns: list[str]) -> Path:
    """Returns the first of NAME.csv, NAME-2.csv... that is new or has these columns."""
    number = 1
    while True:
        path = folder / (f"{name}.csv" if number == 1 else f"{name}-{number}.csv")
        if not path.exists():
            return path
        with path.open(newline="", encoding="utf-8") as file:
            if next(csv.reader(file), None) == columns:
                return path
        number += 1


def extend_table(path: Path, own: list[Cell], rows: list[dict[str, Cell]]) -> str:
    """Returns the text of a CSV file with more rows, each behind the columns of its run."""
    out = io.StringIO(path.read_text(encoding="utf-8") if path.exists() else "")
    out.seek(0, io.SEEK_END)
    writer = csv.writer(out, lineterminator="\n")
    if not out.tell():
        writer.writerow([*RUN_COLUMNS, *rows[0]])
    writer.writerows([format_cell(cell) for cell in (*own, *row.values())] for row in rows)
    return out.getvalue()


def format_cell(cell: Cell) -> str:
    """Returns the text of a cell: nine digits of a float, yes or no, nothing for None and NaN."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.9g}" if isinstance(cell, float) else str(cell)


def format_commit(entry: dict[str, Any]) -> str:
    """Returns the first digits of the commit, with + if the working tree differs from it."""
    return f"{(entry.get('commit') or '')[:12]}{'+' if entry.get('dirty') else ''}"


def publish_text(path: Path, text: str) -> None:
    """Replaces a file in one step, so that a reader or an interrupt never meets half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
