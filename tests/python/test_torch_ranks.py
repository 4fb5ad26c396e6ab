"""Ranks of PyTorch: their messages through a store, here a store made for the tests."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from pario import ranks as ranks_module
from pario.checkpoint import store_ranks, torch_ranks
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.store_ranks import StoreTransport
from pario.checkpoint.torch_ranks import TorchRanks, TorchStore
from tests.support.waiting import PATIENCE, wait_until

distributed = pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.system  # whose set-up installs PyTorch


class Store:
    """A store for ranks that are threads."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.changed = threading.Condition()

    def clone(self) -> Store:
        return self

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            self.entries[key] = value
            self.changed.notify_all()

    def get(self, key: str) -> bytes:
        return bytes(self.entries[key])

    def add(self, key: str, more: int) -> int:
        with self.changed:
            self.entries[key] = self.entries.get(key, 0) + more
            return int(self.entries[key])

    def check(self, keys: list[str]) -> bool:
        return all(key in self.entries for key in keys)

    def delete_key(self, key: str) -> None:
        with self.changed:
            del self.entries[key]

    def wait(self, keys: list[str], patience: timedelta) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.check(keys), patience.total_seconds()):
                raise distributed.DistStoreError("wait timeout")

    def messages(self) -> list[str]:
        with self.changed:
            return [key for key in self.entries if key.count("/") == 4]

    def messages_to(self, rank: int) -> list[str]:
        return [key for key in self.messages() if key.split("/")[3] == str(rank)]


class Group:
    """A process group; each rank has its own."""

    group_name = "test"

    def __init__(self, rank: int) -> None:
        self.rank = rank


class PerThread:
    """Counts per rank, each of which is a thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __getitem__(self, name: str) -> int:
        return int(self._local.__dict__.get(name, 0))

    def __setitem__(self, name: str, count: int) -> None:
        self._local.__dict__[name] = count


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr(distributed.distributed_c10d, "_get_default_store", lambda: made)
    monkeypatch.setattr(distributed, "get_rank", lambda group: group.rank)
    monkeypatch.setattr(distributed, "get_world_size", lambda _: 3)
    monkeypatch.setattr(store_ranks, "_made", PerThread())
    return made


def run(program: Any) -> list[Any]:
    """Runs a program on each of three ranks; returns its results or its exceptions."""
    groups = [Group(rank) for rank in range(3)]  # keeps the groups alive as long as the ranks

    def one(rank: int) -> Any:
        try:
            return program(groups[rank])
        except CheckpointError as error:
            return str(error)

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(one, range(3)))


def test_messages_keep_the_order_of_their_sender_and_are_deleted(store: Store) -> None:
    first, second, third = (
        StoreTransport(TorchStore(store), "pario/test/1", rank) for rank in range(3)
    )
    for number in range(3):
        second.send(0, b"second %d" % number)
        third.send(0, b"third %d" % number)
    received = [first.receive() for _ in range(6)]
    assert [data for sender, data in received if sender == 1] == [
        b"second %d" % number for number in range(3)
    ]
    assert [sender for sender, _ in received].count(2) == 3
    assert first.receive() is None and not store.messages()


def test_waits_grow_until_a_message_arrives(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(store_ranks.time, "sleep", slept.append)
    first, second = (StoreTransport(TorchStore(store), "pario/test/1", rank) for rank in range(2))
    for _ in range(12):
        first.wait(1)
    assert slept == sorted(slept)
    assert (slept[0], slept[-1]) == (store_ranks._SHORTEST_PAUSE, store_ranks._LONGEST_PAUSE)
    second.send(0, b"here")
    assert first.receive() == (1, b"here")
    first.wait(1)
    first.wait(1e-5)
    assert slept[-2:] == [slept[0], 1e-5]


@pytest.mark.usefixtures("store")
def test_ranks_of_a_group_meet_and_know_who_shares_memory() -> None:
    def program(group: Group) -> Any:
        ranks, again = TorchRanks(group, PATIENCE), TorchRanks(group, PATIENCE)
        nodes = torch_ranks._groups[group][""].native.nodes
        return ranks.together("one", lambda: ranks.rank, sum), again.agree("two", lambda: 2), nodes

    assert run(program) == [(3, 2, [0, 0, 0])] * 3


@pytest.mark.parametrize("first", [True, False])
def test_an_absent_rank_is_named(store: Store, first: bool) -> None:
    """Also if the rank misses the first meeting, at which ranks exchange their names."""

    def wait_for_rank_2(rank: int) -> None:
        """Lets rank 0 begin its wait when the question of rank 2 has arrived."""
        if rank == 0:
            wait_until(lambda: store.messages_to(0), "a message of rank 2")

    def program(group: Group) -> Any:
        if first:
            if group.rank == 1:
                return None
            wait_for_rank_2(group.rank)
        ranks = TorchRanks(group, 0.2 if first else PATIENCE)
        ranks.patience = 0.2
        if ranks.rank == 1:
            return None
        wait_for_rank_2(group.rank)
        return ranks.together("a save", lambda: 5, sum)

    what = "the first meeting of the ranks" if first else "a save"
    absent = f"{what}: rank 1 did not come within 0.20 s"
    assert run(program) == [absent, None, absent]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.system
def test_ranks_that_progress_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, progress: bool
) -> None:
    """Rank 0 seems to have begun its wait so long ago that its patience has ended, but for the
    keep-alive of rank 2, which comes when rank 0 has looked for messages several times."""
    shown, waits, looks = threading.Event(), threading.Event(), []
    past = threading.local()

    def begin() -> float:
        return time.monotonic() - getattr(past, "seconds", 0.0)

    def look() -> None:
        if hasattr(past, "seconds"):
            looks.append(1)
        if len(looks) > 2:
            waits.set()

    def program(group: Group) -> Any:
        ranks = TorchRanks(group, PATIENCE)
        if ranks.rank == 2:
            if progress:
                ranks.moving()(1, 2)
            shown.set()
            if progress:
                assert waits.wait(PATIENCE), "rank 0 does not wait"
        assert shown.wait(PATIENCE)
        if ranks.rank == 0:
            past.seconds = 10 * PATIENCE
        return ranks.together("a save", lambda: 5, sum) if progress or ranks.is_first else None

    monkeypatch.setattr(ranks_module, "time", SimpleNamespace(monotonic=begin))
    monkeypatch.setattr(ranks_module, "check", look)
    found = run(program)
    assert found == [15] * 3 if progress else "did not come" in found[0]


@pytest.mark.usefixtures("store")
def test_an_interrupt_of_a_waiting_rank_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    def program(group: Group) -> Any:
        ranks = TorchRanks(group, PATIENCE)
        if ranks.rank == 0:
            monkeypatch.setattr(ranks_module, "check", interrupt)
            with pytest.raises(KeyboardInterrupt):
                ranks._receive(-1, time.monotonic(), PATIENCE)
        return ranks.rank

    assert run(program) == [0, 1, 2]
