"""Several data sets mixed by weights, in an order that is a function of seed and sample number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pario._native import RecordOrder
from pario.errors import ParioError
from pario.records.dataset import Dataset, Source, open_dataset
from pario.records.group_loader import GroupedFiles
from pario.records.groups import GroupedFile
from pario.records.orders import Numbers, make_order
from pario.records.state import check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Samples among which each data set has a fixed number, in random order.
BLOCK = 4096
#: Weights are multiples of 1 / _WHOLE, so that shares are exact on every machine.
_WHOLE = 1 << 32
#: Data sets of a mixture at most, so that the shares of a block are never negative.
_MOST = 64
#: Added to the seed for the choice of data sets, which then differs from the order of one of them.
_CHOICE = 0x9E3779B97F4A7C15


class Mixture:
    """Data sets that a Loader mixes by weights.

    Of each 4,096 samples a fixed number is of each data set. Each data set has its own order and
    epochs: its samples come as from a Loader of its own, and begin anew at its end.

    Parameters
    ----------
    parts : sequence of (Dataset or path, float)
        The data sets, and their shares of the samples, in any unit.
    length : int
        Samples of an epoch; 0: as many as the data sets have together.

    Raises
    ------
    ParioError
        A weight is not positive, a data set is empty, or there are none, or more than 64.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pario.records import Loader, Mixture
    >>> _ = Path("many.txt").write_text("many\\n" * 3), Path("few.txt").write_text("few\\n")
    >>> mixture = Mixture([("many.txt", 3), ("few.txt", 1)], length=4096)
    >>> loader = Loader(mixture, 4096, shuffle=True, seed=1, decode=True)
    >>> texts = [sample["text"] for sample in next(iter(loader))]
    >>> texts.count("many"), texts.count("few")
    (3072, 1024)
    """

    def __init__(
        self,
        parts: Sequence[tuple[Source, float]],
        length: int = 0,
    ) -> None:
        if not 1 <= len(parts) <= _MOST:
            raise ParioError(f"Mixture of {len(parts)} data sets: expected 1 to {_MOST}")
        for part in parts:
            if not isinstance(part, tuple | list) or len(part) != 2:
                raise ParioError(f"Mixture: {part!r}: expected a data set and its weight")
        self.datasets = [open_dataset(one) for one, _ in parts]
        for one, weight in zip(self.datasets, [weight for _, weight in parts], strict=True):
            if not (weight > 0 and math.isfinite(weight)):
                raise ParioError(f"Mixture: {one.path}: weight {weight!r}: expected more than 0")
            if not len(one):
                raise ParioError(f"Mixture: {one.path} has no records")
        total = math.fsum(weight for _, weight in parts)
        self._weights = [round(weight / total * _WHOLE) for _, weight in parts]
        together = sum(map(len, self.datasets))
        self._length = check_whole("Mixture: length", length, 0, 2**56) or together

    def __len__(self) -> int:
        """Samples of an epoch."""
        return self._length

    def facts(self) -> list[int]:
        """Sizes and weights of the data sets, which determine the order."""
        return [
            number
            for pair in zip(map(len, self.datasets), self._weights, strict=True)
            for number in pair
        ]

    def shares(self, samples: int) -> list[int]:
        """How many of the first ``samples`` samples are of each data set; a whole number of
        blocks."""
        counts = [samples * weight // _WHOLE for weight in self._weights]
        counts[self._largest] += samples - sum(counts)
        return counts

    @property
    def _largest(self) -> int:
        return self._weights.index(max(self._weights))

    def order(self, datasets: Sequence[Dataset], seed: int, shuffle: bool) -> Numbers:
        """The function that returns the records of the samples [first, last) of all epochs.

        ``datasets``: those of the mixture, opened in any way. Records of each are numbered after
        those of the one before.
        """
        return _Order(self, datasets, seed, shuffle).numbers


class _Order:
    """The order of a mixture's samples for one seed."""

    def __init__(
        self, mixture: Mixture, datasets: Sequence[Dataset], seed: int, shuffle: bool
    ) -> None:
        import numpy as np

        self._mixture, self._datasets = mixture, datasets
        self._seed, self._shuffle = seed, shuffle
        self._counts = [len(one) for one in datasets]
        self._begins = np.cumsum([0, *self._counts[:-1]]).astype("u8")
        self._choose = lru_cache(maxsize=2)(self._choose_block)
        self._order_of = lru_cache(maxsize=2 * len(datasets))(self._make_order)

    def numbers(self, first: int, last: int) -> NDArray[Any]:
        """The records of the samples [first, last)."""
        import numpy as np

        out = np.empty(last - first, dtype=np.uint64)
        for block in range(first // BLOCK, -(-last // BLOCK)):
            chosen, ranks = self._choose(block)
            begin, end = max(first, block * BLOCK), min(last, (block + 1) * BLOCK)
            which = slice(begin - block * BLOCK, end - block * BLOCK)
            part = out[begin - first : end - first]
            for dataset in np.unique(chosen[which]).tolist():
                own = chosen[which] == dataset
                part[own] = self._records(dataset, ranks[which][own])
        return out

    def _choose_block(self, block: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each sample of a block its data set, and how many samples before it are of it."""
        import numpy as np

        before, after = (self._mixture.shares(BLOCK * at) for at in (block, block + 1))
        counts = np.subtract(after, before)
        seed = (self._seed + _CHOICE) % 2**64
        places = _permute("shuffled", seed, block % 2**32, BLOCK).numbers(0, BLOCK)
        chosen = np.repeat(np.arange(len(counts)), counts)[places.astype("i8")]
        ranks = np.empty(BLOCK, dtype=np.int64)
        for dataset, count in enumerate(counts.tolist()):
            ranks[chosen == dataset] = np.arange(count) + before[dataset]
        return chosen, ranks

    def _records(self, dataset: int, ranks: NDArray[Any]) -> NDArray[Any]:
        """The records of a data set's samples, which are numbered over all of its epochs."""
        import numpy as np

        count = self._counts[dataset]
        out = np.empty(len(ranks), dtype=np.uint64)
        for epoch in np.unique(ranks // count).tolist():
            own = ranks // count == epoch
            places = ranks[own] % count
            order, first = self._order_of(dataset, epoch), int(places[0])
            found = order.numbers(first, int(places[-1]) + 1)
            out[own] = found[places - first] + self._begins[dataset]
        return out

    def _make_order(self, dataset: int, epoch: int) -> RecordOrder:
        count, file = self._counts[dataset], self._datasets[dataset].file
        if not self._shuffle:
            return _permute("as they lie", self._seed, 0, count)
        files = GroupedFiles([file]) if isinstance(file, GroupedFile) else None
        if files and files.default_mix():
            return files.mixed_order(self._seed, epoch % 2**32, files.default_mix())
        return _permute("shuffled", self._seed, epoch % 2**32, count)


def _permute(name: str, seed: int, epoch: int, count: int) -> RecordOrder:
    return make_order((name, seed, epoch, 1, 1), [count])
