"""Checkpoints that are written in the background while the program continues."""

import errno
import os
import resource
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pario.ranks
from pario import checkpoint
from pario.checkpoint import (
    CheckpointError,
    Writer,
    background,
    block,
    container,
    exchange,
    load,
    relay,
    saving,
    store,
)
from pario.checkpoint import removal as removal_module
from pario.checkpoint.geometry import whole
from tests.python.support.threads import run
from tests.support.waiting import PATIENCE

WHOLE = (12, 7)


class Program:
    """Returns a rank's part of a field that changes with every step."""

    def __init__(self, ranks) -> None:
        self.box = checkpoint.divide(WHOLE, ranks.size, ranks.rank)
        self.field = np.zeros(self.box.shape)

    def step(self, number: int) -> dict[str, checkpoint.arrays.Saved]:
        self.field[...] = field_at(number)[self.box.within(whole(WHOLE))]
        return {"T": block(self.field, WHOLE, self.box.begin), "step": number}


def field_at(number: int) -> np.ndarray:
    return np.arange(84.0).reshape(WHOLE) + number


@pytest.fixture(autouse=True)
def _no_small_arrays(monkeypatch):
    """Treats no array as small, so that each rank writes its own blocks."""
    monkeypatch.setattr(container, "LARGE", 0)


@pytest.fixture
def gate(monkeypatch):
    """Nothing is written until it is opened."""
    opened, write = threading.Event(), exchange.write_for_all

    def late(*arguments, **options):
        assert opened.wait(PATIENCE)
        write(*arguments, **options)

    monkeypatch.setattr(exchange, "write_for_all", late)
    return opened


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_a_save_holds_the_arrays_as_they_were_at_the_call(tmp_path, threads, in_flight):
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
        assert (state["T"] == field_at(number)).all() and state.attrs["time"] == number


def test_the_program_continues_until_the_memory_of_snapshots_is_used_up(tmp_path, gate):
    with Writer(None, tmp_path, in_flight=2, durable=False) as writer:
        first, second = (writer.save_async(number, {"T": field_at(number)}) for number in range(2))
        assert not first.done() and not second.done() and not list(tmp_path.glob("*.h5"))
        third = threading.Thread(target=writer.save_async, args=(2, {"T": field_at(2)}))
        third.start()
        third.join(0.2)
        assert third.is_alive()
        gate.set()
        third.join(PATIENCE)
        assert first.done()
    assert [load(None, tmp_path, step=number).step for number in range(3)] == [0, 1, 2]


def test_a_save_completes_without_another_call_if_ranks_may_meet_in_threads(tmp_path):
    def program(ranks):
        writer = Writer(ranks, tmp_path, durable=False)
        pending = writer.save_async(1, Program(ranks).step(1))
        pending.join()
        found = load(None, tmp_path).step if ranks.rank == 0 else 1
        writer.close()
        return found

    assert run(2, program) == [1, 1]


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_a_full_disk_is_a_deferred_error_on_every_rank(tmp_path, monkeypatch, threads):
    write = exchange.write_for_all

    def program(ranks):
        mine, told = Program(ranks), []
        writer = Writer(ranks, tmp_path, durable=False)
        writer.save(1, mine.step(1))
        ranks.together(
            "", lambda: None, lambda _: monkeypatch.setattr(exchange, "write_for_all", full)
        )
        pending = writer.save_async(2, mine.step(2))
        for call in (
            pending.result,
            lambda: writer.save_async(3, mine.step(3)),
            lambda: writer.save(4, mine.step(4)),
        ):
            try:
                told.append(call().__class__.__name__)
            except Exception as error:
                told.append(str(error))
            ranks.together("", lambda: None, lambda _: None)
        ranks.together(
            "", lambda: None, lambda _: monkeypatch.setattr(exchange, "write_for_all", write)
        )
        writer.save(5, mine.step(5))
        writer.close()
        return told

    def full(path, by_rank, **options):
        if any(any(move.box.begin) for moves in by_rank for move in moves):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(path, by_rank, **options)

    first, second = run(2, program, threads=threads)
    for told in (first, second):
        assert "No space left on device" in told[0]  # from the pending save
        assert told[1] == "Pending" and "No space left on device" in told[2]  # from the next call
    assert "rank 0: " in second[0]  # rank 0 writes for both ranks
    assert sorted(path.name for path in tmp_path.glob("step*")) == [
        "step-00000001.h5",
        "step-00000005.h5",
    ]


