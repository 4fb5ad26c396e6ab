"""Boxes: whether they tile an array, and the file ranges of their elements."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pario.checkpoint.geometry import (
    Box,
    divide,
    divide_overlaps,
    first_flaw,
    runs,
    strides,
    whole,
)

shapes = st.lists(st.integers(0, 7), max_size=4).map(tuple)


@st.composite
def tilings(draw, shape):
    """Boxes that tile an array, made by repeated division."""
    boxes = [whole(shape)]
    for _ in range(draw(st.integers(0, 6)) if shape else 0):
        box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        axis = draw(st.integers(0, len(shape) - 1))
        at = draw(st.integers(0, box.shape[axis]))
        for first, length in ((0, at), (at, box.shape[axis] - at)):
            begin, size = list(box.begin), list(box.shape)
            begin[axis] += first
            size[axis] = length
            boxes.append(Box(tuple(begin), tuple(size)))
    return draw(st.permutations(boxes))


@pytest.mark.system
@given(shapes.flatmap(lambda shape: st.tuples(st.just(shape), tilings(shape))))
def test_boxes_that_tile_have_no_flaw(case):
    shape, boxes = case
    assert first_flaw(shape, boxes) is None


@pytest.mark.system
@given(
    shapes.flatmap(
        lambda shape: st.tuples(st.just(shape), st.lists(tilings(shape), min_size=1, max_size=2))
    ),
    st.data(),
)
def test_the_flaw_is_the_first_element_that_not_one_box_has(case, data):
    shape, several = case
    boxes = [box for boxes in several for box in boxes]
    boxes = data.draw(st.lists(st.sampled_from(boxes), max_size=8))
    counts = np.zeros(shape, int)
    for box in boxes:
        counts[box.within(whole(shape))] += 1
    flaw = first_flaw(shape, boxes)
    wrong = np.argwhere(counts != 1)
    if not len(wrong):
        assert flaw is None
        return
    assert flaw is not None
    assert flaw.at == tuple(wrong[0])
    assert len(flaw.boxes) == counts[flaw.at]
    inside = counts[flaw.extent.within(whole(shape))]
    assert (inside == 0).all() if counts[flaw.at] == 0 else (inside > 1).all()
    assert flaw.extent.begin <= flaw.at


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(1, 12))
def test_even_shares_tile(shape, parts):
    boxes = [divide(shape, parts, part) for part in range(parts)] if shape else [whole(())]
    assert first_flaw(shape, boxes) is None


@given(shapes, st.data())
def test_runs_are_where_the_elements_lie(shape, data):
    array = np.arange(math.prod(shape), dtype="<i4").reshape(shape)
    begin = tuple(data.draw(st.integers(0, length)) for length in shape)
    box = Box(
        begin,
        tuple(
            data.draw(st.integers(0, length - first))
            for length, first in zip(shape, begin, strict=True)
        ),
    )
    piece = array[box.within(whole(shape))]
    memory = data.draw(st.sampled_from([piece, piece.copy()]))
    in_file, in_memory, length = runs(box, whole(shape), 4, memory.strides)
    content = array.tobytes()
    got = b"".join(content[at : at + length] for at in in_file.tolist())
    assert got == piece.tobytes()
    if memory.flags.c_contiguous and memory is not piece:
        content = memory.tobytes()
        assert b"".join(content[at : at + length] for at in in_memory.tolist()) == got


def test_few_runs_where_the_last_axes_are_whole():
    assert len(runs(Box((2, 0, 0), (3, 5, 6)), whole((9, 5, 6)), 8, strides((3, 5, 6), 8))[0]) == 1
    assert len(runs(Box((2, 0, 0), (3, 4, 6)), whole((9, 5, 6)), 8, strides((3, 4, 6), 8))[0]) == 3
    assert (
        len(runs(Box((0, 0), (3, 4)), whole((3, 4)), 8, (80, 8))[0]) == 3
    )  # ghost cells in memory


@given(st.data())
def test_each_element_of_overlapping_boxes_is_in_one_piece_of_the_first_box_that_has_it(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    sides = st.tuples(*(st.tuples(st.integers(0, n), st.integers(0, n)) for n in shape))
    drawn = data.draw(st.lists(sides, max_size=6))
    boxes = [
        Box(tuple(map(min, one)), tuple(abs(end - begin) for begin, end in one)) for one in drawn
    ]
    expected, found = np.full(shape, -1), np.full(shape, -1)
    for number, box in reversed(list(enumerate(boxes))):
        expected[box.within(whole(shape))] = number
    for number, pieces in enumerate(divide_overlaps(boxes)):
        for piece in pieces:
            assert (found[piece.within(whole(shape))] == -1).all()
            found[piece.within(whole(shape))] = number
    assert (found == expected).all()
