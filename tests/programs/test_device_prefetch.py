"""Batches on a device are those of the loader, and copies run ahead of the program's work."""

from __future__ import annotations

import doctest
import json
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from pario.errors import ParioError
from pario.records import Dataset, Loader, OnDevice, devices, prefetch_to_device

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]

COUNT, BATCH = 53, 4


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Records of 8 bytes that hold their numbers."""
    np.arange(COUNT, dtype="<i8").tofile(tmp_path / "numbers.bin")
    return Dataset(tmp_path / "numbers.bin", format="fixed", size=8)


def make_loader(dataset: Dataset, rank: int = 0, world: int = 1, **options: Any) -> Loader:
    return Loader(dataset, BATCH, shuffle=True, seed=3, rank=rank, world=world, **options)


def numbers_of(batches: Any) -> list[list[int]]:
    return [batch.numpy().copy().view("<i8").ravel().tolist() for batch in batches]


def expected_of(loader: Loader) -> list[list[int]]:
    return [batch.numbers.tolist() for batch in loader]


@pytest.mark.parametrize("ahead", [0, 1, 3, 100])
def test_epochs_are_those_of_the_loader(torch: Any, dataset: Dataset, ahead: int) -> None:
    plain, moved = make_loader(dataset), prefetch_to_device(make_loader(dataset), "cpu", ahead)
    assert len(moved) == len(plain)
    for _ in range(3):
        assert numbers_of(moved) == expected_of(plain)
    assert moved.stats.records == plain.stats.records == 3 * COUNT


@pytest.mark.parametrize("ahead", [0, 1, 3, 100])
@pytest.mark.parametrize("taken", [0, 1, 5, 13, 14])
def test_the_state_counts_the_batches_returned(
    torch: Any, dataset: Dataset, taken: int, ahead: int
) -> None:
    plain, moved = make_loader(dataset), prefetch_to_device(make_loader(dataset), "cpu", ahead)
    begun = numbers_of(islice(moved, taken))
    assert begun == [batch.numbers.tolist() for batch in islice(plain, taken)]
    state = json.loads(json.dumps(moved.state_dict()))
    assert state == plain.state_dict()
    rest = expected_of(plain)
    assert numbers_of(moved) == rest  # after a break
    again = prefetch_to_device(make_loader(dataset), "cpu", ahead)
    again.load_state_dict(state)
    assert numbers_of(again) == rest


def test_a_state_continues_on_another_number_of_ranks(torch: Any, dataset: Dataset) -> None:
    two = [prefetch_to_device(make_loader(dataset, rank, 2), "cpu") for rank in range(2)]
    begun = [numbers_of(islice(one, 3)) for one in two]
    one = prefetch_to_device(make_loader(dataset), "cpu")
    one.load_state_dict(two[0].state_dict())
    in_order = [batch for step in zip(*begun, strict=True) for batch in step]
    assert in_order + numbers_of(one) == expected_of(make_loader(dataset))


def test_pipelines_give_dictionaries_of_tensors(torch: Any, dataset: Dataset) -> None:
    def windows() -> Any:
        tokens = make_loader(dataset, transform=lambda record: np.frombuffer(record, "<i8"))
        return tokens.pack_tokens(5)

    plain, moved = windows(), prefetch_to_device(windows(), "cpu")
    begun = list(islice(moved, 1))
    assert moved.state_dict() == (next(iter(plain)) and plain.state_dict())
    plain.load_state_dict(prefetch_to_device(windows(), "cpu").state_dict())
    for found, expected in zip([*begun, *moved], plain, strict=True):
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            assert torch.is_tensor(found[name])
            assert found[name].tolist() == array.tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_reads_it(torch: Any, dataset: Dataset, workers: int) -> None:
    batches = prefetch_to_device(make_loader(dataset), "cpu").torch()
    loop = torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers)
    assert numbers_of(islice(loop, 3)) == expected_of(make_loader(dataset))[:3]
    state = batches.state_after(3)
    resumed = prefetch_to_device(make_loader(dataset), "cpu")
    resumed.load_state_dict(state)
    assert numbers_of(resumed) == expected_of(make_loader(dataset))[3:]


class Pair(NamedTuple):
    values: Any
    name: str


def make_tree(records: list[Any]) -> Any:
    values = np.stack([np.frombuffer(record, "<i8") for record in records])
    flipped = values[::-1]
    return {"a": [values, "text"], "b": Pair(flipped, "b"), "c": np.array(["x"]), "d": 3}


def test_values_without_numbers_stay(torch: Any, dataset: Dataset) -> None:
    loader = Loader(dataset, BATCH, collate=make_tree)
    tree = next(iter(prefetch_to_device(loader, torch.device("cpu"))))
    assert torch.is_tensor(tree["a"][0])
    assert tree["a"][0].tolist() == [[0], [1], [2], [3]]
    assert tree["a"][1] == "text"
    assert isinstance(tree["b"], Pair)
    assert tree["b"].values.tolist() == [[3], [2], [1], [0]]
    assert tree["c"].tolist() == ["x"]
    assert tree["d"] == 3


class Stream:
    """A stream of a GPU that is not here: notes what the program asks of it."""

    notes: ClassVar[list[Any]] = []

    def __init__(self, name: Any) -> None:
        self.name = "side" if name else "program"
        self.events = 0

    def record_event(self) -> Any:
        self.events += 1
        return self.events

    def wait_event(self, event: int) -> None:
        self.notes.append((self.name, "waits", event))

    def __enter__(self) -> None:
        self.notes.append((self.name, "begins"))

    def __exit__(self, *_: Any) -> None:
        self.notes.append((self.name, "ends"))


def test_copies_to_a_gpu_run_ahead_on_a_stream_of_their_own(
    torch: Any, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, pinned, original = Stream.notes, [], torch.empty

    def empty(*shape: Any, dtype: Any = None, pin_memory: bool = False) -> Any:
        pinned.append(pin_memory)
        return original(*shape, dtype=dtype)

    def to(tensor: Any, device: Any, non_blocking: bool = False) -> Any:
        notes.append(("copy", device.type, non_blocking))
        return tensor

    def record_stream(tensor: Any, stream: Any) -> None:
        notes.append(("memory", stream.name))

    program = Stream(None)
    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "record_stream", record_stream)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: program)
    notes.clear()
    batches = iter(prefetch_to_device(Loader(dataset, BATCH), "cuda:0"))
    copying = [("side", "begins"), ("copy", "cuda", True), ("side", "ends")]
    next(batches)
    assert notes == [*copying, *copying, ("program", "waits", 1), ("memory", "program")]
    notes.clear()
    next(batches)
    assert notes == [*copying, ("program", "waits", 2), ("memory", "program")]
    assert pinned == [True] * 3


def test_jax_has_arrays_on_its_devices(jax: Any, dataset: Dataset) -> None:
    device = jax.devices()[0]
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    for place in (device, sharding):
        loader = Loader(dataset, BATCH, collate=make_tree, drop_last=True)
        found: list[Any] = []
        for tree in prefetch_to_device(loader, place, batches=2):
            assert isinstance(tree["a"][0], jax.Array)
            assert tree["a"][0].devices() == {device}
            assert tree["c"].tolist() == ["x"]
            found += tree["a"][0].ravel().tolist()
        assert found == list(range(COUNT - COUNT % BATCH))
    records = next(iter(prefetch_to_device(Loader(dataset, BATCH), device)))
    assert np.asarray(records).view("<i8").ravel().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("device", ["nowhere", "cuda:x", 3.5, None])
def test_a_device_that_cannot_be_used_is_named(torch: Any, dataset: Dataset, device: Any) -> None:
    with pytest.raises(ParioError, match=f"prefetch_to_device: device {device!r}: expected"):
        prefetch_to_device(Loader(dataset), device)


def test_a_missing_gpu_is_named(torch: Any, dataset: Dataset) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ParioError, match="prefetch_to_device: device 'cuda': expected a usable"):
        prefetch_to_device(Loader(dataset), "cuda")


def test_a_number_of_batches_is_expected(torch: Any, dataset: Dataset) -> None:
    with pytest.raises(ParioError, match="prefetch_to_device: batches"):
        prefetch_to_device(Loader(dataset), "cpu", batches=-1)


def test_records_of_several_lengths_are_an_error(torch: Any, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\nthree\n")
    moved = prefetch_to_device(Loader(tmp_path / "lines.txt", 2), "cpu")
    assert isinstance(moved, OnDevice)
    with pytest.raises(ParioError, match="records of a batch differ in length, from 3 to 5 bytes"):
        next(iter(moved))


def test_the_example_runs(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(devices)
    assert (result.failed, result.attempted) == (0, 5)
