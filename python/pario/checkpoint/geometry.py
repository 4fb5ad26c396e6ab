"""Boxes of arrays: division among ranks, tiling, and the places of their bytes. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


#: Boxes that are divided where they overlap: the cost grows as their square.
_MOST_DIVIDED = 1 << 13


@dataclass(frozen=True)
class Box:
    """A contiguous range of indices along each axis of an array.

    Parameters
    ----------
    begin : tuple of int
        First index along each axis.
    shape : tuple of int
        Number of elements along each axis.
    """

    begin: Shape
    shape: Shape

    @property
    def end(self) -> Shape:
        """The index after the last one, along each axis."""
        return tuple(begin + length for begin, length in zip(self.begin, self.shape, strict=True))

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def meet(self, other: Box) -> Box:
        """The intersection, which may be empty."""
        begin = tuple(map(max, self.begin, other.begin))
        end = map(min, self.end, other.end)
        return Box(
            begin, tuple(max(0, last - first) for first, last in zip(begin, end, strict=True))
        )

    def within(self, outer: Box) -> tuple[Any, ...]:
        """The index of this box in an array that holds ``outer``; it selects a view, even of an
        array without axes."""
        slices = (
            slice(mine - its, mine - its + length)
            for mine, its, length in zip(self.begin, outer.begin, self.shape, strict=True)
        )
        return (*slices, ...)

    def __str__(self) -> str:
        ranges = zip(self.begin, self.end, strict=True)
        return "[" + ", ".join(f"{begin}:{end}" for begin, end in ranges) + "]"


def whole(shape: Sequence[int]) -> Box:
    """The box of all elements of an array."""
    return Box((0,) * len(shape), tuple(shape))


def pieces(box: Box, most: int) -> Iterator[Box]:
    """Divides a box into boxes of at most ``most`` elements, in order."""
    if box.size <= max(most, 1):
        yield box
        return
    axis = next(axis for axis, length in enumerate(box.shape) if length > 1)
    half = box.shape[axis] // 2
    for first, length in ((0, half), (half, box.shape[axis] - half)):
        begin = box.begin[axis] + first
        yield from pieces(_with_axis(box, axis, begin, begin + length), most)


def divide(shape: Sequence[int], parts: int, part: int) -> Box:
    """Returns one of the boxes that divide an array evenly among ranks.

    Not collective: each rank computes its own box.

    Parameters
    ----------
    shape : sequence of int
        Elements of the whole array along each axis.
    parts : int
        Number of boxes, usually the number of ranks.
    part : int
        Number of the wanted box, from 0 to ``parts - 1``, usually the rank.

    Returns
    -------
    Box
        ``box.begin`` and ``box.shape``, in elements. The boxes tile the array, and are as equal
        and as close to cubes as possible. An array without axes is not divided.

    Raises
    ------
    ValueError
        If ``part`` is not a number of a box.

    Examples
    --------
    >>> from pario import checkpoint
    >>> box = checkpoint.divide((100, 60), 4, 3)
    >>> box.begin, box.shape
    ((50, 30), (50, 30))
    """
    if not shape:
        return whole(shape)
    counts = _counts(shape, parts)
    index = np.unravel_index(part, counts)
    axes = list(zip(shape, index, counts, strict=True))
    begin = tuple(length * int(at) // count for length, at, count in axes)
    end = tuple(length * (int(at) + 1) // count for length, at, count in axes)
    return Box(begin, tuple(last - first for first, last in zip(begin, end, strict=True)))


def _counts(shape: Sequence[int], parts: int) -> Shape:
    """The number of parts along each axis; large prime factors go to the longest axes."""
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
    """The strides in bytes of a C-contiguous array."""
    steps = [element]
    for length in reversed(shape[1:]):
        steps.append(steps[-1] * length)
    return tuple(reversed(steps[: len(shape)]))


@dataclass(frozen=True)
class Flaw:
    """The first element, in C order, that no box or several boxes contain."""

    at: Shape
    boxes: tuple[int, ...]  # numbers of the boxes that contain it
    extent: Box  # this element and the following ones with the same flaw, as far as they form a box


def first_flaw(shape: Sequence[int], boxes: Sequence[Box]) -> Flaw | None:
    """Finds the first gap or overlap of boxes; None if they tile the array.

    Each box counts as the sum of its signed corners. At the first place where these differ from
    the corners of the array, the number of boxes differs from one. The cost is about that of
    sorting the boxes.
    """
    full = [number for number, box in enumerate(boxes) if box.size]
    if not math.prod(shape):
        return None
    corners, signs = _corners([*(boxes[number] for number in full), whole(shape)])
    signs[-(1 << len(shape)) :] *= -1
    points, which = (
        np.unique(corners, axis=0, return_inverse=True)
        if shape
        else (corners[:1], np.zeros(len(corners), int))
    )
    sums = np.zeros(len(points), int)
    np.add.at(sums, which.reshape(-1), signs)
    wrong = np.flatnonzero(sums)
    if not len(wrong):
        return None
    at = tuple(int(place) for place in points[wrong[0]])
    owners = tuple(number for number in full if _contains(boxes[number], at))
    if not owners:
        return Flaw(at, owners, _gap(shape, boxes, at))
    return Flaw(at, owners, _overlap(shape, [boxes[number] for number in owners]))


def divide_overlaps(boxes: Sequence[Box]) -> list[list[Box]]:
    """For each box disjoint boxes of its elements that no box before it has."""
    if not boxes:
        return []
    begins, ends = (np.array([getattr(box, side) for box in boxes]) for side in ("begin", "end"))
    found = []
    for number, box in enumerate(boxes):
        meets = (begins[:number] < ends[number]) & (ends[:number] > begins[number])
        left = [box] if box.size else []
        for other in np.flatnonzero(meets.all(axis=1)).tolist():
            left = [part for one in left for part in _subtract(one, boxes[other])]
            if not left:
                break
        found.append(left)
    return found


def divide_to_tiles(shape: Sequence[int], boxes: Sequence[Box]) -> list[list[Box]] | None:
    """For each box disjoint pieces, which together tile the array; None if the boxes do not cover
    it, or many of them overlap."""
    if first_flaw(shape, boxes) is None:
        return [[box] for box in boxes]
    size = math.prod(shape)
    if len(boxes) > _MOST_DIVIDED or sum(box.size for box in boxes) < size:
        return None
    found = divide_overlaps(boxes)
    return found if sum(one.size for some in found for one in some) == size else None


def _subtract(box: Box, other: Box) -> Iterator[Box]:
    """Disjoint boxes of the elements of a box that are not in another one."""
    common = box.meet(other)
    if not common.size:
        yield box
        return
    for axis in range(len(box.shape)):
        sides = ((box.begin[axis], common.begin[axis]), (common.end[axis], box.end[axis]))
        for first, last in sides:
            if first < last:
                yield _with_axis(box, axis, first, last)
        box = _with_axis(box, axis, common.begin[axis], common.end[axis])


def _with_axis(box: Box, axis: int, first: int, last: int) -> Box:
    """A box with another range of indices along an axis."""
    begin = (*box.begin[:axis], first, *box.begin[axis + 1 :])
    return Box(begin, (*box.shape[:axis], last - first, *box.shape[axis + 1 :]))


def _corners(boxes: Sequence[Box]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The corners of boxes, box by box, and their signs."""
    axes = len(boxes[0].shape)
    ends = np.array([(box.begin, box.end) for box in boxes], dtype=np.int64).reshape(
        len(boxes), 2, axes
    )
    choices = np.array(list(itertools.product((0, 1), repeat=axes)), dtype=int).reshape(
        1 << axes, axes
    )
    corners = ends[:, choices, np.arange(axes)].reshape(len(boxes) << axes, axes)
    return corners, np.tile(1 - 2 * (choices.sum(axis=1) % 2), len(boxes))


