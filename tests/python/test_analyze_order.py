"""Unordered overlapping writes are found, and no ordered ones, as by comparing all pairs."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.see.analyze.order import Overlap, Step, unordered_overlaps

LANES = 4


def meet(key: int, *lanes: int, time: float = 0.0) -> list[Step]:
    return [Step(lane, time, "meet", key) for lane in lanes]


def write(lane: int, number: int, begin: int = 0, end: int = 10, time: float = 0.0) -> Step:
    return Step(lane, time, "write", 0, begin, end, number)


def pairs(steps: list[Step], lanes: int = LANES) -> set[frozenset[int]]:
    return {frozenset((one.first, one.second)) for one in unordered_overlaps(steps, lanes)}


def test_writes_of_two_lanes_without_an_order_are_found() -> None:
    assert unordered_overlaps([write(0, 1, 0, 10), write(1, 2, 5, 15)], 2) == [
        Overlap(0, 5, 10, 1, 2)
    ]


def test_writes_of_one_lane_or_of_other_bytes_are_silent() -> None:
    assert not pairs([write(0, 1), write(0, 2), write(1, 3, 10, 20)])


def test_a_meeting_orders_its_lanes_alone() -> None:
    steps = [write(0, 1), *meet(7, 0, 1), write(1, 2), write(2, 3, 100, 110), write(0, 4, 100, 110)]
    assert pairs(steps) == {frozenset((3, 4))}


def test_a_message_orders_one_way() -> None:
    there = [write(0, 1), Step(0, 0, "send", 5), Step(1, 0, "receive", 5), write(1, 2)]
    back = [Step(0, 0, "send", 5), write(0, 1), Step(1, 0, "receive", 5), write(1, 2)]
    assert not pairs(there)
    assert pairs(back) == {frozenset((1, 2))}


def test_order_passes_through_other_lanes_with_clocks_that_disagree() -> None:
    steps = [
        *(write(0, 1, time=9.0), Step(0, 9.1, "send", 1)),
        *(Step(2, 5.0, "receive", 1), *meet(3, 2, 1, time=5.1)),
        write(1, 2, time=6.0),
    ]
    assert not pairs(steps)


def test_messages_that_cannot_be_matched_may_order() -> None:
    sent = [write(0, 1, time=1.0), Step(0, 2.0, "publish")]
    assert not pairs([*sent, Step(1, 3.0, "acquire"), write(1, 2, time=4.0)])
    assert pairs([*sent, Step(1, 1.5, "acquire"), write(1, 2, time=4.0)]) == {frozenset((1, 2))}


def test_a_lane_whose_last_step_waits_for_a_message_in_a_circle_ends() -> None:
    """Lane 1 waits for its own message, so that lane 0 never gets the one that it waits for."""
    steps = [Step(0, 0, "receive", 1), Step(1, 0, "receive", 2), Step(1, 0, "send", 2)]
    assert not pairs([*steps, Step(1, 0, "send", 1)])


def test_lanes_that_wait_in_a_circle_end_without_an_alarm() -> None:
    steps = [
        *(Step(0, 0, "receive", 1), write(0, 1), Step(0, 0, "send", 2)),
        *(Step(1, 0, "receive", 2), write(1, 2), Step(1, 0, "send", 1)),
    ]
    assert not pairs(steps)


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Steps of lanes in an order in which they may have happened; times are those of a global
    clock."""
    steps: list[Step] = []
    waiting: list[tuple[int, int]] = []  # message, receiver
    for moment in range(draw(st.integers(2, 30))):
        kind = draw(st.sampled_from(["write", "write", "write", "meet", "send", "receive"]))
        lane = draw(st.integers(0, LANES - 1))
        if kind == "write":
            begin = draw(st.integers(0, 20))
            size = draw(st.integers(1, 12))
            steps.append(write(lane, moment, begin, begin + size, moment))
        elif kind == "meet":
            others = draw(st.sets(st.integers(0, LANES - 1), min_size=1))
            steps += meet(moment, *sorted(others), time=moment)
        elif kind == "send":
            steps.append(Step(lane, moment, "send", moment))
            waiting.append((moment, draw(st.integers(0, LANES - 1))))
        elif waiting:
            key, receiver = waiting.pop(0)
            steps.append(Step(receiver, moment, "receive", key))
    return steps


def order_of_all(steps: list[Step]) -> list[set[int]]:
    """Returns, for each step, all steps before it: the transitive closure of the edges."""
    before: list[set[int]] = []
    last: dict[int, int] = {}
    sends = {step.key: at for at, step in enumerate(steps) if step.kind == "send"}
    meetings = defaultdict(list)
    for at, step in enumerate(steps):
        if step.kind == "meet":
            meetings[step.key].append(at)
    entered: dict[int, set[int]] = {}
    for at, step in enumerate(steps):
        own = {last[step.lane]} | before[last[step.lane]] if step.lane in last else set()
        before.append(own)
        last[step.lane] = at
        if step.kind == "receive":
            own |= {sends[step.key]} | before[sends[step.key]]
        if step.kind == "meet" and at == meetings[step.key][-1]:
            entered[step.key] = set.union(*(before[one] for one in meetings[step.key]))
            for one in meetings[step.key]:
                before[one] |= entered[step.key]
    return before


@pytest.mark.system
@settings(max_examples=300)
@given(programs())
def test_the_bytes_are_those_of_comparing_all_pairs(steps: list[Step]) -> None:
    before = order_of_all(steps)
    writes = [(at, step) for at, step in enumerate(steps) if step.kind == "write"]
    expected: set[int] = set()
    unordered = set()
    for at, first in writes:
        for later, second in writes:
            shared = range(max(first.begin, second.begin), min(first.end, second.end))
            if at < later and first.lane != second.lane and at not in before[later] and shared:
                expected |= set(shared)
                unordered.add(frozenset((first.write, second.write)))
    found = unordered_overlaps(steps, LANES)
    assert {byte for one in found for byte in range(one.begin, one.end)} == expected
    assert {frozenset((one.first, one.second)) for one in found} <= unordered
