"""The code of docs/training.md runs, with the results that the page promises."""

from __future__ import annotations

import importlib
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pario import records
from pario.cli import main
from pario.records import Batch, Dataset, Loader, Mixture
from tests.support.commands import run_command
from tests.support.pages import read_code

COUNT, VALUES = 320, 5
CODE = read_code("training.md")
LOADER, DATA_LOADER = "The loader", "PyTorch's DataLoader"
DEVICES, TRANSFORMERS = "Batches on a GPU", "Transformers"
ARRAYS, REPORT = "Keras, TensorFlow, JAX", "Waiting times of a program"
MEMORY = "Memory for a larger batch"
SAMPLES, MIXTURES = "Samples", "Mixtures"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with ``train.prec``: packed files of five numbers."""
    (tmp_path / "images").mkdir()
    values = np.random.default_rng(1).normal(size=(COUNT, VALUES)).astype("<f4")
    for number, row in enumerate(values):
        row.tofile(tmp_path / "images" / f"{number:03}.bin")
    monkeypatch.chdir(tmp_path)
    assert main(["records", "pack", "images/", "-o", "train.prec"]) == 0
    return tmp_path


def run_arrays(number: int, **names: Any) -> dict[str, Any]:
    """Runs the code that creates a loader of arrays, and one of the blocks after it."""
    names |= {"numpy": np, "Loader": Loader, "dataset": Dataset("train.prec")}
    exec(CODE[ARRAYS][0], names)
    exec(CODE[ARRAYS][number], names)
    return names


def test_all_code_of_the_page_is_run() -> None:
    assert {heading: len(blocks) for heading, blocks in CODE.items()} == {
        LOADER: 1,
        SAMPLES: 2,
        MIXTURES: 1,
        REPORT: 1,  # no code
        DATA_LOADER: 1,
        DEVICES: 1,
        TRANSFORMERS: 1,
        ARRAYS: 4,
        MEMORY: 2,  # the second is output
    }


@pytest.mark.system
def test_the_loader(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    names: dict[str, Any] = {"rank": 0, "world": 1}
    exec(CODE[LOADER][0], names)
    assert names["values"].shape == (32, VALUES)
    assert capsys.readouterr().out.startswith("waited ")


@pytest.mark.system
def test_batches_on_a_device(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    original, devices = records.prefetch_to_device, []

    def prefetch_to_cpu(loader: Loader, device: str) -> records.OnDevice:
        devices.append(device)
        return original(loader, "cpu")

    monkeypatch.setattr(records, "prefetch_to_device", prefetch_to_cpu)
    names = {"torch": torch, "loader": Loader("train.prec", 32)}
    exec(CODE[DEVICES][0], names)
    assert names["values"].shape == (32, VALUES)
    assert devices == ["cuda"]


def test_samples(place: Path) -> None:
    with tarfile.open("train.tar", "w") as archive:
        for number in range(10):
            content = f'{{"width": {254 + number}}}'.encode()
            header = tarfile.TarInfo(f"{number}.json")
            header.size = len(content)
            archive.addfile(header, BytesIO(content))
    names: dict[str, Any] = {"Loader": Loader, "augment": lambda one: one}
    exec(CODE[SAMPLES][0], names)
    (batch,) = names["loader"]
    assert sorted(sample["json"]["width"] for sample in batch) == list(range(256, 264))


def test_known_lengths(place: Path) -> None:
    lengths = np.arange(1, 101)
    (place / "tokens.jsonl").write_text("".join(f'{{"tokens": {[7] * n}}}\n' for n in lengths))
    names: dict[str, Any] = {"loader": Loader("tokens.jsonl", 8, decode=True), "array": lengths}
    by_tokens, packed = CODE[SAMPLES][1].splitlines()
    assert sum(map(len, eval(by_tokens, names))) == 100
    windows = np.concatenate([batch["tokens"] for batch in eval(packed, names)])
    assert windows.shape == ((lengths + 1).sum() // 2048, 2048)


def test_mixtures(place: Path) -> None:
    for name, count in (("web", 50), ("books", 20), ("code", 10)):
        (place / f"{name}.jsonl").write_text(f'{{"of": "{name}"}}\n' * count)
    names = {"Loader": Loader, "Mixture": Mixture, "code": Dataset("code.jsonl")}
    exec(CODE[MIXTURES][0], names)
    assert sum(map(len, names["loader"])) == 80


@pytest.mark.system
def test_a_data_loader(place: Path) -> None:
    """Runs the code as a program, as its worker processes need, and resumes it from its state."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (place / "train.py").write_text(
        "from pario.records import Dataset, Loader\n"
        'loader = Loader(Dataset("train.prec"), 2, shuffle=True)\n'
        f"{CODE[DATA_LOADER][0]}\n"
        "loader.load_state_dict(state)\n"
        "print(loader.epoch, sum(1 for _ in data_loader), type(batch).__name__)\n"
    )
    done = run_command([sys.executable, "-W", "ignore", "train.py"], cwd=place, status=0)
    assert done.stdout == f"2 {COUNT // 2 - 100} {Batch.__name__}\n"


@pytest.mark.exhaustive
def test_a_trainer_of_transformers_continues_in_the_middle_of_an_epoch(place: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

    def stack(records: list[memoryview]) -> dict[str, Any]:
        return {"values": torch.tensor(np.stack([np.frombuffer(one, "<f4") for one in records]))}

    def make_loader() -> Loader:
        return Loader(Dataset("train.prec"), 32, shuffle=True, seed=1, collate=stack)

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(VALUES, 1)

        def forward(self, values: Any) -> dict[str, Any]:
            seen.append(values.tolist())
            return {"loss": self.layer(values).square().mean()}

    seen: list[Any] = []
    for steps in (14, 20):
        arguments = transformers.TrainingArguments(
            "run", max_steps=steps, use_cpu=True, report_to=[], disable_tqdm=True
        )
        names = {"loader": make_loader(), "model": Model(), "arguments": arguments}
        exec(CODE[TRANSFORMERS][0], names)
        names["trainer"].train(resume_from_checkpoint=steps == 20)
    loader = make_loader()
    assert seen == [batch["values"].tolist() for _ in range(2) for batch in loader]


@pytest.mark.system
def test_each_layer_is_computed_again() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    importlib.import_module("torch.utils.checkpoint")
    layers = [torch.nn.Linear(3, 3) for _ in range(2)]
    calls = []
    for layer in layers:
        layer.register_forward_pre_hook(lambda *_: calls.append(1))
    names = {
        "torch": torch,
        "self": SimpleNamespace(hidden=layers),
        "values": torch.ones(1, 3, requires_grad=True),
    }
    exec(CODE[MEMORY][0], names)
    names["values"].sum().backward()
    assert len(calls) == 4
    assert all(layer.weight.grad is not None for layer in layers)


@pytest.mark.exhaustive
def test_keras(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert run_arrays(1, model=model)["loader"].stats.batches == 2 * COUNT // 32


@pytest.mark.exhaustive
def test_tensorflow(place: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    inputs, targets = next(iter(run_arrays(2, tf=tf)["tensors"]))
    assert (inputs.shape, targets.shape) == ((32, VALUES - 1), (32, 1))


@pytest.mark.system
def test_a_loop_over_arrays_of_jax(place: Path) -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    shapes = []
    run_arrays(3, jax=jax, step=lambda x, y: shapes.append((x.shape, y.shape)))
    assert shapes == COUNT // 32 * [((32, VALUES - 1), (32, 1))]
