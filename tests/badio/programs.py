"""The bad programs: their table, and functions that build and run them, with or without pario's
library."""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.library import find_library
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Program:
    name: str
    ranks: int
    rule: str = ""  # empty: healthy
    results: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.rule


@dataclass(frozen=True)
class Run:
    seconds: float  # wall-clock time of the command
    truth: dict[str, Any] = field(repr=False)  # the line of JSON that the program printed


def library() -> Path | None:
    """Returns the library to preload; None if it is not built."""
    return find_library()


def table() -> list[Program]:
    rows = tomllib.loads((HERE / "programs.toml").read_text())
    bad = [
        Program(row["name"], row["ranks"], row["rule"], tuple(row["results"]))
        for row in rows["program"]
    ]
    return bad + [Program(row["name"], row["ranks"]) for row in rows["healthy"]]


def mpiexec() -> Path | None:
    launcher = BIN / "mpiexec"
    return launcher if launcher.exists() and (BIN / "mpicc").exists() else None


def build(directory: Path, *names: str) -> None:
    """Builds the named programs into ``directory``.

    Without names it builds all, those with MPI only if this Python has an MPI wheel.
    """
    targets = ["serial", "parallel"] if mpiexec() else ["serial"]
    if names:
        targets = [str(directory / name) for name in names]
    command = [
        "make",
        "-s",
        "-C",
        HERE,
        f"BUILD={directory}",
        f"MPICC={BIN / 'mpicc'}",
        "CFLAGS=-O2 -Wall -Wextra -Wshadow -Werror",
        *targets,
    ]
    run_command(command, status=0)


def command(program: Program, build_directory: Path, work: Path, *arguments: str) -> list[str]:
    launcher = [str(mpiexec()), "-n", str(program.ranks)] if program.ranks else []
    return [*launcher, str(build_directory / program.name), "--dir", str(work), *arguments]


def prepare(program: Program, build_directory: Path, work: Path, scale: float = 1) -> None:
    """Creates the input files and removes the files of earlier runs; not measured."""
    run_command(
        command(program, build_directory, work, "--prepare", "--scale", str(scale)),
        status=0,
    )


@dataclass(frozen=True)
class Tracing:
    """pario's library, the directory for its logs, and settings of I/O as variables."""

    library: Path
    log: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "PARIO_TRACE_DIR": str(self.log), **self.settings}


def run(
    program: Program,
    build_directory: Path,
    work: Path,
    *,
    repaired: bool = False,
    scale: float = 1,
    tracing: Tracing | None = None,
) -> Run:
    """Runs the program to its end."""
    environment = {**os.environ, **(tracing.environment() if tracing else {})}
    words = command(
        program, build_directory, work, "--scale", str(scale), *(["--repaired"] if repaired else [])
    )
    start = time.perf_counter()
    done = run_command(words, status=0, env=environment, limit=3 * PATIENCE)
    return Run(time.perf_counter() - start, json.loads(done.stdout))
