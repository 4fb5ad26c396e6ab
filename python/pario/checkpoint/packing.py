"""Small arrays: each rank packs its parts of them, and rank 0 writes them. Calls for each of a thousand cost more than their bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pario._native import packed_checksums
from pario.checkpoint.chunks import grid_of
from pario.checkpoint.geometry import runs, strides, whole
from pario.checkpoint.given import REPLICATED, Facts, Given
from pario.checkpoint.layout import Layout
from pario.checkpoint.transfer import write_all
from pario.checkpoint.types import Array

#: Bytes from which on an array is not small.
LARGE = 1 << 20
#: Bytes of all small arrays together, which rank 0 has in memory; where there are more, no array is.
_MOST = 1 << 25
#: Bytes of a gap between packed arrays, which has metadata of HDF5, that are written again, and
#: bytes that are written together.
_GAP, _GROUP = 1 << 12, 1 << 20


def small(layouts: Sequence[Layout]) -> frozenset[str]:
    """Names of the arrays that are packed."""
    found = {layout.name: layout.nbytes for layout in layouts if layout.nbytes < LARGE}
    return frozenset(found if sum(found.values()) <= _MOST else ())


class Packing:
    """How a rank packs its parts: one behind the other, those first that are written. Of what is the same on all ranks that is rank 0's."""

    def __init__(self, facts: Sequence[Facts], names: frozenset[str], rank: int) -> None:
        counts = np.cumsum([0, *(_sum_count(one, names) for one in facts)]).tolist()
        packed = [(place, one) for place, one in enumerate(facts) if one.name in names]
        packed.sort(key=lambda each: not is_written(each[1], rank))
        self._facts = [one for _, one in packed]
        self._places = [place for place, _ in packed]
        #: Which of the rank's sums are those of the parts.
        self.numbers = np.array([counts[place] + number for place, one in packed for number in range(len(one.boxes))], int)
        rows = [(one.dtype.itemsize, len(one.shape), *one.shape, *box.begin, *box.shape) for one in self._facts for box in one.boxes]
        self._boxes = np.array([number for row in rows for number in row], "u8")
        self.written = sum(box.size * one.dtype.itemsize for one in self._facts if is_written(one, rank) for box in one.boxes)

    def pack(self, given: Sequence[Given]) -> bytes:
        """The bytes of the parts."""
        return b"".join([data.tobytes() for place in self._places for data in given[place].data])

    def sums(self, packed: bytes) -> list[int]:
        """Checksums of the parts."""
        return packed_checksums(packed, self._boxes)

    def pieces(self, places: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
        """What is written where: the place in the file, the first byte of what is packed, and how many. ``places``: of arrays."""
        at = 0
        for one in self._facts:
            for box in one.boxes:
                element = one.dtype.itemsize
                in_file, in_memory, length = runs(box, whole(one.shape), element, strides(box.shape, element))
                for place, begin in zip(in_file.tolist(), in_memory.tolist(), strict=True):
                    if box.size and at < self.written:
                        yield places[one.name] + place, at + begin, length
                at += box.size * element


def _sum_count(facts: Facts, packed: frozenset[str]) -> int:
    """How many sums a rank has of an array: one for each box of a small one, which is one chunk."""
    if facts.name in packed:
        return len(facts.boxes)
    return sum(grid_of(box, facts.dtype.itemsize).count for box in facts.boxes)


def is_written(facts: Facts, rank: int) -> bool:
    """Whether a rank writes its boxes, or others the same."""
    return facts.kind != REPLICATED or rank == 0


#: Parts of packed arrays: place in the file, and for each piece the rank and its bytes.
_Region = tuple[int, list[tuple[int, slice]]]


class Unpacking:
    """Where rank 0 writes what the ranks have packed."""

    def __init__(self, packings: Sequence[Packing], places: Mapping[str, int]) -> None:
        pieces = sorted((place, rank, begin, count) for rank, one in enumerate(packings) for place, begin, count in one.pieces(places))
        self._groups: list[list[_Region]] = []  # of regions with small gaps
        first = end = -_GROUP
        for place, rank, begin, count in pieces:
            if place > end + _GAP or place > first + _GROUP:
                self._groups.append([])
                first = place
            if place != end or not self._groups[-1]:
                self._groups[-1].append((place, []))
            self._groups[-1][-1][1].append((rank, slice(begin, begin + count)))
            end = place + count

    def write(self, file: int, packed: Sequence[bytes]) -> None:
        """Writes to a descriptor what each rank has packed. Gaps, which no other rank writes, stay."""
        views = [memoryview(one) for one in packed]
        for group in self._groups:
            regions = [(place, b"".join([views[rank][piece] for rank, piece in pieces])) for place, pieces in group]
            write_all(file, _join_regions(file, regions), regions[0][0])


def _join_regions(file: int, regions: Sequence[tuple[int, bytes]]) -> bytes:
    """Their bytes, and those of the file between them."""
    if len(regions) == 1:
        return regions[0][1]
    first, (last, content) = regions[0][0], regions[-1]
    size = last + len(content) - first
    joined = bytearray(os.pread(file, size, first).ljust(size, b"\0"))
    for place, content in regions:
        joined[place - first : place - first + len(content)] = content
    return bytes(joined)


def merged(sums: Sequence[int], numbers: Array, others: Sequence[Array]) -> Array:
    """All sums of a rank, from those that have these numbers and the others, in their order."""
    rest_sums = np.concatenate([np.zeros(0, np.uint64), *others])
    found = np.empty(len(sums) + len(rest_sums), np.uint64)
    rest = np.ones(len(found), bool)
    rest[numbers] = False
    found[numbers], found[rest] = sums, rest_sums
    return found
