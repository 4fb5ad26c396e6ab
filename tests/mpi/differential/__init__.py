"""Builds and judges the program that compares random cases of MPI-IO with a model."""

from __future__ import annotations

import re
from pathlib import Path

from tests.mpi.conftest import Mpi, need
from tests.support.commands import run_command, run_job

_SOURCES = sorted(Path(__file__).parent.glob("*.c"))


def build(mpi: Mpi, folder: Path) -> Path:
    """Builds the program in a folder, unless it exists."""
    need(mpi)
    made = folder / f"differential-{mpi.name}"
    if not made.exists():
        run_command([mpi.cc, "-O1", "-w", "-o", made, *_SOURCES], status=0)
    return made


def cases_pass(
    command: list[str],
    directory: Path,
    environment: dict[str, str],
    limit: float,
) -> None:
    """Runs a complete command and requires that it reports no failed case."""
    done = run_job(command, directory, environment, limit=limit)
    said = re.search(r"seed \d+: \d+ cases, (\d+) failed", done.stdout)
    assert said and said[1] == "0" and done.returncode == 0, done.stdout[-3000:]
