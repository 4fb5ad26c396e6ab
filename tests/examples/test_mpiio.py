"""The MPI-IO examples find no wrong value, with the MPI's own MPI-IO and with pario's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "mpiio"
BIN = Path(sys.executable).parent
PROGRAMS = ["striping", "header_body", "column", "blocks.py"]

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="session")
def program_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (BIN / "mpicc").exists():
        pytest.skip("no mpicc beside this Python (pip install mpich)")
    build = tmp_path_factory.mktemp("mpiio")
    tools = [f"MPICC={BIN / 'mpicc'}", f"BUILD={build}", "CFLAGS=-O2 -Wall -Wextra -Werror"]
    run_command(["make", "-s", "-C", SOURCE, *tools], status=0)
    shutil.copy(SOURCE / "blocks.py", build)
    return build


def run(*words: object) -> str:
    done = run_command([str(word) for word in words])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def under(mpiio: str, logs: Path) -> list[object]:
    return (
        [BIN / "pario", "run", "--no-report", "--mpiio", "-o", logs, "--"]
        if mpiio == "pario"
        else []
    )


@pytest.mark.system
@pytest.mark.parametrize("mpiio", ["own", "pario"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_example_reads_back_what_it_wrote(
    program_folder: Path, tmp_path: Path, program: str, ranks: int, mpiio: str
) -> None:
    interpreter = [sys.executable] if program.endswith(".py") else []
    launcher = [*under(mpiio, tmp_path / "run.pario"), BIN / "mpiexec", "-n", ranks]
    assert (
        run(*launcher, *interpreter, program_folder / program, tmp_path / "out.dat")
        .splitlines()[-1]
        .endswith(" 0 wrong")
    )


@pytest.mark.system
@pytest.mark.parametrize("mpiio", ["own", "pario"])
def test_fortran_example_reads_back_what_it_wrote(tmp_path: Path, mpiio: str) -> None:
    if missing := [tool for tool in ("mpif90.mpich", "mpiexec.mpich") if not shutil.which(tool)]:
        pytest.skip(f"{missing[0]} is not here (make test-all installs it)")
    run("make", "-s", "-C", SOURCE, "MPIFORT=mpif90.mpich", f"BUILD={tmp_path}", "fortran")
    launcher = [*under(mpiio, tmp_path / "run.pario"), "mpiexec.mpich", "-n", 2]
    assert (
        run(*launcher, tmp_path / "column_f90", tmp_path / "out.dat")
        .splitlines()[-1]
        .endswith(" 0 wrong")
    )


@pytest.mark.system
def test_unwritten_bytes_are_zero(program_folder: Path, tmp_path: Path) -> None:
    launcher = [*under("pario", tmp_path / "run.pario"), BIN / "mpiexec", "-n", 3]
    assert run(*launcher, program_folder / "holes", tmp_path / "out.dat").endswith(" 0 wrong\n")
