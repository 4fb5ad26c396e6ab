"""Checkpoints by ranks of PyTorch, without an MPI."""

import os
import sys
from pathlib import Path

import pytest

from pario import checkpoint
from tests.mpi.conftest import PROGRAMS, ROOT
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE


@pytest.mark.system
def test_divided_tensors_are_loaded_however_they_were_divided(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(PROGRAMS / "sharded.py"),
    ]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}  # the program uses tests.support
    done = run_command([*command, tmp_path], env=variables, limit=5 * PATIENCE)
    assert (done.returncode, done.stdout) == (
        0,
        "save(step 4): rank 1 did not come within 1.00 s\n",
    ), done.stderr
    loaded = checkpoint.load_state_dict(
        None, tmp_path, into={"model": {"same": torch.zeros(3, 4)}}
    )  # by one process
    assert loaded["model"]["rows"].tolist() == torch.arange(35.0).reshape(7, 5).tolist()
    assert loaded["model"]["columns"].dtype == torch.bfloat16
    assert loaded["model"]["same"].tolist() == torch.arange(12.0).reshape(3, 4).tolist()
