"""The training example learns from a shuffled file, and goes on where it was killed as if nothing had been."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAIN = Path(__file__).parents[2] / "examples" / "training" / "train.py"
PARIO = Path(sys.executable).parent / "pario"

pytestmark = pytest.mark.slow


def learned(text: str) -> list[str]:
    """Per epoch, what part was right."""
    return re.findall(r"epoch \d+: ([\d.]+%) right", text)


def test_killed_and_resumed_it_learns_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    subprocess.run([sys.executable, TRAIN, "make", "samples", "4000"], cwd=tmp_path, check=True)
    subprocess.run([PARIO, "records", "pack", "samples", "-o", "samples.prec"], cwd=tmp_path, check=True, capture_output=True)
    fit = [sys.executable, str(TRAIN), "fit", "samples.prec"]
    whole = subprocess.run(fit, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300).stdout
    assert float(learned(whole)[-1].rstrip("%")) > 90

    with subprocess.Popen(fit, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as killed:
        while killed.poll() is None and not (tmp_path / "train.pt").exists():
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    resumed = subprocess.run(fit, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300).stdout
    assert "goes on in epoch 0 behind record" in resumed
    assert learned(resumed)[1:] == learned(whole)[1:]