def _contains(box: Box, at: Shape) -> bool:
    return all(
        begin <= place < end for begin, place, end in zip(box.begin, at, box.end, strict=True)
    )


def _overlap(shape: Sequence[int], boxes: Sequence[Box]) -> Box:
    common = whole(shape)
    for box in boxes[:2]:
        common = common.meet(box)
    return common


def _gap(shape: Sequence[int], boxes: Sequence[Box], at: Shape) -> Box:
    """Grows a gap from an element, last axis first, up to the next box."""
    gap = Box(at, (1,) * len(at))
    for axis in reversed(range(len(at))):
        rest = shape[axis] - at[axis]
        grown = Box(at, (*gap.shape[:axis], rest, *gap.shape[axis + 1 :]))
        stops = [box.begin[axis] - at[axis] for box in boxes if box.meet(grown).size]
        gap = Box(at, (*gap.shape[:axis], min([rest, *stops]), *gap.shape[axis + 1 :]))
    return gap


def contiguous_axes(box: Box, stored: Box, element: int, memory: Shape) -> int:
    """The number of last axes of a box that form one run of bytes, in file and memory.

    The file holds ``stored`` in C order; ``memory``: strides in bytes of the box in memory.
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
    """The offset in bytes of a box from the beginning of ``stored``."""
    steps = strides(stored.shape, element)
    return sum(
        (mine - its) * step for mine, its, step in zip(box.begin, stored.begin, steps, strict=True)
    )


def run_count(box: Box, stored: Box, element: int, memory: Shape) -> int:
    """The number of runs of bytes in a box."""
    return math.prod(box.shape[: len(box.shape) - contiguous_axes(box, stored, element, memory)])


def runs(
    box: Box, stored: Box, element: int, memory: Shape
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """The runs of bytes of a box: offsets in the file (from the beginning of ``stored``), offsets
    in memory (from the first element), and the bytes of each run."""
    outer = len(box.shape) - contiguous_axes(box, stored, element, memory)
    file_strides, begin = strides(stored.shape, element), place_of(box, stored, element)
    in_file, in_memory = np.array([begin], np.int64), np.zeros(1, np.int64)
    for axis in range(outer):
        index = np.arange(box.shape[axis], dtype=np.int64)
        in_file = (in_file[:, None] + index * file_strides[axis]).reshape(-1)
        in_memory = (in_memory[:, None] + index * memory[axis]).reshape(-1)
    return in_file, in_memory, math.prod(box.shape[outer:]) * element
