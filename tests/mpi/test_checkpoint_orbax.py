"""Orbax's checkpoints in the files of pario, on several processes of JAX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pario import checkpoint
from tests.mpi.conftest import PROGRAMS
from tests.support.commands import Command
from tests.support.ports import reserve_port
from tests.support.waiting import PATIENCE


def run(action: str, directory: Path, count: int) -> None:
    """Runs the processes of a program of JAX; fails where one of them fails."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with reserve_port() as port:
        words = [sys.executable, PROGRAMS / "orbax_processes.py", action, directory, port, count]
        running = [Command([*words, process], **pipes) for process in range(count)]
        done = [one.finish(limit=3 * PATIENCE) for one in running]
    for process, one in enumerate(done):
        last = one.stdout.splitlines()[-1:]  # JAX prints before it
        expected = 0, [f"{action} by process {process} of {count}"]
        assert (one.returncode, last) == expected, one.stderr


@pytest.mark.system
def test_two_processes_save_and_other_numbers_restore(tmp_path: Path) -> None:
    """Also damage, which all processes refuse, and an array that no file can hold."""
    pytest.importorskip("orbax.checkpoint")
    directory = tmp_path / "run"
    run("save", directory, 2)
    file = directory / "2/state/pario/jax.Array/step-00000000.h5"
    state = checkpoint.load(None, file)
    assert state["state/grid"][0].tolist() == [float(number) for number in range(2, 14)]
    assert sorted({block.rank for block in state.blocks("state/grid")}) == [0, 1]
    run("restore", directory, 2)
    run("restore", directory, 1)
    content = bytearray(file.read_bytes())
    content[content.index(state["state/grid"].tobytes()) + 8] ^= 1
    file.write_bytes(content)
    run("restore_damaged", directory, 2)
    run("save_own_array", directory, 2)
