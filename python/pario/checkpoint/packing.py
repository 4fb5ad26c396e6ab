"""Small arrays: each rank packs its parts of them, and rank 0 writes all.

Calls for each of a thousand arrays would cost more than their bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pario._native import packed_checksums
from pario.checkpoint.arrays import Facts, Given, is_written
from pario.checkpoint.checksum import grid_of
from pario.checkpoint.geometry import runs, strides, whole
from pario.checkpoint.types import Array
from pario.copying import write_all

#: Bytes of a gap between packed arrays, which holds HDF5 metadata, that are rewritten to save a
#: call; bytes written together.
_GAP, _GROUP = 1 << 12, 1 << 20
#: Bytes of an array that are copied twice when they are packed, to save a call.
_FEW = 1 << 14


class Packing:
    """The order in which a rank packs its parts of small arrays: written parts first.

    Of replicated arrays only the parts of rank 0 are written.
    """

    def __init__(self, facts: Sequence[Facts], names: frozenset[str], rank: int) -> None:
        counts = np.cumsum([0, *(_sum_count(one, names) for one in facts)]).tolist()
        packed = [(place, one) for place, one in enumerate(facts) if one.name in names]
        packed.sort(key=lambda each: not is_written(each[1], rank))
        self._facts = [one for _, one in packed]
        self._places = [place for place, _ in packed]
        #: The numbers of the parts' checksums among all checksums of the rank.
        self.numbers = np.array(
            [counts[place] + number for place, one in packed for number in range(len(one.boxes))],
            int,
        )
        rows = [
            (one.dtype.itemsize, len(one.shape), *one.shape, *box.begin, *box.shape)
            for one in self._facts
            for box in one.boxes
        ]
        self._boxes = np.array([number for row in rows for number in row], "u8")
        #: Bytes of the written parts.
        self.written = sum(
            box.size * one.dtype.itemsize
            for one in self._facts
            if is_written(one, rank)
            for box in one.boxes
        )

    def pack(self, given: Sequence[Given]) -> bytes:
        """The bytes of all parts."""
        return b"".join([_bytes_of(data) for place in self._places for data in given[place].data])

    def sums(self, packed: bytes) -> list[int]:
        """The checksums of the parts."""
        return packed_checksums(packed, self._boxes)

    def merge_sums(self, packed: bytes, others: Sequence[Array]) -> Array:
        """All checksums of the rank in order. ``others``: those of arrays that are not packed."""
        rest_sums = np.concatenate([np.zeros(0, np.uint64), *others])
        sums = self.sums(packed)
        found = np.empty(len(sums) + len(rest_sums), np.uint64)
        rest = np.ones(len(found), bool)
        rest[self.numbers] = False
        found[self.numbers], found[rest] = sums, rest_sums
        return found

    def pieces(self, places: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
        """The written runs: offset in the file, offset in the packed bytes, and length.

        ``places``: the offset of each array in the file.
        """
        at = 0
        for one in self._facts:
            for box in one.boxes:
                element = one.dtype.itemsize
                in_file, in_memory, length = runs(
                    box, whole(one.shape), element, strides(box.shape, element)
                )
                for place, begin in zip(in_file.tolist(), in_memory.tolist(), strict=True):
                    if box.size and at < self.written:
                        yield places[one.name] + place, at + begin, length
                at += box.size * element


def _bytes_of(data: Array) -> bytes | memoryview:
    """The bytes of an array in C order. A view costs more than a copy of few bytes."""
    if data.nbytes < _FEW:
        return data.tobytes()
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data


def _sum_count(facts: Facts, packed: frozenset[str]) -> int:
    """The number of a rank's checksums of an array; a box of a small array is one chunk."""
    if facts.name in packed:
        return len(facts.boxes)
    return sum(grid_of(box, facts.dtype.itemsize).count for box in facts.boxes)


#: Adjacent bytes of packed arrays: offset in the file, and the rank and slice of each piece.
_Region = tuple[int, list[tuple[int, slice]]]


class Unpacking:
    """The places where rank 0 writes the packed bytes of all ranks."""

    def __init__(self, packings: Sequence[Packing], places: Mapping[str, int]) -> None:
        pieces = sorted(
            (place, rank, begin, count)
            for rank, one in enumerate(packings)
            for place, begin, count in one.pieces(places)
        )
        self._groups: list[list[_Region]] = []  # of regions with small gaps
        first = end = -_GROUP
        for place, rank, begin, count in pieces:
            if place > end + _GAP or place > first + _GROUP:
                self._groups.append([])
                first = place
            if place != end or not self._groups[-1]:
                self._groups[-1].append((place, []))
            _add_piece(self._groups[-1][-1][1], rank, slice(begin, begin + count))
            end = place + count

    def write(self, file: int, packed: Sequence[bytes]) -> None:
        """Writes the packed bytes of all ranks to a descriptor; gaps keep their bytes."""
        views = [memoryview(one) for one in packed]
        for group in self._groups:
            regions = [
                (place, _join_pieces([views[rank][piece] for rank, piece in pieces]))
                for place, pieces in group
            ]
            write_all(file, regions[0][0], _join_regions(file, regions))


def _add_piece(pieces: list[tuple[int, slice]], rank: int, piece: slice) -> None:
    """Adds a piece that follows in the file; joins it with the last one if it follows there, too,
    as all pieces do where one rank writes them."""
    if pieces and pieces[-1][0] == rank and pieces[-1][1].stop == piece.start:
        piece = slice(pieces.pop()[1].start, piece.stop)
    pieces.append((rank, piece))


def _join_pieces(pieces: Sequence[memoryview]) -> bytes | memoryview:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _join_regions(
    file: int, regions: Sequence[tuple[int, bytes | memoryview]]
) -> bytes | memoryview:
    """The bytes of regions, and those of the file between them."""
    if len(regions) == 1:
        return regions[0][1]
    first, (last, content) = regions[0][0], regions[-1]
    size = last + len(content) - first
    joined = bytearray(os.pread(file, size, first).ljust(size, b"\0"))
    for place, content in regions:
        joined[place - first : place - first + len(content)] = content
    return bytes(joined)