@pytest.fixture
def first_fails(monkeypatch):
    """Fails the writes of step 1 with ENOSPC."""
    write = exchange.write_for_all

    def some(path, by_rank, **options):
        if "step-00000001" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(path, by_rank, **options)

    monkeypatch.setattr(exchange, "write_for_all", some)


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
@pytest.mark.parametrize("keep", [None, 1])
def test_the_last_saved_checkpoint_is_the_newest_in_any_order_of_waiting(tmp_path, threads, keep):
    def program(ranks):
        mine = Program(ranks)
        with Writer(ranks, tmp_path, durable=False, in_flight=3, keep=keep) as writer:
            pending = [writer.save_async(number, mine.step(number)) for number in (1, 2, 3)]
            pending[1].result()

    assert run(2, program, threads=threads) == [None, None]
    assert load(None, tmp_path).step == 3
    assert len(list(tmp_path.glob("step*"))) == (keep or 3)


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_a_failed_save_is_an_error_of_the_next_call_while_memory_is_left(
    tmp_path, first_fails, threads
):
    def program(ranks):
        mine = Program(ranks)
        with Writer(ranks, tmp_path, durable=False, in_flight=3) as writer:
            writer.save_async(1, mine.step(1)).join()
            with pytest.raises(CheckpointError, match="No space left on device"):
                writer.save_async(2, mine.step(2))
            writer.save_async(3, mine.step(3))

    assert run(2, program, threads=threads) == [None, None]
    assert sorted(path.name for path in tmp_path.glob("step*")) == ["step-00000003.h5"]


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_close_completes_the_saves_that_can_be_completed(tmp_path, first_fails, threads):
    def program(ranks):
        mine = Program(ranks)
        writer = Writer(ranks, tmp_path, durable=False, in_flight=2)
        writer._keep_at_most = lambda step: 1  # as if the first save failed only after the call
        for number in (1, 2):
            writer.save_async(number, mine.step(number))
        with pytest.raises(CheckpointError, match="No space left on device"):
            writer.close()

    assert run(2, program, threads=threads) == [None, None]
    assert sorted(path.name for path in tmp_path.glob("step*")) == ["step-00000002.h5"]


def test_pending_saves_are_completed_when_a_program_fails(tmp_path, gate):
    with pytest.raises(ZeroDivisionError), Writer(None, tmp_path, durable=False) as writer:
        writer.save_async(3, {"T": field_at(3)})
        gate.set()
        raise ZeroDivisionError
    assert load(None, tmp_path).step == 3


@pytest.fixture
def writing(monkeypatch) -> list[tuple[str, list[int]]]:
    """Records the background writes: for each call that writes, the file and the offsets of its
    blocks."""
    found, write = [], exchange.write_for_all

    def noting(path, by_rank, **options):
        if by_rank:
            begins = sorted(move.box.begin[0] for moves in by_rank for move in moves)
            found.append((Path(path).name.split(".")[0], begins))
        write(path, by_rank, **options)

    monkeypatch.setattr(exchange, "write_for_all", noting)
    return found


def save_twice(tmp_path, monkeypatch, nodes=1, **options):
    """Saves twice from three ranks on ``nodes`` nodes; their blocks start at rows 0, 4 and 8."""
    here = threading.local()
    monkeypatch.setattr(relay, "node_name", lambda: here.name)

    def program(ranks):
        mine, here.name = Program(ranks), f"node{ranks.rank % nodes}"
        with Writer(ranks, tmp_path, durable=False, **options) as writer:
            for number in range(2):
                writer.save_async(number, {"T": mine.step(number)["T"]}).result()

    assert run(3, program) == [None] * 3
    for number in range(2):
        assert (load(None, tmp_path, step=number)["T"] == field_at(number)).all()


def test_one_rank_of_a_node_writes_for_all(tmp_path, monkeypatch, writing):
    save_twice(tmp_path, monkeypatch)
    assert writing == [(f"step-0000000{number}", [0, 4, 8]) for number in range(2)]


