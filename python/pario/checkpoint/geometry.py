"""Boxes of arrays: which part of an array a rank has, whether parts tile, where their bytes lie. Pure functions of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Box:
    """Elements ``begin`` to ``begin + shape`` of an array, along each axis."""

    begin: Shape
    shape: Shape

    @property
    def end(self) -> Shape:
        """Behind the last element, along each axis."""
        return tuple(begin + length for begin, length in zip(self.begin, self.shape, strict=True))

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    def meet(self, other: Box) -> Box:
        """What both have; empty where they have nothing in common."""
        begin = tuple(map(max, self.begin, other.begin))
        end = map(min, self.end, other.end)
        return Box(begin, tuple(max(0, last - first) for first, last in zip(begin, end, strict=True)))

    def within(self, outer: Box) -> tuple[Any, ...]:
        """Index of this box in an array that holds ``outer``; what it gives is a view, without axes, too."""
        slices = (slice(mine - its, mine - its + length) for mine, its, length in zip(self.begin, outer.begin, self.shape, strict=True))
        return (*slices, ...)

    def __str__(self) -> str:
        return "[" + ", ".join(f"{begin}:{end}" for begin, end in zip(self.begin, self.end, strict=True)) + "]"


def whole(shape: Sequence[int]) -> Box:
    """All of an array."""
    return Box((0,) * len(shape), tuple(shape))


def pieces(box: Box, most: int) -> Iterator[Box]:
    """The box in parts of so many elements at most, in order."""
    if box.size <= max(most, 1):
        yield box
        return
    axis = next(axis for axis, length in enumerate(box.shape) if length > 1)
    half = box.shape[axis] // 2
    for first, length in ((0, half), (half, box.shape[axis] - half)):
        begin = (*box.begin[:axis], box.begin[axis] + first, *box.begin[axis + 1 :])
        yield from pieces(Box(begin, (*box.shape[:axis], length, *box.shape[axis + 1 :])), most)


def divide(shape: Sequence[int], parts: int, part: int) -> Box:
    """One of ``parts`` boxes that tile an array, as equal and as close to cubes as can be; all of one without axes."""
    if not shape:
        return whole(shape)
    counts = _grid(shape, parts)
    index = np.unravel_index(part, counts)
    begin = tuple(length * int(at) // count for length, at, count in zip(shape, index, counts, strict=True))
    end = tuple(length * (int(at) + 1) // count for length, at, count in zip(shape, index, counts, strict=True))
    return Box(begin, tuple(last - first for first, last in zip(begin, end, strict=True)))


def _grid(shape: Sequence[int], parts: int) -> Shape:
    """How many parts along each axis; large prime factors go to where most elements are."""
    counts = [1] * len(shape)
    for factor in sorted(_prime_factors(parts), reverse=True):
        axis = max(range(len(shape)), key=lambda axis: shape[axis] / counts[axis])
        counts[axis] *= factor
    return tuple(counts)


def _prime_factors(number: int) -> list[int]:
    factors, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        factor += 1
    return [*factors, number] if number > 1 else factors


def strides(shape: Sequence[int], element: int) -> Shape:
    """Bytes from one element to the next, along each axis, where they lie in order."""
    steps = [element]
    for length in reversed(shape[1:]):
        steps.append(steps[-1] * length)
    return tuple(reversed(steps[: len(shape)]))


@dataclass(frozen=True)
class Flaw:
    """The first element, in order, that no box has or several have."""

    at: Shape
    boxes: tuple[int, ...]  # numbers of those that have it
    extent: Box  # of it and what follows, as far as it is a box


def first_flaw(shape: Sequence[int], boxes: Sequence[Box]) -> Flaw | None:
    """None where the boxes tile an array.

    Each box is taken as the sum of its corners, with signs; at the first place where these differ from the corners of the array, the number
    of boxes does. That costs about as much as sorting the boxes.
    """
    full = [number for number, box in enumerate(boxes) if box.size]
    if not math.prod(shape):
        return None
    corners, signs = _corners([*(boxes[number] for number in full), whole(shape)])
    signs[-(1 << len(shape)) :] *= -1
    points, which = np.unique(corners, axis=0, return_inverse=True) if shape else (corners[:1], np.zeros(len(corners), int))
    sums = np.zeros(len(points), int)
    np.add.at(sums, which.reshape(-1), signs)
    wrong = np.flatnonzero(sums)
    if not len(wrong):
        return None
    at = tuple(int(place) for place in points[wrong[0]])
    having = tuple(number for number in full if _holds(boxes[number], at))
    return Flaw(at, having, _shared(shape, [boxes[number] for number in having]) if having else _gap(shape, boxes, at))


def _corners(boxes: Sequence[Box]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Corners of boxes, box by box, and their signs."""
    axes = len(boxes[0].shape)
    ends = np.array([(box.begin, box.end) for box in boxes], dtype=np.int64).reshape(len(boxes), 2, axes)
    choices = np.array(list(itertools.product((0, 1), repeat=axes)), dtype=int).reshape(1 << axes, axes)
    corners = ends[:, choices, np.arange(axes)].reshape(len(boxes) << axes, axes)
    return corners, np.tile(1 - 2 * (choices.sum(axis=1) % 2), len(boxes))


