"""Transfers of the ranks of a node through shared memory."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, node
from pario.checkpoint.exchange import (
    Piece,
    Stored,
    find_joint_arrays,
    places,
    regions,
    rounds,
    share,
)
from pario.checkpoint.geometry import Box, whole
from pario.interrupts import check
from tests.python.support.threads import comms
from tests.support.waiting import PATIENCE

SHAPE = (40, 30, 200)
ARRAY = Stored(1000, (0, 0, 0), SHAPE, 8)


def make_blocks(ranks: int) -> list[dict[Stored, list[Box]]]:
    """Returns for each rank the blocks of a division along all axes."""
    return [{ARRAY: [checkpoint.divide(SHAPE, ranks, rank)]} for rank in range(ranks)]


def elements(pieces: list[Piece]) -> np.ndarray:
    """Counts how often the pieces hold each element of the array."""
    found = np.zeros(SHAPE, int)
    for piece in pieces:
        found[piece.box.within(whole(SHAPE))] += 1
    return found


def test_a_node_alone_moves_all_of_an_array_in_one_run():
    assert regions(make_blocks(8), [0] * 8, frozenset([ARRAY]), writing=True) == [
        [Piece(ARRAY, whole(SHAPE))]
    ]


def test_each_of_several_nodes_moves_the_blocks_of_its_ranks():
    ranks = [
        {ARRAY: [Box((20 * (rank // 2), 0, 100 * (rank % 2)), (20, 30, 100))]} for rank in range(4)
    ]
    found = regions(ranks, [0, 0, 1, 1], frozenset([ARRAY]), writing=True)
    assert found == [[Piece(ARRAY, Box((20 * node, 0, 0), (20, 30, 200)))] for node in range(2)]


def test_nodes_with_short_runs_or_overlapping_blocks_use_mpi_io():
    assert (
        regions(make_blocks(8), [rank % 2 for rank in range(8)], frozenset([ARRAY]), writing=True)
        is None
    )
    some = make_blocks(8)[:5]
    assert regions(some, [0] * 5, frozenset([ARRAY]), writing=True) is None
    assert regions(some, [0] * 5, frozenset([ARRAY]), writing=False) is not None
    assert (
        regions(
            [{ARRAY: [Box((at, at, at), (1, 1, 1)) for at in (0, 29)]}],
            [0],
            frozenset([ARRAY]),
            writing=False,
        )
        is None
    )


def test_arrays_with_long_runs_on_all_ranks_are_moved_by_each_rank():
    slabs = Stored(10**7, (0, 0), (4, 100_000), 8)
    ranks = [
        {**theirs, slabs: [Box((rank, 0), (1, 100_000))]}
        for rank, theirs in enumerate(make_blocks(4))
    ]
    assert find_joint_arrays(ranks) == {ARRAY}


@pytest.mark.system
@pytest.mark.parametrize("most", [100, 5000, 1 << 22])
@pytest.mark.parametrize("ranks", [1, 3])
def test_rounds_and_shares_of_ranks_move_each_byte_once(most, ranks):
    other = Stored(5_000_000, (), (), 7)
    region = [Piece(ARRAY, whole(SHAPE)), Piece(other, whole(()))]
    turns = list(rounds(region, most))
    assert (
        elements([piece for turn in turns for piece in turn if piece.stored is ARRAY]) == 1
    ).all()
    assert all(sum(piece.nbytes for piece in turn) <= most for turn in turns)
    shares = [
        (place, part, places(turn)[-1])
        for turn in turns
        for rank in range(ranks)
        for place, part in share(turn, rank, ranks)
    ]
    assert all(part.stop <= size for _, part, size in shares)
    found = sorted((place, place + part.stop - part.start) for place, part, _ in shares)
    assert sum(end - begin for begin, end in found) == ARRAY.box.size * 8 + 7
    assert all(end <= begin for (_, end), (begin, _) in pairwise(found))


def test_rounds_are_made_one_by_one():
    lines = Stored(0, (0, 0), (1 << 30, 1 << 14), 8)
    region = regions(
        [{lines: [Box((0, 0), (1 << 30, 1 << 13))]}], [0], frozenset([lines]), writing=True
    )
    assert region and next(rounds(region[0], 1 << 17)) == [
        Piece(lines, Box((row, 0), (1, 1 << 13))) for row in range(2)
    ]


def test_ranks_meet_again_after_a_missed_meeting():
    mine = comms(2)

    def program(rank: int) -> list[int]:
        mine[rank].introduce("node", PATIENCE, check)
        alone = node.Node(mine[rank])
        assert (alone.rank, alone.size, alone.numbers) == (rank, 2, [0, 0])
        memory = alone.memory(8)
        for _ in range(2 - rank):  # rank 1 skips the second meeting
            meeting = alone.arrive()
        if rank == 0:
            with pytest.raises(CheckpointError, match="did not come within"):
                alone.wait(meeting, 0.01)
        barrier.wait(PATIENCE)  # ranks meet before the next exchange
        found = []
        for number in range(1, 5):
            memory = alone.memory(8)
            if rank == 1:
                memory[0] = number
            alone.wait(alone.arrive(), PATIENCE)
            found.append(int(memory[0]))
            barrier.wait(PATIENCE)
        return found

    barrier = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(program, range(2))) == [[1, 2, 3, 4]] * 2


def test_patience_begins_again_when_another_rank_progresses():
    mine, patience = comms(2), 0.4

    def program(rank: int) -> float:
        mine[rank].introduce("node", PATIENCE, check)
        alone = node.Node(mine[rank])
        alone.memory(8)
        begin = time.monotonic()
        if rank == 0:
            with pytest.raises(CheckpointError, match="did not come within"):
                alone.wait(alone.arrive(), patience)
        while rank == 1 and time.monotonic() < begin + 4 * patience:
            mine[rank].keep_alive(patience)
            time.sleep(0.01)
        return time.monotonic() - begin

    with ThreadPoolExecutor(2) as pool:
        waited = list(pool.map(program, range(2)))
    assert waited[0] >= 4 * patience
