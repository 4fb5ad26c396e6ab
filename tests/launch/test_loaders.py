"""Training loops under ``pario run``: their waits are measured, and the program is not changed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pario.see.analyze.facts import Facts
from pario.see.analyze.loaders import loaders
from pario.see.analyze.rules.base import Candidate
from pario.see.analyze.rules.loading import NO_WORKERS
from pario.see.analyze.split import Times
from pario.see.tables.model import Job
from pario.see.tables.read import read
from tests.launch.conftest import PARIO
from tests.support.commands import run_command

PARIO_LOOP = """
import sys, time
from pario.records import Dataset, Loader
loader = Loader(Dataset(sys.argv[1], format="fixed", size=100), 10, shuffle=True)
for epoch in range(2):
    for batch in loader:
        time.sleep(0.005)
"""
TORCH_LOOP = """
import sys, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 128
    def __getitem__(self, number):
        time.sleep(0.002)
        return torch.tensor(number)
workers, epochs = int(sys.argv[1]), int(sys.argv[2])
loader = torch.utils.data.DataLoader(
    Slow(), batch_size=8, num_workers=workers, persistent_workers=workers > 0
)
seen = [batch.tolist() for epoch in range(epochs) for batch in loader if time.sleep(0.01) is None]
assert seen == [list(range(first, first + 8)) for first in range(0, 128, 8)] * epochs
print(type(iter(loader)).__name__)
"""


def run(place: Path, program: str, *arguments: object, **environment: str) -> tuple[str, Job]:
    (place / "train.py").write_text(program)
    command = [*PARIO, "run", "--no-report", "--", sys.executable, "train.py", *map(str, arguments)]
    done = run_command(command, cwd=place, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout, read([place / "run.pario"])


def find_slow_loops(job: Job) -> list[Candidate]:
    """Applies the rule about loops that load their batches themselves, as if they had waited for
    half of the time: a loaded machine may stop a loop anywhere."""
    job.loaders = [replace(use, waited=1.0, worked=1.0) for use in job.loaders]
    return list(NO_WORKERS.find(Facts(Times(job))))


@pytest.mark.system
def test_loops_over_own_loaders_are_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(100 * 500))
    _, job = run(tmp_path, PARIO_LOOP, tmp_path / "data")
    (row,) = loaders(job)
    assert (row.loader, row.data, row.workers, row.batch_size, row.batches) == (
        "pario.records.Loader",
        str(tmp_path / "data"),
        -1,
        10,
        100,
    )
    assert row.worked >= 98 * 0.005 and row.first_seconds > 0 and 0 <= row.stalled < 1
    (waits,) = (use.waits for use in job.loaders)
    assert waits and sum(waits.values) == pytest.approx(row.first_seconds + row.waited, abs=1e-3)
    assert 0 < waits.start < job.wall - row.worked and any(row.wait_share)
    assert not find_slow_loops(job)


def test_programs_without_loops_have_none(tmp_path: Path) -> None:
    assert loaders(run(tmp_path, "print(1)")[1]) == ()


KERAS_LOOP = """
import os, sys, time
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy
class Slow(keras.utils.PyDataset):
    def __len__(self):
        return 20
    def __getitem__(self, number):
        time.sleep(0.01)
        return numpy.zeros((8, 4), "f4"), numpy.zeros((8, 1), "f4")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(Slow(workers=int(sys.argv[1])), epochs=2, verbose=0)
"""
NOTHING_LEFT = """
import sys
assert not [entry for entry in sys.path if entry.endswith("launch/hook")], sys.path
mark = getattr(sys.modules.get("sitecustomize"), "MARK", None)
print("json" in sys.modules, "ctypes" in sys.modules, mark)
"""


@pytest.mark.parametrize(
    ("customised", "said"),
    [(True, "from the user's\nFalse False 7\n"), (False, "False False None\n")],
)
def test_the_users_sitecustomize_runs(customised: bool, said: str, tmp_path: Path) -> None:
    if customised:
        (tmp_path / "sitecustomize.py").write_text(
            'import os\nMARK = 7\nif "PARIO_TRACE_DIR" in os.environ: print("from the user\'s")\n'
        )
    assert run(tmp_path, NOTHING_LEFT, PYTHONPATH=str(tmp_path))[0] == said


def test_an_error_in_the_users_sitecustomize_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    (tmp_path / "train.py").write_text("print(1)")
    command = [sys.executable, "train.py"]
    plain, under = (
        run_command(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
        for words in (command, [*PARIO, "run", "--no-report", "--", *command])
    )
    assert (
        plain.stderr.count("ValueError: mine") == 1 and under.stderr.count("ValueError: mine") == 2
    )  # pario's own process prints it too
    assert (plain.returncode, plain.stdout) == (under.returncode, under.stdout)


@pytest.mark.system
class TestTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="PyTorch is not installed")

    def test_a_loop_without_workers_is_found(self, tmp_path: Path) -> None:
        said, job = run(tmp_path, TORCH_LOOP, 0, 2)
        assert said == "_SingleProcessDataLoaderIter\n"
        (row,) = loaders(job)
        facts: tuple[Any, ...] = (
            row.loader,
            row.data,
            row.workers,
            row.batch_size,
            row.batches,
            row.loops,
        )
        assert facts == ("DataLoader", "Slow", 0, 8, 32, 1)
        assert row.waited >= 30 * 0.016 and row.worked >= 30 * 0.01
        (candidate,) = find_slow_loops(job)
        assert "num_workers=0" in candidate.title

    def test_workers_are_counted_in_the_loop_alone(self, tmp_path: Path) -> None:
        _, job = run(tmp_path, TORCH_LOOP, 2, 3)
        (row,) = loaders(job)
        assert (row.workers, row.batches) == (2, 48)
        assert not find_slow_loops(job)

    def test_outside_of_pario_run_nothing_is_wrapped(self, tmp_path: Path) -> None:
        program = (
            "import torch.utils.data.dataloader as d; print(hasattr(d._BaseDataLoaderIter.__next__,"
            " '__wrapped__'))"
        )
        done = run_command([sys.executable, "-c", program])
        assert done.stdout == "False\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 2])
def test_keras_data_sets(workers: int, tmp_path: Path) -> None:
    for package in ("torch", "keras"):
        if find_spec(package) is None:  # importing Keras would look for TensorFlow
            pytest.skip(f"{package} is not installed")
    _, job = run(tmp_path, KERAS_LOOP, workers)
    (row,) = loaders(job)
    assert (row.loader, row.data, row.workers) == ("Keras", "Slow", 0 if workers == 1 else workers)
    assert row.batches >= 40  # Keras fetches one batch in advance
    assert bool(find_slow_loops(job)) == (workers == 1)