def test_one_rank_of_each_node_writes_for_it(tmp_path, monkeypatch, writing):
    save_twice(tmp_path, monkeypatch, nodes=2)
    assert sorted(writing) == [
        (f"step-0000000{number}", begins) for number in range(2) for begins in ([0, 8], [4])
    ]


def test_one_rank_of_a_node_writes_all_parts(tmp_path, monkeypatch, writing):
    save_twice(tmp_path, monkeypatch, files="rank")
    assert writing == [(f"part-0000{number}", [4 * number]) for number in range(3)] * 2


def test_rows_of_all_ranks_of_a_node_are_joined(tmp_path, writing):
    """The ranks have short rows of the cube, and a long one of the line."""
    cube, line = np.arange(60 * 30 * 10.0).reshape(60, 30, 10), np.arange(30_000.0)

    def program(ranks):
        columns = checkpoint.geometry.Box((0, 0, 3 * ranks.rank), (60, 30, 3 + (ranks.rank == 2)))
        with Writer(ranks, tmp_path, durable=False) as writer:
            for number in range(2):
                mine = cube[columns.within(whole(cube.shape))] + number
                given = {
                    "cube": block(mine, cube.shape, columns.begin),
                    "line": block(
                        line[10_000 * ranks.rank :][:10_000], line.shape, (10_000 * ranks.rank,)
                    ),
                }
                writer.save_async(number, given).result()

    assert run(3, program) == [None] * 3
    assert len(writing) == 2
    for number in range(2):
        state = load(None, tmp_path, step=number)
        assert (state["cube"] == cube + number).all() and (state["line"] == line).all()


@pytest.mark.parametrize("hidden", [1, 2])
def test_ranks_without_shared_memory_write_their_own_copies(tmp_path, monkeypatch, writing, hidden):
    see, count = relay.map_memory, iter(range(3))
    monkeypatch.setattr(
        relay, "map_memory", lambda place: see(place) if next(count) >= hidden else None
    )
    save_twice(tmp_path, monkeypatch)
    whose = [[0, 8], [4]] if hidden == 1 else [[0], [4], [8]]
    assert sorted(writing) == [
        (f"step-0000000{number}", begins) for number in range(2) for begins in whose
    ]


def test_a_rank_that_cannot_share_memory_writes_its_own_blocks(tmp_path, monkeypatch, writing):
    def refuse(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(background, "Memory", refuse)
    save_twice(tmp_path, monkeypatch)
    assert sorted(writing) == [
        (f"step-0000000{number}", [begin]) for number in range(2) for begin in (0, 4, 8)
    ]


def test_copies_reuse_memory_of_other_arrays(tmp_path):
    """Snapshots reuse their memory for larger, smaller and earlier sets of arrays."""

    def program(ranks):
        with Writer(ranks, tmp_path, durable=False, in_flight=2) as writer:
            for number, length in enumerate((10, 10, 1000, 1000, 3, 10, 10, 1000)):
                data = np.full(length, number + ranks.rank / 2)
                writer.save_async(number, {"T": block(data, (2 * length,), (ranks.rank * length,))})
                data[...] = -1

    assert run(2, program) == [None, None]
    for number, length in enumerate((10, 10, 1000, 1000, 3, 10, 10, 1000)):
        assert (
            load(None, tmp_path, step=number)["T"].tolist()
            == [number] * length + [number + 0.5] * length
        )


def test_a_rank_that_cannot_copy_is_an_error_on_all(tmp_path, monkeypatch):
    def program(ranks):
        mine = Program(ranks)
        writer = Writer(ranks, tmp_path, durable=False)
        if ranks.rank == 1:
            monkeypatch.setattr(writer._snapshots[0], "copy", refuse)
        with pytest.raises((CheckpointError, MemoryError), match="no memory"):
            writer.save_async(1, mine.step(1))
        writer.save(2, mine.step(2))
        writer.close()

    def refuse(given):
        raise MemoryError("no memory")

    assert run(2, program) == [None, None]
    assert [path.name for path in tmp_path.glob("step*")] == ["step-00000002.h5"]


@pytest.fixture
def two_complete(tmp_path) -> store.Store:
    """A directory of two empty files with the names of checkpoints."""
    for number in range(2):
        path = tmp_path / f"step-0000000{number}.h5"
        path.touch()
    return store.Store(tmp_path)


def test_a_wait_for_a_removal_may_begin_while_the_removal_starts(two_complete, monkeypatch):
    start = threading.Thread.start
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: (two_complete.await_removal(), start(thread))
    )
    two_complete.prune(lambda found: found[:-1])
    two_complete.await_removal()
    assert [path.name for path in two_complete.directory.glob("step*")] == ["step-00000001.h5"]


