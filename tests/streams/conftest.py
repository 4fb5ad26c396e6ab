"""Runs programs under libpario.so with buffered files, and without pario."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.preload.conftest import library as library
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

VICTIMS = Path(__file__).parent / "victims"


@dataclass
class Done:
    """Exit status and outputs of a program, and the contents of its folder."""

    status: int
    stdout: str
    stderr: str
    files: dict[str, bytes]
    folder: Path


def expect_same(buffered: Done, plain: Done) -> None:
    """Expects that a program succeeds without buffers, and has the same results with them."""
    assert (buffered.status, buffered.stdout.splitlines(), buffered.stderr) == (
        plain.status,
        plain.stdout.splitlines(),
        plain.stderr,
    )
    assert plain.status == 0, plain.stdout
    assert buffered.files == plain.files


Start = Callable[..., Done]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles a program of `victims` once per session."""
    folder = tmp_path_factory.mktemp("streams")
    compilers = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}

    def compile_victim(source: str) -> Path:
        program = folder / Path(source).stem
        if not program.exists():
            compiler = compilers[Path(source).suffix]
            command = [compiler, "-O1", "-o", program, VICTIMS / source, "-pthread"]
            run_command(command, status=0, cwd=folder)
        return program

    return compile_victim


@pytest.fixture
def start(library: Path, tmp_path: Path) -> Start:
    """Runs a command in a new folder. `streams`: PARIO_STREAMS; if empty, without pario."""
    number = 0

    def run(
        *command: object,
        streams: str = "",
        env: dict[str, str] | None = None,
        seconds: float = PATIENCE,
    ) -> Done:
        nonlocal number
        number += 1
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        pario = {"LD_PRELOAD": str(library), "PARIO_STREAMS": streams} if streams else {}
        done = run_command(
            list(map(str, command)),
            cwd=folder,
            env=os.environ | pario | (env or {}),
            limit=seconds,
        )
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        return Done(done.returncode, done.stdout, done.stderr, files, folder)

    return run
