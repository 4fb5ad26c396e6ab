"""The array that the patterns write, in one block per rank: each element, a double, is its own
index in the array."""

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
    """The shape of an array of about ``size`` bytes with nearly equal sides, each a multiple of the
    number of ranks along it."""
    dimensions = len(ranks)
    edge = round((size / ITEM) ** (1 / dimensions))
    return tuple(max(edge // along, 1) * along for along in ranks)


@dataclass(frozen=True)
class Block:
    """The part of one rank: ``shape`` elements from ``begin`` on, in an array of shape ``whole``;
    all in C order."""

    whole: tuple[int, ...]
    begin: tuple[int, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(rank: int, ranks: Sequence[int], whole: tuple[int, ...]) -> Block:
        """The block of a rank in a grid of ranks; the number of ranks along a side must divide that
        side of the array."""
        shape = tuple(side // along for side, along in zip(whole, ranks, strict=True))
        place = np.unravel_index(rank, tuple(ranks))
        return Block(
            whole, tuple(int(at) * length for at, length in zip(place, shape, strict=True)), shape
        )

    @property
    def bytes(self) -> int:
        """The size of the block."""
        return ITEM * math.prod(self.shape)

    @cached_property
    def indices(self) -> tuple[slice, ...]:
        """The slices of the whole array that select the block."""
        return tuple(
            slice(begin, begin + length)
            for begin, length in zip(self.begin, self.shape, strict=True)
        )

    def make(self) -> Doubles:
        """Make the elements: each is its own index in the whole array, in C order."""
        grid = np.ogrid[self.indices]
        strides = [math.prod(self.whole[axis + 1 :]) for axis in range(len(self.whole))]
        number = sum(
            (places * stride for places, stride in zip(grid, strides, strict=True)),
            start=np.zeros(self.shape),
        )
        return np.ascontiguousarray(number, dtype=np.float64)

    def runs(self) -> Iterator[tuple[int, int]]:
        """The contiguous pieces of the block, of ``run`` bytes each: offset in the file and
        position in the block, in bytes."""
        rows = math.prod(self.shape[:-1])
        places = np.unravel_index(np.arange(rows), self.shape[:-1]) if len(self.shape) > 1 else ()
        first = [at + begin for at, begin in zip(places, self.begin[:-1], strict=True)]
        for row in range(rows):
            place = (*(int(axis[row]) for axis in first), self.begin[-1])
            yield ITEM * int(np.ravel_multi_index(place, self.whole)), row * self.run

    @property
    def run(self) -> int:
        """The size of each contiguous piece in bytes."""
        return ITEM * self.shape[-1]
