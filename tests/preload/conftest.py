"""Runs victim programs under libpario.so, and compares their logs with their calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pario.see.tables import read
from pario.see.tables.model import LAYERS, Dataset, Job
from tests.library import need_library
from tests.support.commands import run_command

VICTIMS = Path(__file__).parent / "victims"
COMPILERS = {".c": ["gcc"], ".cpp": ["g++", "-std=c++17"], ".f90": ["gfortran"]}


def summary(counter: str) -> Callable[[Iterable[int]], int]:
    """Returns the function that combines a counter of several processes."""
    return (
        max
        if counter.startswith(
            ("end_", "slowest_", "buffer_", "size_", "block_", "kind", "open_flags")
        )
        else sum
    )


@dataclass
class Run:
    """One traced run: the output of the program, and its log."""

    status: int
    stdout: str
    stderr: str
    job: Job

    def counts(
        self, path: Path | str, layer: str = "posix", pid: int | None = None
    ) -> dict[str, int]:
        """The counters of a file in a layer, summed over processes (extremes: the largest). Zeros
        when it was never seen."""
        rows = [
            row
            for row in self.job.records
            if LAYERS[row["layer"]] == layer and self.job.path(row["file"]) == str(path)
        ]
        if pid is not None:
            rows = [row for row in rows if self.job.processes["pid"][row["process"]] == pid]
        kinds = self.job.records.dtype
        names = [
            name
            for name in kinds.names or ()
            if kinds[name].kind == "i" and kinds[name].shape == ()
        ]
        return {
            name: summary(name)(int(row[name]) for row in [*rows, np.zeros((), kinds)])
            for name in names
        }

    def calls(self, function: str) -> int:
        """Returns the number of calls of a function in all processes."""
        job = self.job
        return sum(
            int(row["calls"])
            for row in job.functions
            if job.function_names[row["name"]] == function
        )

    def paths(self, layer: str = "posix") -> set[str]:
        """Returns the files with counted calls of a layer."""
        return {
            self.job.path(row["file"]) for row in self.job.records if LAYERS[row["layer"]] == layer
        }

    def datasets(self) -> dict[str, Dataset]:
        """Returns the properties of data sets and variables by their names."""
        return {self.job.path(dataset.file): dataset for dataset in self.job.datasets}

    def events(self, path: Path | str, function: str) -> list[tuple[int, int]]:
        """Returns offset and length of a function's events on a file, in order of time."""
        job = self.job
        chosen = [
            row
            for row in job.events
            if job.function_names[row["function"]] == function
            and job.path(row["file"]) == str(path)
        ]
        return [(int(row["offset"]), int(row["length"])) for row in chosen]

    def process(self, pid: int) -> list[tuple[int, int]]:
        """Returns kind and code of the ends of a process's images, in order of time."""
        rows = sorted(
            (row for row in self.job.processes if row["pid"] == pid), key=lambda row: row["start"]
        )
        return [(int(row["end_kind"]), int(row["end_code"])) for row in rows]


Trace = Callable[..., Run]
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def library() -> Path:
    return need_library()


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a victim, once per set of flags."""
    folder = tmp_path_factory.mktemp("victims")
    built: dict[tuple[str, ...], Path] = {}

    def compile_victim(source: str, *flags: str) -> Path:
        key = (source, *flags)
        if key not in built:
            program = folder / f"{Path(source).stem}{len(built)}"
            command = [
                *COMPILERS[Path(source).suffix],
                "-g",
                *(flags or ("-O1",)),
                "-o",
                program,
                VICTIMS / source,
                "-pthread",
            ]
            run_command(command, status=0, cwd=folder)
            built[key] = program
        return built[key]

    return compile_victim


@pytest.fixture
def trace(library: Path, tmp_path: Path) -> Iterator[Trace]:
    """Runs a command under the library, in tmp_path/work, and reads its logs."""
    work = tmp_path / "work"
    work.mkdir()
    number = 0

    def run(
        *command: object,
        events: str = "16M",
        env: dict[str, str] | None = None,
        stdin: str = "",
        wrap: str = "",
    ) -> Run:
        nonlocal number
        number += 1
        logs = tmp_path / f"logs{number}"
        logs.mkdir()
        environment = (
            os.environ
            | {
                "PARIO_TRACE_DIR": str(logs),
                "PARIO_TRACE_EVENTS_LIMIT": events,
                "LD_PRELOAD": str(library),
            }
            | (env or {})
        )
        words = (
            ["sh", "-c", f'exec "$@" {wrap}', "sh", *map(str, command)]
            if wrap
            else list(map(str, command))
        )
        done = run_command(words, cwd=work, env=environment, input=stdin)
        return Run(done.returncode, done.stdout, done.stderr, read(sorted(logs.iterdir())))

    yield run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"
