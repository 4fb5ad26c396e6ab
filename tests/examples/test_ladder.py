"""The steps of the ladder write the same file, and make the calls that its page promises."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "ladder"
BIN = Path(sys.executable).parent
ROWS, COLUMNS = 500, 1000

pytestmark = pytest.mark.mpi


def run(*words: object) -> str:
    done = run_command([str(word) for word in words])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (BIN / "mpicc").exists():
        pytest.skip("no mpicc beside this Python (pip install mpich)")
    build = tmp_path_factory.mktemp("ladder")
    run(
        "make",
        "-s",
        "-C",
        SOURCE,
        f"MPICC={BIN / 'mpicc'}",
        f"BUILD={build}",
        "CFLAGS=-O2 -Wall -Wextra -Werror",
    )
    return build


def mpiexec(ranks: int, *words: object) -> list[object]:
    return [BIN / "mpiexec", "-n", ranks, *words]


def calls(log: Path, data: Path, *command: object, options: tuple[str, ...] = ()) -> dict[str, int]:
    """Counts a program's calls on `data` by function; with MPI-IO, the file system's calls."""
    run(BIN / "pario", "run", "--no-report", *options, "-o", log, "--", *command, data)
    report: dict[str, Any] = json.loads(run(BIN / "pario", "report", log, "--json"))
    return {row["name"]: row["calls"] for row in report["functions"]}


@pytest.mark.system
def test_data_describe_themselves(steps: Path) -> None:
    assert (
        run(steps / "1_memory")
        == "500 x 1000 integers of iteration 1, 2000000 bytes behind a header of 12\n"
    )


@pytest.mark.system
def test_one_process_writes_header_and_array(steps: Path, tmp_path: Path) -> None:
    data = tmp_path / "serial.dat"
    made = calls(tmp_path / "log", data, steps / "2_posix")
    assert (made["open"], made["write"], made["close"]) == (1, 2, 1)
    assert struct.unpack("3i", data.read_bytes()[:12]) == (ROWS, COLUMNS, 1)
    assert data.stat().st_size == 12 + 4 * ROWS * COLUMNS


@pytest.mark.system
def test_master_writes_what_one_process_writes(steps: Path, tmp_path: Path) -> None:
    run(steps / "2_posix", tmp_path / "serial.dat")
    run(*mpiexec(1, steps / "3_master", tmp_path / "master.dat"))
    assert (tmp_path / "master.dat").read_bytes() == (tmp_path / "serial.dat").read_bytes()


@pytest.mark.system
def test_master_gathers_and_writes_alone(steps: Path, tmp_path: Path) -> None:
    made = calls(tmp_path / "log", tmp_path / "master.dat", *mpiexec(4, steps / "3_master"))
    assert (made["MPI_Gather"], made["fwrite"]) == (4, 2)


@pytest.mark.system
def test_all_write_together_what_the_master_writes(steps: Path, tmp_path: Path) -> None:
    run(*mpiexec(4, steps / "3_master", tmp_path / "master.dat"))
    made = calls(
        tmp_path / "log",
        tmp_path / "together.dat",
        *mpiexec(4, steps / "5_mpiio"),
        options=("--mpiio",),
    )
    assert (made["MPI_File_write"], made["MPI_File_write_at_all"], made["pwrite"]) == (1, 4, 5)
    assert (tmp_path / "together.dat").read_bytes() == (tmp_path / "master.dat").read_bytes()


@pytest.mark.system
@pytest.mark.parametrize("options", [(), ("--mpiio",)])
def test_columns_are_read_in_large_pieces(
    steps: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    data = tmp_path / "together.dat"
    run(*mpiexec(4, steps / "5_mpiio", data))
    assert (
        run(*mpiexec(3, steps / "6_column", data)) == "columns 500 to 502 of 2000 rows, 0 wrong\n"
    )
    made = calls(tmp_path / "log", data, *mpiexec(3, steps / "6_column"), options=options)
    assert made["MPI_File_read_all"] == 3
    assert made["pread"] < 100
