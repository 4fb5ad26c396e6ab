"""Checkpoints that are written while the program goes on."""

import errno
import threading

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import Writer, block, load, packing, transfer
from pario.checkpoint.geometry import whole
from tests.python.support.threads import run

WHOLE = (12, 7)


class Program:
    """A rank's part of a field that changes with every step."""

    def __init__(self, ranks) -> None:
        self.box = checkpoint.divide(WHOLE, ranks.size, ranks.rank)
        self.field = np.zeros(self.box.shape)

    def step(self, number: int) -> dict[str, checkpoint.given.Saved]:
        self.field[...] = expected(number)[self.box.within(whole(WHOLE))]
        return {"T": block(self.field, WHOLE, self.box.begin), "step": number}


def expected(number: int) -> np.ndarray:
    return np.arange(84.0).reshape(WHOLE) + number


@pytest.fixture(autouse=True)
def _unpacked(monkeypatch):
    """No array is small: each rank writes its own."""
    monkeypatch.setattr(packing, "LARGE", 0)


@pytest.fixture
def gate(monkeypatch):
    """Nothing is written until it is opened."""
    opened, write = threading.Event(), transfer.write

    def late(*arguments, **options):
        assert opened.wait(20)
        write(*arguments, **options)

    monkeypatch.setattr(transfer, "write", late)
    return opened


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_what_is_saved_is_what_was_there_at_the_call(tmp_path, threads, in_flight):
    def program(ranks):
        mine = Program(ranks)
        with Writer(ranks, tmp_path, durable=False, in_flight=in_flight) as writer:
            for number in range(6):
                writer.save_async(number, mine.step(number), {"time": number})
                mine.field[...] = -1
            writer.save(6, mine.step(6), {"time": 6})
            last = writer.save_async(7, mine.step(7), {"time": 7})
            return last.result(), last.done()

    assert run(3, program, threads=threads) == [(tmp_path / "step-00000007.h5", True)] * 3
    for number in range(8):
        state = load(None, tmp_path, step=number)
        assert (state["T"] == expected(number)).all() and state.attrs["time"] == number


def test_the_program_goes_on_meanwhile_until_memory_is_used_up(tmp_path, gate):
    with Writer(None, tmp_path, in_flight=2, durable=False) as writer:
        first, second = (writer.save_async(number, {"T": expected(number)}) for number in range(2))
        assert not first.done() and not second.done() and not list(tmp_path.glob("*.h5"))
        third = threading.Thread(target=writer.save_async, args=(2, {"T": expected(2)}))
        third.start()
        third.join(0.2)
        assert third.is_alive()
        gate.set()
        third.join(20)
        assert first.done()
    assert [load(None, tmp_path, step=number).step for number in range(3)] == [0, 1, 2]


def test_it_appears_without_another_call_where_ranks_may_meet_in_threads(tmp_path):
    def program(ranks):
        writer = Writer(ranks, tmp_path, durable=False)
        pending = writer.save_async(1, Program(ranks).step(1))
        pending.join()
        found = load(None, tmp_path).step if ranks.rank == 0 else 1
        writer.close()
        return found

    assert run(2, program) == [1, 1]


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_a_disk_that_fills_meanwhile_is_an_error_of_the_next_call_on_every_rank(tmp_path, monkeypatch, threads):
    write = transfer.write

    def program(ranks):
        mine, told = Program(ranks), []
        writer = Writer(ranks, tmp_path, durable=False)
        writer.save(1, mine.step(1))
        ranks.together("", lambda: None, lambda _: monkeypatch.setattr(transfer, "write", full))
        pending = writer.save_async(2, mine.step(2))
        for call in (pending.result, lambda: writer.save_async(3, mine.step(3)), lambda: writer.save(4, mine.step(4))):
            try:
                told.append(call().__class__.__name__)
            except Exception as error:
                told.append(str(error))
            ranks.together("", lambda: None, lambda _: None)
        ranks.together("", lambda: None, lambda _: monkeypatch.setattr(transfer, "write", write))
        writer.save(5, mine.step(5))
        writer.close()
        return told

    def full(comm, path, moves, **options):
        if threading.current_thread().name == "pario-checkpoint" and moves and moves[0].box.begin[0] > 0:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(comm, path, moves, **options)

    first, second = run(2, program, threads=threads)
    for told in (first, second):
        assert "No space left on device" in told[0]  # asked for
        assert told[1] == "Pending" and "No space left on device" in told[2]  # not asked for
    assert "rank 1: " in first[0]
    assert sorted(path.name for path in tmp_path.glob("step*")) == ["step-00000001.h5", "step-00000005.h5"]


def test_what_was_begun_is_finished_when_a_program_fails(tmp_path, gate):
    with pytest.raises(ZeroDivisionError), Writer(None, tmp_path, durable=False) as writer:
        writer.save_async(3, {"T": expected(3)})
        gate.set()
        raise ZeroDivisionError
    assert load(None, tmp_path).step == 3
