"""The system calls on a file by which the ranks of a node create it, open it to read, and open it
to write (programs/open_calls.c)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_command

pytestmark = pytest.mark.mpi
RANKS = 3
DATA = {"pread64", "pwrite64"}


def count_calls(mpi: Mpi, place: Path, variables: dict[str, str]) -> list[list[str]]:
    """Returns the names of the system calls on the file, by rank in no order; data aside."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    program = compile_program(mpi, PROGRAMS / "open_calls.c", place)
    file = place / "data"
    settings = " ".join(f"-E {name}={value}" for name, value in variables.items())
    traced = f"exec strace -f -y -qq -s 300 -o {place}/calls.$$ {settings} {program} {file}"
    environment = under_pario(None)
    run_command(mpi.start("sh", "-c", traced, ranks=RANKS), env=environment, cwd=place, status=0)
    lines = [path.read_text(errors="replace").splitlines() for path in place.glob("calls.*")]
    on_file = [
        [line for line in rank if f"{file}" in line and "execve" not in line] for rank in lines
    ]
    names = [[re.findall(r"^(?:\d+ +)?(\w+)\(", line) for line in rank] for rank in on_file]
    return [[word[0] for word in rank if word and word[0] not in DATA] for rank in names]


@pytest.mark.system
def test_only_the_first_rank_asks_for_more_than_a_descriptor(mpi: Mpi, tmp_path: Path) -> None:
    library = need_library()
    ranks = count_calls(mpi, tmp_path, {"LD_PRELOAD": str(library), "PARIO_MPIIO": "1"})
    *others, first = sorted(ranks, key=len)
    assert others == [["openat", "close"] * 3] * (RANKS - 1)
    assert first.count("newfstatat") + first.count("fstat") <= 3, first
    assert len(first) <= 20, first
