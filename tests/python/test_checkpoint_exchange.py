"""Moves of several ranks by the engine: threads as ranks, without an MPI."""

import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, exchange
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.transfer import Move
from tests.python.support.threads import run_on_nodes
from tests.support.waiting import PATIENCE

SHAPE = (12, 10, 20)
PLACE, OTHER_PLACE = 1000, 100_000
ARRAY = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)
OTHER = np.arange(300, dtype="u2").reshape(20, 15)


def run(nodes, program):
    """Runs a program on ranks of these nodes; raises the first of their exceptions."""
    ended = run_on_nodes(nodes, program)
    for one in ended:
        if isinstance(one, Exception):
            raise one
    return ended


def make_move(place, array, box, data):
    return Move(place, whole(array.shape), box, data)


def moves_of(rank, ranks, empty=False):
    """This rank's blocks of both arrays; with ``empty`` without their elements. The blocks of the
    first array have strides in memory and, on rank 0, two parts that alternate in the file."""
    box = checkpoint.divide(SHAPE, ranks, rank)
    boxes = [box]
    if rank == 0:
        half = box.shape[2] // 2
        boxes = [
            Box((*box.begin[:2], box.begin[2] + half), (*box.shape[:2], box.shape[2] - half)),
            Box(box.begin, (*box.shape[:2], half)),
        ]
    moves = []
    for part in boxes:
        data = np.zeros(part.shape) if empty else ARRAY[part.within(whole(SHAPE))]
        moves.append(make_move(PLACE, ARRAY, part, np.asfortranarray(data)))
    columns = checkpoint.divide(OTHER.shape[::-1], ranks, rank)
    other = Box(columns.begin[::-1], columns.shape[::-1])
    data = np.zeros(other.shape, "u2") if empty else OTHER[other.within(whole(OTHER.shape))]
    return [make_move(OTHER_PLACE, OTHER, other, data), *moves]


@pytest.mark.parametrize("nodes", [[0], [0, 0, 0], [0, 1], [0, 0, 1, 1]], ids=str)
@pytest.mark.parametrize("most", [1 << 26, 2000])
def test_blocks_of_all_ranks_are_written_and_read(tmp_path, monkeypatch, nodes, most):
    monkeypatch.setattr(exchange, "_WINDOW", most)
    path = str(tmp_path / "file")
    shown = []

    def program(ranks):
        written = moves_of(ranks.rank, ranks.size)
        exchange.write(
            ranks, path, written, durable=True, show=lambda done, size: shown.append((done, size))
        )
        read = moves_of(ranks.rank, ranks.size, empty=True)
        exchange.read(ranks, path, read)
        return all((one.data == other.data).all() for one, other in zip(written, read, strict=True))

    assert all(run(nodes, program))
    content = Path(path).read_bytes()
    assert content[PLACE : PLACE + ARRAY.nbytes] == ARRAY.tobytes()
    assert content[OTHER_PLACE:] == OTHER.tobytes()
    assert any(done == size for done, size in shown)
    assert len(shown) >= len(nodes) * (1 if most > ARRAY.nbytes else 2)


