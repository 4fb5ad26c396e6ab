"""What the ranks of a node move together, in memory that they share."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, node
from pario.checkpoint.exchange import Piece, Stored, divided, places, regions, rounds, share
from pario.checkpoint.geometry import Box, whole
from tests.support.waiting import PATIENCE

SHAPE = (40, 30, 200)
ARRAY = Stored(1000, (0, 0, 0), SHAPE, 8)


def held(ranks: int) -> list[dict[Stored, list[Box]]]:
    """Blocks of all axes."""
    return [{ARRAY: [checkpoint.divide(SHAPE, ranks, rank)]} for rank in range(ranks)]


def elements(pieces: list[Piece]) -> np.ndarray:
    """How often each element of the array is in some pieces."""
    found = np.zeros(SHAPE, int)
    for piece in pieces:
        found[piece.box.within(whole(SHAPE))] += 1
    return found


def test_a_node_alone_moves_all_of_an_array_in_one_run():
    assert regions(held(8), [0] * 8, frozenset([ARRAY]), writing=True) == [[Piece(ARRAY, whole(SHAPE))]]


def test_each_of_several_nodes_moves_what_its_ranks_have():
    ranks = [{ARRAY: [Box((20 * (rank // 2), 0, 100 * (rank % 2)), (20, 30, 100))]} for rank in range(4)]
    found = regions(ranks, [0, 0, 1, 1], frozenset([ARRAY]), writing=True)
    assert found == [[Piece(ARRAY, Box((20 * node, 0, 0), (20, 30, 200)))] for node in range(2)]


def test_nodes_that_have_short_runs_or_write_what_others_have_leave_it_to_mpi_io():
    assert regions(held(8), [rank % 2 for rank in range(8)], frozenset([ARRAY]), writing=True) is None
    some = held(8)[:5]
    assert regions(some, [0] * 5, frozenset([ARRAY]), writing=True) is None
    assert regions(some, [0] * 5, frozenset([ARRAY]), writing=False) is not None
    assert regions([{ARRAY: [Box((at, at, at), (1, 1, 1)) for at in (0, 29)]}], [0], frozenset([ARRAY]), writing=False) is None


def test_arrays_of_which_all_have_long_runs_are_left_to_each_rank():
    slabs = Stored(10**7, (0, 0), (4, 100_000), 8)
    ranks = [{**theirs, slabs: [Box((rank, 0), (1, 100_000))]} for rank, theirs in enumerate(held(4))]
    assert divided(ranks) == {ARRAY}


@pytest.mark.system
@pytest.mark.parametrize("most", [100, 5000, 1 << 22])
@pytest.mark.parametrize("ranks", [1, 3])
def test_rounds_and_shares_of_ranks_move_each_byte_once(most, ranks):
    other = Stored(5_000_000, (), (), 7)
    region = [Piece(ARRAY, whole(SHAPE)), Piece(other, whole(()))]
    turns = list(rounds(region, most))
    assert (elements([piece for turn in turns for piece in turn if piece.stored is ARRAY]) == 1).all()
    assert all(sum(piece.nbytes for piece in turn) <= most for turn in turns)
    shares = [(place, part, places(turn)[-1]) for turn in turns for rank in range(ranks) for place, part in share(turn, rank, ranks)]
    assert all(part.stop <= size for _, part, size in shares)
    found = sorted((place, place + part.stop - part.start) for place, part, _ in shares)
    assert sum(end - begin for begin, end in found) == ARRAY.box.size * 8 + 7
    assert all(end <= begin for (_, end), (begin, _) in pairwise(found))


def test_rounds_are_made_one_by_one():
    lines = Stored(0, (0, 0), (1 << 30, 1 << 14), 8)
    region = regions([{lines: [Box((0, 0), (1 << 30, 1 << 13))]}], [0], frozenset([lines]), writing=True)
    assert region and next(rounds(region[0], 1 << 17)) == [Piece(lines, Box((row, 0), (1, 1 << 13))) for row in range(2)]


class Comm:
    """Threads as the ranks of a communicator."""

    def __init__(self, rank: int, values: list[object], barrier: threading.Barrier) -> None:
        self.rank, self.values, self.barrier = rank, values, barrier

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return len(self.values)

    def allgather(self, value: object) -> list[object]:
        self.values[self.rank] = value
        self.barrier.wait(PATIENCE)
        found = list(self.values)
        self.barrier.wait(PATIENCE)
        return found

    def bcast(self, value: object) -> object:
        return self.allgather(value)[0]


def test_ranks_meet_again_after_some_have_not_waited(monkeypatch):
    monkeypatch.setattr(node, "by_node", lambda comm: comm)
    values, barrier = [None] * 2, threading.Barrier(2)

    def program(rank: int) -> list[int]:
        comm = Comm(rank, values, barrier)
        mine = node.Node(comm)
        memory = mine.memory(8)
        for _ in range(2 - rank):  # rank 1 does not come to the second one
            meeting = mine.arrive()
        if rank == 0:
            with pytest.raises(CheckpointError, match="did not come within"):
                mine.wait(meeting, 0.01)
        found = []
        for number in range(1, 5):
            memory = mine.memory(8)
            if rank == 1:
                memory[0] = number
            mine.wait(mine.arrive(), PATIENCE)
            found.append(int(memory[0]))
            comm.allgather(None)
        return found

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(program, range(2))) == [[1, 2, 3, 4]] * 2


@pytest.mark.parametrize("steps", [0, 40])
def test_patience_begins_again_when_another_one_gets_on(monkeypatch, steps):
    """Time goes on only where one waits; rank 1 gets on meanwhile."""
    now, waits = [0.0], [0]
    monkeypatch.setattr(node, "by_node", lambda comm: comm)
    alone = node.Node(Comm(0, [None], threading.Barrier(1)))
    alone.memory(8)
    show = alone.moving(lambda done, whole: None)

    def waited(address, count, seconds):
        now[0] += max(seconds, 0.01)
        waits[0] += 1
        if waits[0] <= steps:
            show(waits[0], steps)
        return waits[0] > 60

    monkeypatch.setattr(node, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(node, "await_all", waited)
    told = []
    with pytest.raises(CheckpointError, match="did not come within"):
        alone.wait(1, 2.0, lambda: told.append(now[0]))
    assert len(told) == steps  # to ranks of other nodes
    assert now[0] == pytest.approx(steps * 0.5 + 2.0, abs=0.6)
    monkeypatch.setattr(node, "await_all", lambda *_: True)
    alone.wait(1, 2.0)
