"""Small arrays: each rank packs its parts of them, and rank 0 writes them. Calls for each of a thousand cost more than their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pario._native import packed_checksums
from pario.checkpoint.geometry import runs, strides, whole
from pario.checkpoint.given import REPLICATED, Facts, Given
from pario.checkpoint.layout import Layout
from pario.checkpoint.transfer import write_all
from pario.checkpoint.types import Array

#: Bytes from which on an array is not small.
LARGE = 1 << 20
#: Bytes of all small arrays together, which rank 0 has in memory; where there are more, no array is.
_MOST = 1 << 25


def small(layouts: Sequence[Layout]) -> frozenset[str]:
    """Names of the arrays that are packed."""
    found = {layout.name: layout.nbytes for layout in layouts if layout.nbytes < LARGE}
    return frozenset(found if sum(found.values()) <= _MOST else ())


class Packing:
    """How a rank packs its parts: one behind the other, those first that are written. Of what is the same on all ranks that is rank 0's."""

    def __init__(self, facts: Sequence[Facts], names: frozenset[str], rank: int) -> None:
        counts = np.cumsum([0, *(len(one.boxes) for one in facts)]).tolist()
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


def is_written(facts: Facts, rank: int) -> bool:
    """Whether a rank writes its boxes, or others the same."""
    return facts.kind != REPLICATED or rank == 0


class Unpacking:
    """Where rank 0 writes what the ranks have packed."""

    def __init__(self, packings: Sequence[Packing], places: Mapping[str, int]) -> None:
        pieces = sorted((place, rank, begin, count) for rank, one in enumerate(packings) for place, begin, count in one.pieces(places))
        self._regions: list[tuple[int, list[tuple[int, slice]]]] = []  # the place of each, and what it is made of
        end = -1
        for place, rank, begin, count in pieces:
            if place != end:
                self._regions.append((place, []))
            self._regions[-1][1].append((rank, slice(begin, begin + count)))
            end = place + count

    def write(self, file: int, packed: Sequence[bytes]) -> None:
        """Writes to a descriptor what each rank has packed."""
        views = [memoryview(one) for one in packed]
        for place, pieces in self._regions:
            write_all(file, b"".join([views[rank][piece] for rank, piece in pieces]), place)


def merged(sums: Sequence[int], numbers: Array, others: Sequence[int]) -> Array:
    """All sums of a rank, from those that have these numbers and the others, in their order."""
    found = np.empty(len(sums) + len(others), "u8")
    rest = np.ones(len(found), bool)
    rest[numbers] = False
    found[numbers], found[rest] = sums, others
    return found
