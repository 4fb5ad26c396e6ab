"""The program that tries random cases of MPI-IO against a model: building and judging it."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from tests.mpi.conftest import Mpi, need
from tests.suites.runs import execute

_SOURCES = sorted(Path(__file__).parent.glob("*.c"))


@cache
def build(mpi: Mpi, folder: Path) -> Path:
    need(mpi)
    made = folder / f"differential-{mpi.name}"
    subprocess.run([mpi.cc, "-O1", "-w", "-o", made, *_SOURCES], check=True)
    return made


def cases_pass(command: list[str], directory: Path, environment: dict[str, str], seconds: float) -> None:
    """Runs a whole command and sees to it that it says that no case failed."""
    done = execute(command, directory, environment, seconds)
    assert done is not None, f"did not end in {seconds} seconds"
    said = re.search(r"seed \d+: \d+ cases, (\d+) failed", done.stdout)
    assert said and said[1] == "0" and done.returncode == 0, done.stdout[-3000:]
