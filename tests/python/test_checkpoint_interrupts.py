"""Interrupts (Ctrl-C) while ranks wait for each other."""

import signal
import sys
import threading
import time
import weakref
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from pario import _native
from pario.checkpoint import Writer, exchange, header, load, store, transfer
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.transfer import Move
from pario.interrupts import check, defer_interrupt, keep_error
from pario.ranks import OneRank, Ranks
from tests.python.support.threads import comms
from tests.support.waiting import PATIENCE, wait_until


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _as_python_does():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_kept_until_the_end():
    failed, reached = [], []
    with defer_interrupt(failed):
        interrupt()
        reached.append(1)
    assert reached and [type(error) for error in failed] == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_raised_at_the_end_if_it_is_not_taken():
    reached = []
    with pytest.raises(KeyboardInterrupt), defer_interrupt():
        interrupt()
        reached.append(1)
    assert reached


def test_a_second_interrupt_is_raised_at_once():
    reached = []
    with pytest.raises(KeyboardInterrupt), defer_interrupt():
        interrupt()
        interrupt()
        reached.append(1)
    assert not reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_nested_block_leaves_the_interrupt_to_the_outer_one():
    outer, inner = [], []
    with defer_interrupt(outer):
        with defer_interrupt(inner):
            interrupt()
        assert not inner
    assert len(outer) == 1


def test_a_handler_of_the_program_is_kept():
    came, failed = [], []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    with defer_interrupt(failed):
        interrupt()
    assert came == [signal.SIGINT] and not failed


def test_other_threads_are_not_affected():
    found = []

    def program():
        with defer_interrupt():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=program)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, OSError])
def test_any_exception_is_kept(kind):
    failed = []
    with keep_error(failed):
        raise kind
    assert [type(error) for error in failed] == [kind]


def test_a_second_exception_is_not_kept():
    failed, reached = [], []
    with pytest.raises(KeyboardInterrupt), defer_interrupt(failed):
        interrupt()
        with keep_error(failed):
            interrupt()
        reached.append(1)
    assert not reached


class CountedFile:
    """A SharedFile whose calls are counted."""

    def __init__(self, file, calls):
        self._file, self._calls = file, calls

    def __getattr__(self, name):
        self._calls.append(name)
        return getattr(self._file, name)


@pytest.mark.parametrize("when", [0, 1, 3])
@pytest.mark.parametrize("way", ["write", "read"])
def test_an_interrupted_rank_makes_all_collective_calls(tmp_path, monkeypatch, way, when):
    monkeypatch.setattr(exchange, "_WINDOW", 1 << 12)
    data = np.arange(2048.0).reshape(64, 32)
    path = tmp_path / "file"
    data.tofile(path)
    columns = [
        Move(
            0, whole((64, 32)), Box((0, 8 * part), (64, 8)), data[:, 8 * part : 8 * part + 8].copy()
        )
        for part in range(4)
    ]
    open_alone, make_box = _native.open_alone, exchange._box
    made, calls = [], {True: [], False: []}
    for interrupted in (True, False):
        made.clear()

        def interrupt_once(move, interrupted=interrupted):
            made.append(1)
            if interrupted and len(made) == when + 1:
                interrupt()
            return make_box(move)

        def open_counted(*arguments, counted=calls[interrupted]):
            return CountedFile(open_alone(*arguments), counted)

        monkeypatch.setattr(exchange, "_box", interrupt_once)
        monkeypatch.setattr(_native, "open_alone", open_counted)
        with pytest.raises(KeyboardInterrupt) if interrupted else nullcontext():
            if way == "write":
                exchange.write(OneRank(), str(path), columns, durable=False)
            else:
                exchange.read(OneRank(), str(path), columns)
    assert calls[True] == calls[False] == ["maximum", "maximum", *[way] * 4, "close"]
    assert (np.fromfile(path).reshape(64, 32) == data).all()


@pytest.mark.system
def test_a_second_interrupt_ends_the_wait_for_another_rank(tmp_path):
    mine, other = comms(2)
    thread = threading.Thread(target=lambda: other.introduce("node", PATIENCE, check))
    thread.start()
    mine.introduce("node", PATIENCE, check)
    thread.join()
    main = threading.main_thread().ident
    reached = []

    def is_deferring():
        return signal.getsignal(signal.SIGINT) is not signal.default_int_handler

    def interrupt_main():
        wait_until(is_deferring, "interrupts are deferred")
        time.sleep(0.2)  # so that the wait has begun
        signal.pthread_kill(main, signal.SIGINT)
        wait_until(lambda: not is_deferring(), "the first interrupt is noted")
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt_main)
    thread.start()
    with pytest.raises(KeyboardInterrupt), defer_interrupt():
        Ranks(mine, 10 * PATIENCE).open_file(str(tmp_path / "file"), writes=True)
        reached.append(1)
    thread.join()
    assert not reached


