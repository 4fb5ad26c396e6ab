"""PyTorch's DataLoader over a Loader gives the Loader's batches, epoch after epoch.

One rank's batches are compared with those of a Loader of that rank without PyTorch, whose division
among ranks tests/python/test_records_loader.py checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.records import Batch, Dataset, Loader

pytestmark = pytest.mark.system

COUNT = 203
Epoch = list[list[int]]
#: Worker processes of a DataLoader, and whether they persist.
LOOPS = [(1, False), (1, True), (4, False), (4, True)]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Records of 8 bytes that hold their numbers."""
    np.arange(COUNT, dtype="<u8").tofile(tmp_path / "numbers.bin")
    return Dataset(tmp_path / "numbers.bin", format="fixed", size=8)


def numbers(batch: Batch) -> list[int]:
    assert [int.from_bytes(record, "little") for record in batch] == batch.numbers.tolist()
    return batch.numbers.tolist()  # type: ignore[no-any-return]


def make_loader(dataset: Dataset, rank: int = 0, world: int = 1) -> Loader:
    return Loader(dataset, 4, shuffle=True, seed=3, rank=rank, world=world)


def list_epochs(loader: Loader, count: int) -> list[Epoch]:
    """Without PyTorch."""
    return [list(map(numbers, loader)) for _ in range(count)]


def make_data_loader(torch: Any, dataset: Any, loop: tuple[int, bool]) -> Any:
    workers, persistent = loop
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=None,
        num_workers=workers,
        persistent_workers=persistent,
        collate_fn=numbers,
    )


@pytest.mark.parametrize("world", [1, 2, 4, 8])
@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.xfail(strict=True, reason="worker processes do not know the epoch")
def test_each_pass_is_the_next_epoch(torch: Any, dataset: Dataset, loop: tuple[int, bool], world: int) -> None:
    for rank in {0, world - 1}:
        data_loader = make_data_loader(torch, make_loader(dataset, rank, world).torch(), loop)
        expected = list_epochs(make_loader(dataset, rank, world), 3)
        assert [list(data_loader) for _ in range(3)] == expected


@pytest.mark.parametrize("world", [1, 2, 4, 8])
@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.xfail(strict=True, reason="worker processes do not know the epoch")
def test_after_a_break_the_next_epoch_begins(torch: Any, dataset: Dataset, loop: tuple[int, bool], world: int) -> None:
    for rank in {0, world - 1}:
        data_loader = make_data_loader(torch, make_loader(dataset, rank, world).torch(), loop)
        expected = list_epochs(make_loader(dataset, rank, world), 4)
        taken = (3, None, 1, None)
        assert [list(islice(iter(data_loader), count)) for count in taken] == [
            epoch[:count] for epoch, count in zip(expected, taken, strict=True)
        ]


@pytest.mark.xfail(strict=True, reason="Batches has no length")
@pytest.mark.parametrize("world", [1, 8])
def test_a_data_loader_has_as_many_batches_as_it_says(torch: Any, dataset: Dataset, world: int) -> None:
    data_loader = make_data_loader(torch, make_loader(dataset, 0, world).torch(), (2, False))
    assert len(data_loader) == len(list(data_loader)) == len(data_loader)


def flip(record: memoryview) -> memoryview:
    return memoryview(bytes(record)[::-1])


@pytest.mark.parametrize("workers", [0, 2])
def test_records_stay_bytes_without_a_collate_function(torch: Any, dataset: Dataset, workers: int) -> None:
    def load(loader: Loader) -> Iterator[Any]:
        return iter(torch.utils.data.DataLoader(loader.torch(), None, num_workers=workers))

    expected = next(iter(make_loader(dataset)))
    batch = next(load(make_loader(dataset)))
    assert isinstance(batch, Batch)
    assert (numbers(batch), batch.array().tolist()) == (numbers(expected), expected.array().tolist())
    flipped = next(load(Loader(dataset, 4, shuffle=True, seed=3, transform=flip)))
    assert flipped == [bytes(record)[::-1] for record in expected]
