"""PyTorch's distributed checkpoint API on several processes, in the files of pario."""

import sys
from pathlib import Path

import pytest

from pario import checkpoint
from tests.mpi.conftest import PROGRAMS
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE


@pytest.mark.system
@pytest.mark.parametrize(
    "counts", [(2, 4), pytest.param((4, 3, 2), marks=pytest.mark.exhaustive)], ids=str
)
def test_dcp_saves_and_loads_on_other_numbers_of_ranks(
    tmp_path: Path, counts: tuple[int, ...]
) -> None:
    """FSDP2 and its optimizer, DTensors, values of one rank, in the background; and a killed rank
    leaves the checkpoint before it."""
    pytest.importorskip("torch")
    command = [sys.executable, PROGRAMS / "dcp_ranks.py", tmp_path, *counts]
    done = run_command(command, limit=5 * PATIENCE)
    assert (done.returncode, done.stdout) == (0, f"saved by {counts[0]}\n"), done.stderr
    state = checkpoint.load(None, tmp_path / "ckpt")
    assert state["state/grid"].tolist() == [[5.0 * row + i for i in range(5)] for row in range(7)]
    blocks = [block.box.shape for block in state.blocks("state/model.0.weight")]
    assert len(blocks) == counts[0] and sum(rows for rows, _ in blocks) == 7


@pytest.mark.exhaustive
def test_accelerate_saves_and_loads_shards_on_other_numbers_of_processes(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    printed = [
        run_command(
            [*launcher, count, PROGRAMS / "accelerate_ranks.py", action, tmp_path],
            status=0,
            limit=5 * PATIENCE,
        ).stdout
        for action, count in (("save", 2), ("load", 3))
    ]
    assert printed[0] == printed[1] and printed[0].endswith(" 0.125\n")
    state = checkpoint.load(None, tmp_path / "pytorch_model_fsdp_0")
    assert state.shape("state/model.weight") == (7, 5)
