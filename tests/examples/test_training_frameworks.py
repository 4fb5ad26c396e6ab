"""The training examples for JAX and Keras run when they are copied alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import Command, run_command
from tests.support.ports import reserve_port
from tests.support.waiting import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"
RESUMED = "resumes after step 25, in epoch 0"

pytestmark = pytest.mark.system


def need(*packages: str) -> None:
    """Skips a test without the packages, which are not imported: Keras would choose a backend."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def copy_example(name: str, place: Path) -> list[str]:
    """The command that runs a copy of an example."""
    shutil.copy(EXAMPLES / name, place)
    return [sys.executable, name]


def fit_on_two(command: list[str], place: Path, steps: int) -> list[str]:
    """Trains on two processes; returns the last line of each."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with reserve_port() as port:
        words = [*command, "fit", "samples.bin", steps, f"127.0.0.1:{port}", 2]
        running = [Command([*words, process], cwd=place, **pipes) for process in range(2)]
        done = [one.finish(limit=3 * PATIENCE) for one in running]
    for one in done:
        assert one.returncode == 0 and RESUMED in one.stdout, one.stderr
    return [one.stdout.splitlines()[-1] for one in done]


def test_jax_resumes_with_equal_results_on_two_processes(tmp_path: Path) -> None:
    need("jax", "orbax")
    command = copy_example("jax_train.py", tmp_path)
    run_command([*command, "make", "samples.bin"], cwd=tmp_path, status=0)

    def fit(steps: int) -> list[str]:
        words = [*command, "fit", "samples.bin", steps]
        done = run_command(words, cwd=tmp_path, status=0, limit=3 * PATIENCE)
        return done.stdout.splitlines()

    whole = fit(45)
    (tmp_path / "checkpoints").rename(tmp_path / "whole")
    assert [line.split(":")[0] for line in whole] == ["step 20", "step 40", "step 45"]
    fit(25)
    assert fit_on_two(command, tmp_path, 45) == [whole[-1]] * 2
    file = tmp_path / "checkpoints/45/state/pario/jax.Array/step-00000000.h5"
    assert file.is_file()


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras_reads_whole_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    need("keras", backend)
    monkeypatch.setenv("KERAS_BACKEND", backend)
    command = copy_example("keras_train.py", tmp_path)
    run_command([*command, "make", "samples.bin"], cwd=tmp_path, status=0)
    words = [*command, "fit", "samples.bin", "3"]
    done = run_command(words, cwd=tmp_path, status=0, limit=3 * PATIENCE)
    rows = re.findall(r"epoch (\d): ([\d.]+)% right, (\d+) batches", done.stdout)
    assert [(epoch, count) for epoch, _, count in rows] == [(str(n), "64") for n in range(3)]
    assert float(rows[-1][1]) > 85 and done.stdout.endswith("\n192 batches read\n")


@pytest.mark.parametrize(
    ("name", "packages"), [("jax_train.py", ("jax", "orbax")), ("keras_train.py", ("jax", "keras"))]
)
def test_without_arguments_an_example_prints_its_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, packages: tuple[str, ...]
) -> None:
    need(*packages)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    done = run_command(copy_example(name, tmp_path), cwd=tmp_path, limit=3 * PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"python {name} make samples.bin" in done.stderr
