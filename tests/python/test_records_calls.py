"""Calls on a Loader in any order: each continues where the one before has ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.errors import ParioError
from pario.records import Dataset, Loader
from tests.programs.pipelines import contents, unify, write_files

EPOCHS = 6
RULES: dict[str, Callable[[Loader], Any]] = {
    "records": lambda loader: loader,
    "full": lambda loader: loader.batch(3),
    "pools": lambda loader: loader.batch(3, pool=8, length=lambda one: len(one["tokens"])),
    "pack": lambda loader: loader.pack_tokens(7, field="tokens", end=999),
}


class Calls:
    """Calls on a Loader, and the place (epoch, batches) at which its next iteration begins.

    The expected batches and states are those of another Loader, read epoch after epoch.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.loader, self.at = make, make(), (0, 0)
        self.saved = [(self.loader.state_dict(), self.at)]
        self.batches: list[list[Any]] = []
        self.states: list[list[str]] = []
        whole = make()
        for _ in range(EPOCHS):
            self.states.append([json.dumps(whole.state_dict())])
            self.batches.append([])
            for batch in whole:
                self.batches[-1].append(contents(batch))
                self.states[-1].append(json.dumps(whole.state_dict()))

    def place_after(self, epoch: int, batches: int) -> tuple[int, int]:
        over = json.loads(self.states[epoch][batches])["epoch"] > epoch
        return (epoch + 1, 0) if over else (epoch, batches)

    def expect(self, found: Iterator[Any], count: int) -> None:
        """Compares the next batches of an iteration; less than ``count`` if the epoch ends."""
        epoch, first = self.at
        taken = [contents(batch) for batch in islice(found, count)]
        assert taken == self.batches[epoch][first : first + count]
        last = first + len(taken)
        if len(taken) < count:
            self.at = (epoch + 1, 0)
        elif count:
            self.at = self.place_after(epoch, last)

    def iterate(self, count: int) -> None:
        self.expect(iter(self.loader), count)

    def iterate_to_the_end(self, count: int) -> None:
        self.expect(iter(self.loader), 1000)

    def iterate_forever(self, count: int) -> None:
        found = self.loader.forever()
        for _ in range(count):
            while len(self.batches[self.at[0]]) == self.at[1]:
                self.at = (self.at[0] + 1, 0)
            epoch, first = self.at
            assert contents(next(found)) == self.batches[epoch][first]
            self.at = (epoch, first + 1)
        self.at = self.place_after(*self.at)

    def begin_another(self, count: int) -> None:
        older = iter(self.loader)
        self.expect(older, 1)
        self.expect(iter(self.loader), 1)
        with pytest.raises((ParioError, StopIteration)):
            next(older)

    def save(self, count: int) -> None:
        state = self.loader.state_dict()
        assert json.dumps(state) == self.states[self.at[0]][self.at[1]]
        self.saved.append((state, self.at))

    def load(self, count: int) -> None:
        state, self.at = self.saved[count % len(self.saved)]
        self.loader.load_state_dict(json.loads(json.dumps(state)))

    def load_into_another(self, count: int) -> None:
        state, self.loader = self.loader.state_dict(), self.make()
        self.loader.load_state_dict(state)

    def set_epoch(self, count: int) -> None:
        self.loader.set_epoch(count % 3)
        if self.at[0] != count % 3:
            self.at = (count % 3, 0)


NAMES = [name for name in vars(Calls) if name not in ("place_after", "expect") and name[0] != "_"]


@pytest.fixture(scope="module", params=["lines", pytest.param("parquet", marks=pytest.mark.system)])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder: Path = tmp_path_factory.mktemp(request.param)
    return write_files(folder, request.param)[1]


@settings(max_examples=50)
@given(
    st.sampled_from(list(RULES)),
    st.booleans(),
    st.sampled_from([(0, 1), (0, 2), (1, 2)]),
    st.sampled_from(["exact", "pad", "drop"]),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), min_size=6, max_size=12),
)
@pytest.mark.system
def test_each_call_continues_where_the_one_before_has_ended(
    file: Dataset,
    rule: str,
    shuffle: bool,
    place: tuple[int, int],
    remainder: str,
    calls: list[tuple[str, int]],
) -> None:
    def make() -> Any:
        rank, world = place
        loader = Loader(
            file, 4, shuffle=shuffle, rank=rank, world=world, decode=True, remainder=remainder
        )
        return RULES[rule](loader.map(unify))

    player = Calls(make)
    for name, count in calls:
        if player.at[0] < EPOCHS - 3:
            getattr(player, name)(count)
