"""Data sets and loaders as PyTorch takes them. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch.utils.data

if TYPE_CHECKING:
    from pario.records.dataset import Dataset
    from pario.records.loader import Loader


class Records(torch.utils.data.Dataset[Any]):
    """Records by number, as tensors of bytes, for samplers; those of a batch are read together."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> torch.Tensor:
        return _tensor(self.dataset[number])

    def __getitems__(self, numbers: Sequence[int]) -> list[torch.Tensor]:
        return [_tensor(record) for record in self.dataset[numbers]]


class Batches(torch.utils.data.IterableDataset[Any]):
    """The batches of a Loader; the workers of a DataLoader take them in turns."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        batches = iter(self.loader) if worker is None else self.loader.part(worker.num_workers, worker.id)
        return map(_copy_views, batches)


def _copy_views(value: Any) -> Any:
    """Bytes in place of views of records, of which a DataLoader makes lists of integers."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {key: _copy_views(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_copy_views, value))
    return value


def _tensor(record: memoryview) -> torch.Tensor:
    return torch.frombuffer(bytearray(record), dtype=torch.uint8) if len(record) else torch.empty(0, dtype=torch.uint8)
