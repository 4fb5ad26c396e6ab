"""The records of a Loader in the order of each epoch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pario._native import RecordFile, RecordLoader, start_loader
from pario.errors import ParioError
from pario.machine import free_memory
from pario.records.dataset import Dataset
from pario.records.group_loader import GroupedFiles, GroupLoader
from pario.records.groups import GroupedFile
from pario.records.lengths import Lengths, list_lengths
from pario.records.mixture import Mixture
from pario.records.number_loader import load_numbers, share_batches
from pario.records.orders import Numbers, Order, make_order
from pario.records.state import check_whole, describe_files
from pario.records.stream import BatchStream, Reading, Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PERMUTATION = (
    "Loader: in a full permutation each record may need a group of about {} records decoded;"
    " groups=N mixes the records of N groups, and pario records convert makes a file whose records"
    " can be read one by one"
)


class NamedOrder(NamedTuple):
    """The name of an order, and two numbers that belong to it."""

    name: str
    blocks: tuple[int, int] = (1, 1)


def choose_order(
    mixture: Mixture | None, shuffle: bool, blocks: Any, interleave: Any
) -> NamedOrder:
    """Returns the order by the parameters of a Loader. Raises ParioError."""
    if interleave and (shuffle or blocks):
        raise ParioError(
            "Loader: interleave is an order of its own: expected neither shuffle nor blocks"
        )
    if mixture and (blocks or interleave):
        raise ParioError("Loader: a Mixture: expected neither blocks nor interleave")
    if mixture:
        return NamedOrder("shuffled mixture" if shuffle else "mixture")
    if blocks:
        return NamedOrder("blocks", _check_pair("Loader: blocks", blocks))
    if interleave:
        files, records = _check_pair("Loader: interleave", interleave)
        return NamedOrder("interleaved", (records, files))
    return NamedOrder("shuffled" if shuffle else "as they lie")


def _check_pair(name: str, values: Any) -> tuple[int, int]:
    """Returns two positive whole numbers. Raises ParioError."""
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ParioError(f"{name}={values!r}: expected two numbers")
    return check_whole(name, values[0], 1), check_whole(name, values[1], 1)


class RecordSequence:
    """The records of data sets, or of a mixture of them, in the order of each epoch.

    ``groups``: as for a Loader. Raises ParioError.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        mixture: Mixture | None,
        order: NamedOrder,
        groups: int | None,
    ) -> None:
        self._datasets, self._mixture = datasets, mixture
        #: The number of records of an epoch.
        self.count = len(mixture or range(sum(map(len, datasets))))
        self._name, self._blocks = order
        self._grouped = None if mixture else self._find_grouped_files()
        self._mix_groups(groups)
        self._bucketing = (
            self._find_bucketing() if self._name in ("as they lie", "shuffled") else ()
        )
        counts = [len(one) for one in datasets]
        self._described = [describe_files(counts)] if len(counts) > 1 else []

    def facts(self) -> list[Any]:
        """Names and numbers that determine the order, beside seed and epoch."""
        if self._mixture:
            return [self._name, *self._mixture.facts()]
        return [self._name, *self._blocks, *self._bucketing, *self._described]

    def is_large(self) -> bool:
        """True if the data can be read one by one and needs more than half of the free memory."""
        if self._grouped:
            return False
        return _bytes_of(self._files()) > free_memory() / 2

    def keep_objects(self, reading: Reading) -> Reading:
        """Keeps the bytes of all objects in memory if half of that is enough. Returns how to read
        in the rest of it."""
        files = [
            one.file for one in self._datasets if one.remote and isinstance(one.file, RecordFile)
        ]
        size = _bytes_of(files)
        if 2 * size > reading.memory:
            return reading
        for one in files:
            one.keep_blocks()
        return reading._replace(memory=reading.memory - size)

    def start(
        self, seed: int, epoch: int, share: Share, reading: Reading
    ) -> RecordLoader | BatchStream:
        """Starts to read a rank's share of the batches of an epoch."""
        if self._mixture:
            batches = share_batches(self.numbers(seed, epoch), share, self.count)
            return load_numbers(self._datasets, batches, reading)
        order = self._order(seed, epoch)
        if self._grouped:
            return GroupLoader(self._grouped, order, share, reading.memory, reading.threads)
        return start_loader(self._files(), order, share, *reading)

    def numbers(self, seed: int, epoch: int) -> Numbers:
        """The function that returns the records of the epoch's positions [first, last)."""
        if self._mixture:
            shuffle, begin = self._name == "shuffled mixture", epoch * self.count
            numbers = self._mixture.order(self._datasets, seed, shuffle)
            return lambda first, last: numbers(begin + first, begin + last)
        order = self._order(seed, epoch)
        if self._grouped:
            return self._grouped.order(order).numbers
        return make_order(order, [len(one) for one in self._datasets]).numbers

    def find_lengths(self, lengths: Lengths | None) -> NDArray[Any] | None:
        """The lengths of all records, which a user gave; None: they are not known. Raises
        ParioError."""
        if lengths is None:
            return None
        if self._bucketing:
            raise ParioError(
                f"{self._datasets[0].path}: was shuffled into buckets, whose order lengths= does"
                " not know: expected a file of another shuffle, or no lengths"
            )
        return list_lengths(lengths, self._datasets)

    def _order(self, seed: int, epoch: int) -> Order:
        return self._name, seed, epoch, *self._blocks

    def _files(self) -> list[RecordFile]:
        """The files whose records can be read one by one."""
        return [one.file for one in self._datasets if not isinstance(one.file, GroupedFile)]

    def _find_grouped_files(self) -> GroupedFiles | None:
        """The files of formats that are decoded group by group; None if there are none."""
        grouped = [one.file for one in self._datasets if isinstance(one.file, GroupedFile)]
        if grouped and len(grouped) < len(self._datasets):
            raise ParioError(
                f"{grouped[0].path}: is decoded group by group: expected no other formats with it;"
                " pario records convert helps"
            )
        return GroupedFiles(grouped) if grouped else None

    def _mix_groups(self, groups: int | None) -> None:
        """Makes ``shuffle`` an order of groups, unless ``groups`` is 0 or the files have none."""
        files = self._grouped
        together = 0 if groups is None else check_whole("Loader: groups", groups, 0)
        if groups is not None and (not files or self._name != "shuffled"):
            raise ParioError(
                f"Loader: groups={groups}: expected at least 0, with shuffle, and Parquet or"
                " ArrayRecord"
            )
        if not files or self._name != "shuffled":
            return
        together = files.default_mix() if groups is None else together
        if together:
            self._name, self._blocks = "groups", files.facts(together)
        elif files.default_mix():
            warnings.warn(_PERMUTATION.format(self.count // files.count), stacklevel=4)

    def _find_bucketing(self) -> tuple[int, ...]:
        """Seed and number of the buckets of a fused shuffle's output; empty for other files."""
        bucketed = [] if self._grouped else [one for one in self._datasets if one.file.bucketing]
        if bucketed and len(self._datasets) > 1:
            raise ParioError(
                f"{bucketed[0].path}: was shuffled into buckets: expected by itself; several inputs"
                " are shuffled as one"
            )
        return bucketed[0].file.bucketing or () if bucketed else ()


def _bytes_of(files: Sequence[RecordFile]) -> int:
    """The bytes of all records, and those between them."""
    return sum(int(one.offsets(len(one) - 1, len(one))[1]) for one in files if len(one))