class Dying:
    """An object whose removal by Python is interrupted; Python ignores exceptions there."""

    def __init__(self, way):
        self.way = way

    def __del__(self):
        if self.way == "__del__":
            interrupt()


def interrupt_where_it_is_swallowed(way):
    dying = Dying(way)
    if way == "weak reference":
        reference = weakref.ref(dying, lambda _: interrupt())
    elif way == "unraisable":
        interrupt_in_a_finalizer = weakref.finalize(dying, interrupt)
        assert interrupt_in_a_finalizer.alive
    del dying
    return way == "weak reference" and reference


ARRAYS = {"x": np.arange(1000.0), "y": np.arange(3)}
SWALLOWED = ["__del__", "weak reference", "unraisable"]


def calls_of(writer, path):
    """Returns API calls to be interrupted, and an internal function that each of them calls."""
    return {
        "save": (lambda: writer.save(2, ARRAYS), transfer, "_quotas"),
        "save_async": (lambda: writer.save_async(2, ARRAYS), transfer, "_quotas"),
        "load": (lambda: load(None, path), header, "read_header"),
        "read": (lambda: load(None, path)["x"], transfer, "read_all"),
        "Writer": (lambda: Writer(None, path.with_name("other")), store.Store, "claim"),
    }


@pytest.mark.parametrize("way", SWALLOWED)
@pytest.mark.parametrize("call", ["save", "save_async", "load", "read", "Writer"])
@pytest.mark.system
def test_an_interrupt_is_raised_also_where_python_would_ignore_it(tmp_path, monkeypatch, call, way):
    path = tmp_path / "ckpt"
    with Writer(None, path, durable=False) as writer:
        writer.save(1, ARRAYS)
        work, holder, name = calls_of(writer, path)[call]
        called = getattr(holder, name)

        def interrupt_and_call(*arguments, **options):
            interrupt_where_it_is_swallowed(way)
            return called(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(holder, name, interrupt_and_call)
            with pytest.raises(KeyboardInterrupt):
                work()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        writer.save(3, ARRAYS)
        Writer(None, path.with_name("other")).close()
    assert load(None, path).step == 3


def interrupt_at_line(work, chosen):
    """Interrupts a call at the first line whose number is chosen; returns the number of lines it
    ran."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if event != "line":
            return trace
        count += 1
        if chosen(count):
            sys.settrace(None)
            interrupt()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def is_at(line, count):
    return line == count


def check_interrupts_at_lines(path, every):
    """Interrupts a save at every ``every``-th line; each must raise KeyboardInterrupt and leave no
    temporary file."""
    with Writer(None, path, durable=False, keep=2) as writer:
        writer.save(0, ARRAYS)
        lines = interrupt_at_line(lambda: writer.save(1, ARRAYS), partial(is_at, 0))
        for at in range(1, lines - 1, every):
            with pytest.raises(KeyboardInterrupt):
                interrupt_at_line(partial(writer.save, at, ARRAYS), partial(is_at, at))
            assert not [one.name for one in path.iterdir() if one.name.endswith(".part")]
        writer.save(lines, ARRAYS)
    assert load(None, path).step == lines
    return lines


def test_a_save_can_be_interrupted_at_any_line(tmp_path):
    assert check_interrupts_at_lines(tmp_path, every=97) > 500


@pytest.mark.exhaustive
def test_a_save_can_be_interrupted_at_every_line(tmp_path):
    check_interrupts_at_lines(tmp_path, every=1)


def make_interrupter(delay):
    """A thread that interrupts the main thread after a delay; not started."""
    main = threading.main_thread().ident
    return threading.Thread(
        target=lambda: (time.sleep(delay), signal.pthread_kill(main, signal.SIGINT))
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["save", "save_async"])
def test_no_interrupt_of_many_is_lost(tmp_path, way):
    """Interrupts a loop of saves at random moments; each save makes a file of many arrays."""
    count, lost, random = 1000, 0, np.random.default_rng(1)
    with Writer(None, tmp_path, durable=False, keep=1) as writer:
        for number in range(count):
            names = [f"{number}/{name}" for name in range(8)]
            thread = make_interrupter(random.uniform(0, 0.02))
            try:
                thread.start()
                while thread.is_alive():
                    saved = getattr(writer, way)(number, dict.fromkeys(names, np.arange(10.0)))
                    del saved
                for _ in range(3):
                    getattr(writer, way)(number, dict.fromkeys(names, np.arange(10.0)))
                lost += 1
            except KeyboardInterrupt:
                pass
            thread.join()
    assert lost == 0, f"{lost} of {count} interrupts were swallowed"
