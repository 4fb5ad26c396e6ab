"""Signals and killed ranks while PyTorch's DCP, Orbax and pario's Writer save in the background."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario import checkpoint
from tests.mpi.conftest import PROGRAMS
from tests.mpi.programs.savers_forever import content, open_orbax, save_step_by_orbax
from tests.support.commands import Command, start_command
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:.*not finished; it is skipped"),
]
#: Saver, ranks, signal, whether only the last rank gets it.
FEW = [
    ("async", 2, signal.SIGTERM, False),
    ("dcp", 2, signal.SIGINT, True),
    ("dcp-async", 2, signal.SIGINT, False),
    ("dcp-async", 2, signal.SIGKILL, True),
    ("orbax", 1, signal.SIGKILL, False),
]
ALL = [
    (kind, ranks, number, alone)
    for kind in ("async", "dcp", "dcp-async", "orbax")
    for ranks in (1, 2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    for alone in (False, True)
    if ranks == 2 or not alone
    if kind != "orbax" or ranks == 1
]


@pytest.mark.parametrize(
    ("kind", "ranks", "number", "alone"),
    [
        *FEW,
        *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in ALL if case not in FEW),
    ],
)
def test_a_stopped_save_leaves_the_complete_checkpoints_alone(
    tmp_path: Path, kind: str, ranks: int, number: signal.Signals, alone: bool
) -> None:
    pytest.importorskip("orbax.checkpoint" if kind == "orbax" else "torch")
    complete = save_until_stopped(tmp_path, kind, ranks, number, alone)
    step = check_newest(tmp_path / "ckpt", kind)
    assert complete <= step <= complete + 3
    save_next(tmp_path / "ckpt", kind, step + 1)
    assert check_newest(tmp_path / "ckpt", kind) == step + 1
    unfinished = (".part", ".gone", ".orbax-checkpoint-tmp")
    assert not [path for path in (tmp_path / "ckpt").rglob("*") if path.suffix in unfinished]


def save_until_stopped(
    place: Path, kind: str, ranks: int, number: signal.Signals, alone: bool
) -> int:
    """Sends a signal some time after the first checkpoint is complete. Returns the newest step
    that a rank knows to be complete."""
    program = [sys.executable, PROGRAMS / "savers_forever.py", place, kind]
    notes = [place / f"complete{rank}" for rank in range(ranks)]
    with ExitStack() as stack:
        running: list[Command] = [
            stack.enter_context(
                start_command([*program, rank, ranks], stderr=subprocess.PIPE, text=True)
            )
            for rank in range(ranks)
        ]
        wait_until(
            lambda: (
                all(note.exists() for note in notes)
                or any(one.poll() is not None for one in running)
            ),
            "a checkpoint",
        )
        time.sleep(random.Random(f"{kind}{ranks}{number}{alone}").random() * 0.3)
        for one in running[-1:] if alone else running:
            with suppress(ProcessLookupError):
                os.kill(one.pid, number)
        ends = [one.finish() for one in running]
    assert all(end.returncode for end in ends), [end.stderr for end in ends]
    assert all(note.exists() for note in notes), [end.stderr for end in ends]
    return max(int(note.read_text()) for note in notes)


def check_newest(path: Path, kind: str) -> int:
    """The step of the newest checkpoint, which has the values of that step."""
    if kind == "orbax":
        step, found = restore_by_orbax(path)
    else:
        state = checkpoint.load(None, path)
        step, found = state.step, state["state/T" if "state/T" in state else "T"]
    assert np.array_equal(found, content(step))
    return step


def restore_by_orbax(path: Path) -> tuple[int, Any]:
    import orbax.checkpoint as ocp

    with open_orbax(path) as manager:
        step = manager.latest_step()
        return step, np.asarray(manager.restore(step, args=ocp.args.PyTreeRestore())["T"])


def save_next(path: Path, kind: str, step: int) -> None:
    if kind == "orbax":
        with open_orbax(path) as manager:
            save_step_by_orbax(manager, step)
        return
    with checkpoint.Writer(None, path, durable=False) as writer:
        writer.save(step, {"T": content(step)})