def test_a_removal_at_the_end_of_python_is_done_at_once(two_complete, monkeypatch):
    def refuse(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    two_complete.prune(lambda found: found[:-1])
    assert [path.name for path in two_complete.directory.glob("step*")] == ["step-00000001.h5"]


def test_a_pipe_in_place_of_a_ranks_memory_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert relay.map_memory((str(tmp_path / "fifo"), 0, 0)) is None


@pytest.fixture
def removal(monkeypatch):
    """Delays the deletion of removed checkpoints until this event is set."""
    allowed, delete = threading.Event(), removal_module._delete_all

    def wait(paths):
        return allowed.wait(PATIENCE) and delete(paths)

    monkeypatch.setattr(removal_module, "_delete_all", wait)
    return allowed


def test_the_program_does_not_wait_for_removals(tmp_path, removal):
    with Writer(None, tmp_path, keep=1, durable=False) as writer:
        for number in range(2):
            writer.save(number, {"T": field_at(number)})
        pending = writer.save_async(2, {"T": field_at(2)})
        assert not pending.done()
        removal.set()
        assert load(None, pending.result()).step == 2


def test_a_save_waits_for_a_removal_if_it_needs_the_space(tmp_path, monkeypatch, removal):
    def full(path, needed):
        if not removal.is_set():
            removal.set()
            raise CheckpointError("no space")
        assert not list(tmp_path.glob("*.gone"))

    with Writer(None, tmp_path, keep=1, durable=False) as writer:
        for number in range(2):
            writer.save(number, {"T": field_at(number)})
        monkeypatch.setattr(saving, "check_space", full)
        writer.save(2, {"T": field_at(2)})
    assert load(None, tmp_path).step == 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("slow", [0, 2])
def test_a_rank_that_progresses_is_waited_for_beyond_the_patience(tmp_path, monkeypatch, slow):
    monkeypatch.setattr(pario.ranks, "_GRACE", 0.0)
    write = exchange.write_for_all

    def slowly(path, by_rank, *, show, **options):
        if any(
            move.box.begin == checkpoint.divide(WHOLE, 3, slow).begin
            for moves in by_rank
            for move in moves
        ):
            for step in range(36):
                time.sleep(0.25)
                show(step, 36)
        write(path, by_rank, show=show, **options)

    monkeypatch.setattr(exchange, "write_for_all", slowly)

    def program(ranks):
        monkeypatch.setattr(background, "Memory", refuse)  # each rank writes its own blocks
        with Writer(ranks, tmp_path, durable=False, patience=4) as writer:
            writer.save_async(1, Program(ranks).step(1)).result()

    def refuse(size):
        raise OSError(errno.ENOMEM, "no memory")

    assert run(3, program, patience=4.0) == [None] * 3
    assert (load(None, tmp_path)["T"] == field_at(1)).all()


def test_small_arrays_are_copied_once(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "LARGE", 1 << 20)  # as in programs
    arrays = {f"a{number}": np.full(1 << 16, number / 7) for number in range(32)}  # 512 KiB each
    size = sum(array.nbytes for array in arrays.values())
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, arrays)
        tracemalloc.start()
        try:
            pending = writer.save_async(2, arrays)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        pending.result()
    assert size <= peak < 1.5 * size
    state = load(None, tmp_path)
    assert all((state[name] == array).all() for name, array in arrays.items())


def test_later_copies_touch_no_new_memory(tmp_path):
    array, faults = np.zeros((8, 1 << 18)), []  # 16 MiB
    with Writer(None, tmp_path, durable=False) as writer:
        for step in range(4):
            before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            pending = writer.save_async(step, {"T": array})
            faults.append(resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before)
            pending.result()
    pages = array.nbytes // resource.getpagesize()
    assert min(faults[1:]) < pages / 20
