"""Runs the ``pario`` command as a user does, and helps to check its files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.mpi.conftest import Mpi, need
from tests.support.commands import run_command
from tests.support.processes import find_processes
from tests.support.waiting import wait_until

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
    """Mounts a file system of a few kilobytes (root only)."""
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


def wait_for_end_of_processes(directory: Path) -> None:
    """Waits until no process logs into the directory, because launchers end before their ranks."""
    mark = f"PARIO_TRACE_DIR={directory}\0"
    wait_until(
        lambda: not [one for one in find_processes(mark=mark) if one.lives],
        f"the end of all processes that log into {directory}",
    )