def _holds(box: Box, at: Shape) -> bool:
    return all(begin <= place < end for begin, place, end in zip(box.begin, at, box.end, strict=True))


def _shared(shape: Sequence[int], boxes: Sequence[Box]) -> Box:
    common = whole(shape)
    for box in boxes[:2]:
        common = common.meet(box)
    return common


def _gap(shape: Sequence[int], boxes: Sequence[Box], at: Shape) -> Box:
    """Grows from an element, last axis first, up to what a box has."""
    gap = Box(at, (1,) * len(at))
    for axis in reversed(range(len(at))):
        rest = shape[axis] - at[axis]
        grown = Box(at, (*gap.shape[:axis], rest, *gap.shape[axis + 1 :]))
        stops = [box.begin[axis] - at[axis] for box in boxes if box.meet(grown).size]
        gap = Box(at, (*gap.shape[:axis], min([rest, *stops]), *gap.shape[axis + 1 :]))
    return gap


def contiguous_axes(box: Box, stored: Box, element: int, memory: Shape) -> int:
    """How many of the last axes of a box are one run of bytes, in the file and in memory with these strides; at least none.

    The file holds ``stored`` in order.
    """
    axes, run = 0, element
    for axis in reversed(range(len(box.shape))):
        if memory[axis] != run and box.shape[axis] > 1:
            break
        run *= box.shape[axis]
        axes += 1
        if box.shape[axis] != stored.shape[axis]:
            break
    return axes


def place_of(box: Box, stored: Box, element: int) -> int:
    """Where the first byte of a box is, from where ``stored`` begins."""
    steps = strides(stored.shape, element)
    return sum((mine - its) * step for mine, its, step in zip(box.begin, stored.begin, steps, strict=True))


def run_count(box: Box, stored: Box, element: int, memory: Shape) -> int:
    """How many runs of bytes a box consists of."""
    return math.prod(box.shape[: len(box.shape) - contiguous_axes(box, stored, element, memory)])


def runs(box: Box, stored: Box, element: int, memory: Shape) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Where the runs of a box are in the file and in memory, in bytes from where ``stored`` and the box begin; the bytes of each."""
    outer = len(box.shape) - contiguous_axes(box, stored, element, memory)
    file_strides, begin = strides(stored.shape, element), place_of(box, stored, element)
    in_file, in_memory = np.array([begin], np.int64), np.zeros(1, np.int64)
    for axis in range(outer):
        index = np.arange(box.shape[axis], dtype=np.int64)
        in_file = (in_file[:, None] + index * file_strides[axis]).reshape(-1)
        in_memory = (in_memory[:, None] + index * memory[axis]).reshape(-1)
    return in_file, in_memory, math.prod(box.shape[outer:]) * element
