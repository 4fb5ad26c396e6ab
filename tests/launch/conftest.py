"""Runs of the ``pario`` command as a user gives them, and what they leave."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.mpi.conftest import Mpi, need
from tests.support.commands import run_command

PROGRAMS = Path(__file__).parent / "programs"
PARIO = [sys.executable, "-m", "pario"]


@pytest.fixture(scope="session")
def ranks_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], str]:
    """The path of ``programs/ranks.c``, compiled for an MPI."""

    @cache
    def build(mpi: Mpi) -> str:
        need(mpi)
        program = tmp_path_factory.mktemp(mpi.name) / "ranks"
        run_command([mpi.cc, "-O1", "-w", "-o", str(program), str(PROGRAMS / "ranks.c")], status=0)
        return str(program)

    return build


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a file system of some kilobytes (root)."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root: a small tmpfs")
    place = tmp_path / "disk"
    place.mkdir()

    def make(kilobytes: int) -> Path:
        run_command(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)],
            status=0,
        )
        return place

    yield make
    run_command(["umount", "-l", str(place)])


def left_over(directory: Path, patience: float = 10) -> list[str]:
    """Processes that still log into the directory after some seconds (launchers end their ranks a moment after themselves)."""
    deadline = time.monotonic() + patience
    while (found := _logging_into(directory)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _logging_into(directory: Path) -> list[str]:
    mark = f"PARIO_TRACE_DIR={directory}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
