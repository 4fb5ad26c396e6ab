"""The array that the patterns write: doubles that know their place, divided among ranks in
blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

ITEM = 8
Doubles = npt.NDArray[np.float64]


def shape_of(size: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """The shape of an array of about ``size`` bytes whose sides are as equal as can be, at least
    one element per rank along each."""
    dimensions = len(ranks)
    edge = round((size / ITEM) ** (1 / dimensions))
    return tuple(max(edge // along, 1) * along for along in ranks)


@dataclass(frozen=True)
class Block:
    """One rank's part: ``shape`` elements from ``begin`` of an array of ``whole``, all in C
    order."""

    whole: tuple[int, ...]
    begin: tuple[int, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(rank: int, ranks: Sequence[int], whole: tuple[int, ...]) -> Block:
        """The block of a rank in a grid of ``ranks`` along each side, which divide the sides of the
        array."""
        shape = tuple(side // along for side, along in zip(whole, ranks, strict=True))
        place = np.unravel_index(rank, tuple(ranks))
        return Block(
            whole, tuple(int(at) * length for at, length in zip(place, shape, strict=True)), shape
        )

    @property
    def bytes(self) -> int:
        """Of this part."""
        return ITEM * math.prod(self.shape)

    @cached_property
    def indices(self) -> tuple[slice, ...]:
        """Where it lies in the whole array."""
        return tuple(
            slice(begin, begin + length)
            for begin, length in zip(self.begin, self.shape, strict=True)
        )

    def make(self) -> Doubles:
        """Its elements: each is its own number in the whole array."""
        grid = np.ogrid[self.indices]
        strides = [math.prod(self.whole[axis + 1 :]) for axis in range(len(self.whole))]
        number = sum(
            (places * stride for places, stride in zip(grid, strides, strict=True)),
            start=np.zeros(self.shape),
        )
        return np.ascontiguousarray(number, dtype=np.float64)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Contiguous pieces: offset in the file and position in the part, both in bytes; all of
        ``run`` bytes."""
        rows = math.prod(self.shape[:-1])
        places = np.unravel_index(np.arange(rows), self.shape[:-1]) if len(self.shape) > 1 else ()
        first = [at + begin for at, begin in zip(places, self.begin[:-1], strict=True)]
        for row in range(rows):
            place = (*(int(axis[row]) for axis in first), self.begin[-1])
            yield ITEM * int(np.ravel_multi_index(place, self.whole)), row * self.run

    @property
    def run(self) -> int:
        """Bytes of each contiguous piece."""
        return ITEM * self.shape[-1]
