"""Arrays that are read piece by piece when they are written: conversions need not hold a state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from pario.checkpoint.geometry import Box, Shape
from pario.checkpoint.types import Array, Type, type_of_note

#: Bytes of a piece, where the source has no larger chunks.
_PIECE = 1 << 24


@dataclass(frozen=True)
class Lazy:
    """A piece of an array that :attr:`read` reads, each time."""

    shape: Shape
    dtype: Type
    read: Callable[[], Array]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def tobytes(self) -> bytes:
        """The elements in C order."""
        return self.read().tobytes()

    def convert(self, dtype: Type, change: Callable[[Array], Array]) -> Lazy:
        """A piece whose elements are changed to another type after they are read."""
        return Lazy(self.shape, dtype, lambda: change(self.read()))


@dataclass(frozen=True)
class LazyArray:
    """An array that is read in boxes. ``chunk``: the shape that its source reads at once."""

    shape: Shape
    dtype: Type
    read: Callable[[Box], Array]
    chunk: Shape

    def parts(self) -> Iterator[tuple[Lazy, Shape]]:
        """Pieces that tile the array, with their offsets."""
        for box in boxes_of(self.shape, self.chunk, self.dtype.itemsize):
            yield Lazy(box.shape, self.dtype, partial(self.read, box)), box.begin

    def view(self, kind: str) -> LazyArray:
        """The same bytes as elements of a type of ml_dtypes."""
        dtype = type_of_note(kind, self.dtype)
        return LazyArray(self.shape, dtype, lambda box: self.read(box).view(dtype), self.chunk)

    def load(self) -> Array:
        """The whole array."""
        whole = np.empty(self.shape, self.dtype)
        for part, begin in self.parts():
            at = tuple(slice(a, a + n) for a, n in zip(begin, part.shape, strict=True))
            whole[at] = part.read()
        return whole


def boxes_of(shape: Sequence[int], chunk: Sequence[int], element: int) -> Iterator[Box]:
    """Boxes of whole chunks that tile an array, of about :data:`_PIECE` bytes, or one chunk."""
    piece = [max(1, min(size, length)) for size, length in zip(chunk, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        count = _PIECE // (math.prod(piece) * element)
        piece[axis] = max(piece[axis], min(shape[axis], piece[axis] * count))
        if piece[axis] < shape[axis]:
            break
    for begin in product(
        *(range(0, length, size) for length, size in zip(shape, piece, strict=True))
    ):
        ends = map(min, shape, map(sum, zip(begin, piece, strict=True)))
        yield Box(begin, tuple(end - first for first, end in zip(begin, ends, strict=True)))
