"""Names the files of a PyTorch DataLoader to pario's library before the program opens them.

Runs in the program with ``PARIO_LOADER_AHEAD``, with the standard library only. A map-style dataset
with a list of its files, and a sampler of PyTorch's own, tell which files an epoch opens, in which
order: the indices of the next batches are drawn a little earlier, and are those that the loader
would have drawn. The library copies the files (``pario_read_ahead``); an opening that finds no copy
is the program's own.
"""

# ruff: noqa: PTH112, PTH113, PTH118

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    #: The files that a sample opens.
    Files = Callable[[int], list[str]]

#: Samples whose files are named ahead of those that the loader has asked for.
_SAMPLES = 1024
_TRIED = 3  # samples that decide about a list


class Ahead:
    """The batches of indices of an epoch, drawn ahead."""

    def __init__(self, batches: Iterator[Any], count: int, files: Files, send: Any) -> None:
        self._batches, self._files, self._send = batches, files, send
        # The last batch ends the sampler, which may then draw from its generator again.
        self._left = count - 1
        self._drawn: deque[Any] = deque()
        self._samples = 0

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        names: list[str] = []
        while self._samples < _SAMPLES and self._left > 0:
            self._left -= 1
            batch = next(self._batches)
            indices = batch if isinstance(batch, list) else [batch]
            names += (name for index in indices for name in self._files(index))
            self._samples += len(indices)
            self._drawn.append((batch, len(indices)))
        if names:
            text = b"".join(os.fsencode(name) + b"\0" for name in names)
            self._send(text, len(text))
        if not self._drawn:
            return next(self._batches)
        batch, size = self._drawn.popleft()
        self._samples -= size
        return batch


def watch(module: Any) -> None:
    """Draw the indices of all DataLoaders of module ``torch.utils.data.dataloader`` ahead."""
    import ctypes

    send = getattr(ctypes.CDLL(None), "pario_read_ahead", None)
    if send is None:
        return
    send.argtypes, send.restype = (ctypes.c_char_p, ctypes.c_size_t), None
    original = module._BaseDataLoaderIter._next_index

    def _next_index(self: Any) -> Any:
        # A new epoch has a new iterator.
        if self._sampler_iter is not self.__dict__.get("_pario_indices"):
            self._sampler_iter = self._pario_indices = _draw_ahead(self, send)
        return original(self)

    module._BaseDataLoaderIter._next_index = _next_index


def _draw_ahead(iterator: Any, send: Any) -> Any:
    """Return the iterator of the indices that draws ahead, or the loader's own."""
    batches = iterator._sampler_iter
    try:
        sampler = iterator._index_sampler
        if not _is_known(sampler) or not (files := _files_of(iterator._dataset)):
            return batches
        return Ahead(batches, len(sampler), files, send)
    except Exception:  # an unknown dataset is left alone
        return batches


def _is_known(sampler: Any) -> bool:
    """Tell whether a sampler draws all its indices at the beginning of an epoch."""
    from torch.utils import data
    from torch.utils.data.distributed import DistributedSampler

    if type(sampler) is data.BatchSampler:
        sampler = sampler.sampler
    if type(sampler) is data.RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    return type(sampler) in (
        data.SequentialSampler, data.SubsetRandomSampler, data.WeightedRandomSampler,
        DistributedSampler,
    )  # fmt: skip


def _files_of(dataset: Any) -> Files | None:
    """Return the function that gives the files of a sample; None if the dataset has no list."""
    from torch.utils import data

    if type(dataset) is data.Subset:
        inner = _files_of(dataset.dataset)
        return (lambda index: inner(dataset.indices[index])) if inner else None
    if type(dataset) is data.ConcatDataset:
        return _files_of_all([_files_of(one) for one in dataset.datasets], dataset.cumulative_sizes)
    lists = [
        names
        for value in list(vars(dataset).values())
        if hasattr(value, "__getitem__") and hasattr(value, "__len__")
        if not isinstance(value, (str, bytes, dict)) and len(value) == len(dataset)
        if (names := _names_in(value, dataset))
    ]
    return (lambda index: [names(index) for names in lists]) if lists else None


def _files_of_all(parts: Sequence[Files | None], ends: Sequence[int]) -> Files | None:
    if not all(parts):
        return None

    def files(index: int) -> list[str]:
        part = bisect_right(ends, index)
        function = parts[part]
        return function(index - (ends[part - 1] if part else 0)) if function else []

    return files


def _names_in(values: Any, dataset: Any) -> Callable[[int], str] | None:
    """Return the function that gives the name of a sample's file by a list of names, or of tuples
    that begin with names; None if they name no files."""
    tried = range(0, len(values), max(1, len(values) // _TRIED))[:_TRIED]
    first = [_name_of(values[index]) for index in tried]
    if not first or not all(first):
        return None
    folders = [
        os.fspath(value)
        for value in list(vars(dataset).values())
        if isinstance(value, (str, os.PathLike)) and os.path.isdir(value)
    ]
    for folder in ["", *folders]:
        if all(os.path.isfile(os.path.join(folder, name)) for name in first):
            return lambda index: os.path.join(folder, _name_of(values[index]))
    return None


def _name_of(value: Any) -> str:
    """Return the name in an element of a list, empty if it is none."""
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