def test_each_node_writes_a_file_of_its_own(tmp_path):
    def program(ranks):
        node = "ab"[ranks.rank // 2]
        box = Box((0, 0, 10 * (ranks.rank % 2)), (12, 10, 10))
        move = make_move(0, ARRAY, box, ARRAY[box.within(whole(SHAPE))] + ord(node))
        exchange.write(ranks, str(tmp_path / node), [move], durable=False, node=True)

    run([0, 0, 1, 1], program)
    for node in "ab":
        found = np.fromfile(tmp_path / node).reshape(SHAPE)
        assert (found == ARRAY + ord(node)).all()


@pytest.mark.parametrize("window", [1 << 28, 1 << 14])
def test_moves_of_several_ranks_are_written_by_one_process_in_few_calls(
    tmp_path, monkeypatch, window
):
    monkeypatch.setattr(exchange, "_WINDOW", window)
    by_rank = [[make_columns(first, last)] for first, last in pairwise([0, 1, 2, 3, 10])]
    before = count_system_writes()
    exchange.write_for_all(str(tmp_path / "file"), by_rank, durable=True)
    assert count_system_writes() - before < 200  # of 8,000 rows
    assert (np.fromfile(tmp_path / "file").reshape(COLUMNS.shape) == COLUMNS).all()


def test_ranks_with_different_shares_of_rows_write_few_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_WINDOW", 1 << 14)
    bounds = list(pairwise([0, 1, 2, 3, 10]))

    def program(ranks):
        moves = [make_columns(*bounds[ranks.rank])]
        exchange.write(ranks, str(tmp_path / "file"), moves, durable=False)

    before = count_system_writes()
    run([0] * len(bounds), program)
    assert count_system_writes() - before < 500  # of 8,000 rows
    assert (np.fromfile(tmp_path / "file").reshape(COLUMNS.shape) == COLUMNS).all()


COLUMNS = np.arange(20_000.0).reshape(2000, 10)


def make_columns(first, last):
    box = Box((0, first), (2000, last - first))
    return make_move(0, COLUMNS, box, COLUMNS[box.within(whole(COLUMNS.shape))])


def count_system_writes():
    (line,) = [line for line in Path("/proc/self/io").read_text().splitlines() if "syscw" in line]
    return int(line.split()[1])


def test_a_file_that_ends_early_is_an_error(tmp_path):
    (tmp_path / "file").write_bytes(bytes(PLACE + ARRAY.nbytes // 2))

    def program(ranks):
        moves = moves_of(ranks.rank, ranks.size, empty=True)[1:]
        with pytest.raises(CheckpointError, match="ends before the end of an array"):
            exchange.read(ranks, str(tmp_path / "file"), moves)

    run([0, 0], program)


def test_a_file_that_cannot_be_opened_is_an_error_on_all_ranks(tmp_path):
    def program(ranks):
        for write in (True, False):
            with pytest.raises(CheckpointError, match=r"missing/file: .*No such file"):
                if write:
                    exchange.write(ranks, str(tmp_path / "missing/file"), [], durable=False)
                else:
                    exchange.read(ranks, str(tmp_path / "missing/file"), [])

    run([0, 0, 1], program)


def test_an_error_of_one_rank_lets_no_other_wait(tmp_path):
    class BadTally:
        def add(self, data, box):
            raise ValueError("a bad tally")

    def program(ranks):
        moves = moves_of(ranks.rank, ranks.size)
        if ranks.rank == 1:
            moves = [Move(one.place, one.stored, one.box, one.data, BadTally()) for one in moves]
            with pytest.raises(ValueError, match="a bad tally"):
                exchange.write(ranks, str(tmp_path / "file"), moves, durable=False)
        else:
            exchange.write(ranks, str(tmp_path / "file"), moves, durable=False)

    run([0, 0, 0], program)


def test_after_a_rank_did_not_come_the_ranks_write_alone(tmp_path):
    barrier = threading.Barrier(2)

    def program(ranks):
        if ranks.rank == 0:
            ranks.patience = 0.2
            with pytest.raises(CheckpointError, match="file"):
                exchange.write(ranks, str(tmp_path / "file"), [], durable=False)
            assert not ranks.can_open_files
            ranks.patience = PATIENCE
        barrier.wait(PATIENCE)
        box = Box((0, 1500 * ranks.rank), (50, 1500))
        array = np.arange(150_000.0).reshape(50, 3000)
        with checkpoint.Writer(ranks, tmp_path / "ckpt", durable=False) as writer:
            for step in (1, 2):
                part = array[box.within(whole(array.shape))] + step
                writer.save(step, {"T": checkpoint.block(part, array.shape, box.begin)})
        found = checkpoint.load(ranks, tmp_path / "ckpt").read("T", box.begin, box.shape)
        return (found == array[box.within(whole(array.shape))] + 2).all()

    assert all(run([0, 0], program))
    assert checkpoint.load(None, tmp_path / "ckpt").step == 2


@pytest.mark.system
def test_keep_alives_prolong_the_wait_for_a_rank(tmp_path):
    patience = 3.0  # more than a pause of the thread that sends them
    begun, waits = [], threading.Event()

    def program(ranks):
        ranks.patience = patience
        show = ranks.moving()
        if ranks.rank == 0:
            begun.append(time.monotonic())
            waits.set()
        assert waits.wait(PATIENCE)
        while ranks.rank == 1 and time.monotonic() < begun[0] + 1.2 * patience:
            show(0, 1)
            time.sleep(0.01)
        exchange.write(ranks, str(tmp_path / "file"), [], durable=False)

    run([0, 0], program)
