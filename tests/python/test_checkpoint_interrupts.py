"""Interrupts (Ctrl-C) while ranks wait for each other."""

import signal
import threading
from contextlib import nullcontext

import numpy as np
import pytest

from pario.checkpoint import exchange
from pario.checkpoint.exchange import Plan, held_by, regions
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.interrupts import deferred, kept
from pario.checkpoint.transfer import Move


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _as_python_does():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_kept_until_the_end():
    failed, reached = [], []
    with deferred(failed):
        interrupt()
        reached.append(1)
    assert reached and [type(error) for error in failed] == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_is_raised_at_the_end_where_nobody_takes_it():
    reached = []
    with pytest.raises(KeyboardInterrupt), deferred():
        interrupt()
        reached.append(1)
    assert reached


def test_a_second_one_is_raised_at_once():
    reached = []
    with pytest.raises(KeyboardInterrupt), deferred():
        interrupt()
        interrupt()
        reached.append(1)
    assert not reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_within_another_one_the_outer_one_has_it():
    outer, inner = [], []
    with deferred(outer):
        with deferred(inner):
            interrupt()
        assert not inner
    assert len(outer) == 1


def test_a_program_that_has_its_own_way_with_interrupts_keeps_it():
    came, failed = [], []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    with deferred(failed):
        interrupt()
    assert came == [signal.SIGINT] and not failed


def test_other_threads_have_nothing_to_do_with_it():
    found = []

    def program():
        with deferred():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=program)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, OSError])
def test_whatever_is_raised_is_kept(kind):
    failed = []
    with kept(failed):
        raise kind
    assert [type(error) for error in failed] == [kind]


def test_a_second_one_is_not_kept():
    failed, reached = [], []
    with pytest.raises(KeyboardInterrupt), deferred(failed):
        interrupt()
        with kept(failed):
            interrupt()
        reached.append(1)
    assert not reached


class Alone:
    """The one rank of a node, which counts the meetings it comes to."""

    def __init__(self):
        self.rank, self.size, self.number, self.numbers, self.met = 0, 1, 0, [0], 0

    def memory(self, size):
        return np.zeros(size, np.uint8)

    def moving(self, show):
        return show

    def arrive(self):
        self.met += 1
        return self.met

    def wait(self, meeting, patience, moved):
        assert meeting <= self.met


@pytest.mark.parametrize("when", [0, 1, 3])
@pytest.mark.parametrize("way", ["write", "read"])
def test_one_that_is_interrupted_comes_to_all_meetings_of_its_node(tmp_path, monkeypatch, way, when):
    monkeypatch.setattr(exchange, "_ROUND", 1 << 10)
    data = np.arange(2048.0).reshape(64, 32)
    path = tmp_path / "file"
    data.tofile(path)
    columns = [Move(0, whole((64, 32)), Box((0, 8 * part), (64, 8)), data[:, 8 * part : 8 * part + 8].copy()) for part in range(4)]
    held = held_by(columns)
    arrays = exchange.divided([held])
    plan = Plan(arrays, regions([held], [0], arrays, writing=True))
    move, counts = exchange.transfer.write_all if way == "write" else exchange.transfer.read_all, []

    def counted(*arguments):
        counts.append(1)
        if len(counts) == when + 1:
            interrupt()
        return move(*arguments)

    monkeypatch.setattr(exchange.transfer, move.__name__, counted)
    monkeypatch.setattr(exchange, "plan", lambda *_, **__: plan)
    came = []
    for interrupted in (True, False):
        counts[:] = [] if interrupted else [1] * 1000
        alone = Alone()
        monkeypatch.setattr(exchange, "node_of", lambda comm, alone=alone: alone)
        with pytest.raises(KeyboardInterrupt) if interrupted else nullcontext():
            if way == "write":
                exchange.write(None, plan, str(path), columns, durable=False)
            else:
                exchange.read(None, str(path), columns)
        came.append(alone.met)
    assert came[0] == came[1] > 4
    assert (np.fromfile(path).reshape(64, 32) == data).all()
