"""Workers of DataLoaders agree on the position of each pass, in any order of their requests."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random

import pytest

from pario.records.passes import MAIN, Passes, Place, Reader

FIRST = Place(seed=5, epoch=2, position=30)
HERE = os.getpid()


def epochs_from(place: Place, count: int) -> list[Place]:
    places = [place]
    while len(places) < count:
        places.append(places[-1].next_epoch())
    return places


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_late_workers_join_the_pass_that_they_were_started_for(seed: int, persistent: bool) -> None:
    """A program may have abandoned up to three passes before a worker begins the first one."""
    chance, count = random.Random(seed), 8
    events = [(float(number), number, 0) for number in range(count)]
    for worker in range(1, 4):
        time = 0.0
        for number in range(count):
            time = max(time if persistent else 0.0, number + 3 * chance.random())
            if persistent or chance.random() < 0.8:  # other workers are killed before they begin
                events.append((time, number, worker))
    passes, expected = Passes(FIRST), epochs_from(FIRST, count)
    for _, number, worker in sorted(events):
        token = 7 if persistent else number
        assert passes.begin(Reader(HERE, worker, token)) == expected[number]


def test_passes_without_workers_and_with_equal_tokens_follow_each_other() -> None:
    passes, expected = Passes(FIRST), epochs_from(FIRST, 6)
    assert [passes.begin(Reader(HERE, MAIN, MAIN)) for _ in range(3)] == expected[:3]
    assert not passes.read_by_workers()
    assert [passes.begin(Reader(HERE, 0, 9)) for _ in range(3)] == expected[3:]
    assert passes.read_by_workers()
    assert [passes.begin(Reader(HERE, 1, 9)) for _ in range(3)] == expected[3:]
    assert passes.newest() == expected[-1]


def test_passes_of_other_processes_count_for_themselves() -> None:
    passes = Passes(FIRST)
    assert passes.begin(Reader(HERE, 0, 9)) == passes.begin(Reader(HERE + 1, 0, 9)) == FIRST


def test_a_set_or_replaced_place_is_followed_by_its_next_epoch() -> None:
    passes, other = Passes(FIRST), Place(1, 8, 4)
    readers = [Reader(HERE, worker, 9) for worker in range(2)]
    passes.begin(readers[0])
    passes.set_next(other)
    assert passes.newest() is None
    assert passes.begin(readers[0]) == passes.newest() == other
    passes.begin(readers[0])
    for reader in readers:
        passes.begin(reader)
    for reader in readers:
        passes.replace(reader, other)
    assert passes.begin(Reader(HERE, 0, 10)) == Place(1, 9, 0)


def _begin_together(passes: Passes, worker: int, barrier: object) -> list[Place]:
    process = multiprocessing.parent_process()
    assert process and process.pid
    barrier.wait()  # type: ignore[attr-defined]
    return [passes.begin(Reader(process.pid, worker, 9)) for _ in range(20)]


def _send_places(passes: Passes, worker: int, barrier: object, pipe: object) -> None:
    pipe.send(_begin_together(passes, worker, barrier))  # type: ignore[attr-defined]


def test_processes_that_begin_at_once_agree() -> None:
    context, passes = multiprocessing.get_context("fork"), Passes(FIRST)
    barrier = context.Barrier(3)
    pipes = [context.Pipe(False) for _ in range(3)]
    processes = [
        context.Process(target=_send_places, args=(passes, worker, barrier, sender))
        for worker, (_, sender) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    found = [receiver.recv() for receiver, _ in pipes]
    for process in processes:
        process.join()
    assert found == [epochs_from(FIRST, 20)] * 3
    assert passes.newest() == found[0][-1]


def test_a_copy_has_a_log_of_its_own() -> None:
    passes = Passes(FIRST)
    passes.begin(Reader(HERE, MAIN, MAIN))
    copy = pickle.loads(pickle.dumps(passes))
    assert copy.begin(Reader(HERE, MAIN, MAIN)) == FIRST.next_epoch()
    assert passes.newest() == FIRST
