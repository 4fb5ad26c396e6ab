"""The training example trains on a shuffled file; after a kill it resumes with equal results."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command, start_command
from tests.support.waiting import PATIENCE, wait_until

TRAIN = Path(__file__).parents[2] / "examples" / "training" / "train.py"
PARIO = Path(sys.executable).parent / "pario"

pytestmark = pytest.mark.exhaustive


def accuracies(text: str) -> list[str]:
    """Returns the accuracy of each epoch."""
    return re.findall(r"epoch \d+: ([\d.]+%) right", text)


def test_killed_and_resumed_it_learns_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run_command([sys.executable, TRAIN, "make", "samples", "4000"], cwd=tmp_path, status=0)
    run_command([PARIO, "records", "pack", "samples", "-o", "samples.prec"], cwd=tmp_path, status=0)
    fit = [sys.executable, str(TRAIN), "fit", "samples.prec"]
    whole = run_command(fit, cwd=tmp_path, status=0, limit=3 * PATIENCE).stdout
    assert float(accuracies(whole)[-1].rstrip("%")) > 90

    with start_command(fit, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        wait_until(
            lambda: (tmp_path / "train.pt").exists() or process.poll() is not None,
            "the first checkpoint",
            limit=3 * PATIENCE,
        )
        process.send_signal(signal.SIGKILL)
    resumed = run_command(fit, cwd=tmp_path, status=0, limit=3 * PATIENCE).stdout
    assert "resumes in epoch 0 after record" in resumed
    assert accuracies(resumed)[1:] == accuracies(whole)[1:]


def test_only_activations_recomputed_by_layer_save_memory() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = run_command([sys.executable, TRAIN, "memory", "4096"], status=0, limit=3 * PATIENCE)
    rows = re.findall(r"(.+?)  +(\d+) MB +[\d.]+ s", done.stdout)
    peaks = {name: int(peak) for name, peak in rows}
    assert list(peaks) == ["all kept", "one segment", "each layer"]
    assert peaks["each layer"] < 0.75 * peaks["all kept"]
    assert peaks["one segment"] > 0.9 * peaks["all kept"]


def test_without_arguments_it_prints_its_usage(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    done = run_command([sys.executable, TRAIN], cwd=tmp_path)
    assert done.returncode == 2 and "python train.py fit samples.prec" in done.stderr
