"""Ranks of PyTorch: how they wait for each other, by a store and a clock of the test's own."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from pario import ranks
from pario.checkpoint import torch_ranks
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks

distributed = pytest.importorskip("torch.distributed")
PATIENCE = 100.0


class Store:
    """Time goes on where somebody waits for what is not there; ``then`` is done at its time."""

    def __init__(self, now: list[float]) -> None:
        self.entries: dict[str, Any] = {}
        self.then: list[tuple[float, Any]] = []
        self.now = now

    def set(self, key: str, value: bytes) -> None:
        self.entries[key] = value

    def get(self, key: str) -> bytes:
        return bytes(self.entries[key])

    def add(self, key: str, more: int) -> int:
        self.entries[key] = self.entries.get(key, 0) + more
        return int(self.entries[key])

    def check(self, keys: list[str]) -> bool:
        return all(key in self.entries for key in keys)

    def delete_key(self, key: str) -> None:
        del self.entries[key]

    def wait(self, keys: list[str], patience: timedelta) -> None:
        deadline = self.now[0] + patience.total_seconds()
        while not self.check(keys):
            if not self.then or self.then[0][0] > deadline:
                self.now[0] = deadline
                raise distributed.DistStoreError("wait timeout")
            self.now[0], work = self.then.pop(0)
            work()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    now = [0.0]
    for module in (ranks, torch_ranks):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made = Store(now)
    monkeypatch.setattr(distributed.distributed_c10d, "_get_default_store", lambda: SimpleNamespace(clone=lambda: made))
    return made


@pytest.fixture
def members(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[TorchRanks]:
    """Three ranks of one group."""

    def one(rank: int) -> TorchRanks:
        monkeypatch.setattr(torch_ranks, "_made", Counter())
        monkeypatch.setattr(distributed, "get_rank", lambda _: rank)
        return TorchRanks(SimpleNamespace(group_name="test"), PATIENCE)

    monkeypatch.setattr(distributed, "get_world_size", lambda _: 3)
    return [one(rank) for rank in range(3)]


def beats(mine: TorchRanks, until: int) -> list[tuple[float, Any]]:
    return [(float(at), lambda: mine._tell_that_it_moves(range(1, 3) if mine.is_first else (0,))) for at in range(20, until, 20)]


def came(mine: TorchRanks, value: int) -> tuple[float, Any]:
    return 5000.0, lambda: mine._send(0, (1, ("a save", "", value)))


def test_who_never_comes_is_named_soon_after_the_others_came(store: Store, members: list[TorchRanks]) -> None:
    """However often these have said that they get on."""
    first, _, third = members
    store.then = [*beats(third, 5000), came(third, 7)]
    with pytest.raises(CheckpointError, match="rank 1 did not come within"):
        first.together("a save", lambda: 5, sum)
    assert 5000 < store.now[0] < 5000 + 2 * PATIENCE + 1


def test_rank_0_waits_for_those_that_get_on(store: Store, members: list[TorchRanks]) -> None:
    first, second, third = members
    store.then = [*beats(third, 5000), came(third, 7), came(second, 8)]
    assert first.together("a save", lambda: 5, sum) == 20


@pytest.mark.parametrize("gets_on", [False, True])
def test_others_wait_for_rank_0_while_it_gets_on(store: Store, members: list[TorchRanks], gets_on: bool) -> None:
    first, second, _ = members
    store.then = [*(beats(first, 5000) if gets_on else []), (5000.0, lambda: first._send(1, (1, "", 12)))]
    if gets_on:
        assert second.together("a save", lambda: 7, sum) == 12
    else:
        with pytest.raises(CheckpointError, match="rank 0 did not come within"):
            second.together("a save", lambda: 7, sum)


def test_that_one_gets_on_leaves_nothing_behind(store: Store, members: list[TorchRanks]) -> None:
    show = members[1].moving()
    for step in range(1000):
        store.now[0] = float(step)
        show(step, 1000)
    assert len(store.entries) == 1
