"""The examples with Lightning, torchtitan and Accelerate continue from checkpoints of other numbers
of processes, and end with the loss of a training that was not interrupted."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from pario import checkpoint
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"
pytestmark = pytest.mark.exhaustive

#: Packages, and the checkpoints that are files of pario, for each example. Accelerate shards models
#: on accelerators only.
LIBRARIES = {
    "lightning_sharded": ("lightning", "step={}.ckpt"),
    "torchtitan_sharded": ("torchtitan", "checkpoints/step-{}"),
    "accelerate_loader": ("accelerate", None),
}


@pytest.fixture(params=LIBRARIES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an example, alone in a directory."""
    package, _ = LIBRARIES[request.param]
    pytest.importorskip(package, reason=f"{package} is not installed")
    return Path(shutil.copy(EXAMPLES / f"{request.param}.py", tmp_path))


def train(example: Path, processes: int, run: str, steps: int) -> str:
    """Returns the line that an example prints at its end."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command = [*launcher, str(processes), example.name, run, str(steps)]
    done = run_command(command, cwd=example.parent, status=0, limit=5 * PATIENCE)
    (line,) = re.findall(r"^\d processes: .*$", done.stdout, re.M)
    return line


def test_a_training_continues_on_other_ranks(example: Path) -> None:
    train(example, 2, "run", 7)
    resumed, whole = train(example, 3, "run", 11), train(example, 2, "whole", 11)
    assert re.match(r"3 processes: from step.5\S* to step 11,", resumed)
    losses = [float(line.rsplit(" ", 1)[1]) for line in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    _, name = LIBRARIES[example.stem]
    if name:
        state = checkpoint.load(None, example.parent / "run" / name.format(10))
        shapes = [state.shape(one) for one in state]
        assert state.step == 10 and (24, 15) in shapes


def test_without_arguments_an_example_prints_its_usage(example: Path) -> None:
    done = run_command([sys.executable, example.name], cwd=example.parent)
    assert done.returncode == 2 and f"{example.name} RUN STEPS" in done.stderr
