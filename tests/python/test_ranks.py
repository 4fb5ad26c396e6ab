"""Ranks that meet: what one of them waits for, and how long."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from pario import ranks
from pario.errors import ParioError
from pario.ranks import MOVED, Ranks
from tests.python.support.threads import run

PATIENCE = 100.0


class Scripted(Ranks):
    """A rank of several: time stands still but for messages, which come when it is said, and for what it works."""

    patience = PATIENCE

    def __init__(self, rank: int, script: list[tuple[float, Any]], size: int = 2) -> None:
        self.rank, self.size, self.now = rank, size, 0.0
        self._script, self.sent = script, list[Any]()

    def _send(self, rank: int, message: Any) -> None:
        self.sent.append((self.now, message))

    def _receive(self, rank: int | None, deadline: float) -> tuple[int, Any] | None:
        if not self._script or self._script[0][0] > deadline:
            self.now = max(self.now, deadline)
            return None
        at, message = self._script.pop(0)
        self.now = max(self.now, at)
        if self.rank == 0 and len(message) > 2:  # of several others: with the number of the sender
            return message[2], message[:2]
        return 1 - self.rank, message


def scripted(monkeypatch: pytest.MonkeyPatch, rank: int, script: list[tuple[float, Any]], size: int = 2) -> Scripted:
    made = Scripted(rank, script, size)
    monkeypatch.setattr(ranks, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def moves(whose: int, until: float) -> list[tuple[float, Any]]:
    """What a rank says that gets on until then."""
    message = (MOVED, "", None) if whose == 0 else (MOVED, None)
    return [(float(at), message) for at in range(50, int(until), 50)]


@pytest.mark.parametrize(("until", "said"), [(0, "did not come within"), (5000, "")])
def test_rank_0_waits_as_long_as_another_one_gets_on(monkeypatch: pytest.MonkeyPatch, until: float, said: str) -> None:
    first = scripted(monkeypatch, 0, [*moves(1, until), (5000.0, (1, ("a save", "", 7)))])
    if said:
        with pytest.raises(ParioError, match=said):
            first.together("a save", lambda: 5, sum)
        assert first.now == PATIENCE
    else:
        assert first.together("a save", lambda: 5, sum) == 12


def test_those_who_wait_for_rank_0_are_told_now_and_then_that_others_get_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many these are."""
    came = ("a save", "", 7)
    beats = [(float(at), (MOVED, None, rank)) for at in range(10, 1000, 10) for rank in (2, 3)]
    first = scripted(monkeypatch, 0, [(0.0, (1, came, 1)), *beats, (1000.0, (1, came, 2)), (1000.0, (1, came, 3))], size=4)
    assert first.together("a save", lambda: 5, sum) == 26
    told = [(at, message) for at, message in first.sent if message[0] == MOVED]
    assert 30 <= len(told) <= 34 and all(message == (MOVED, "", None) for _, message in told)
    assert len(first.sent) == len(told) + 3


@pytest.mark.parametrize(("until", "said"), [(0, "rank 0 did not come within"), (5000, "")])
def test_others_wait_as_long_as_rank_0_gets_on(monkeypatch: pytest.MonkeyPatch, until: float, said: str) -> None:
    other = scripted(monkeypatch, 1, [*moves(0, until), (5000.0, (1, "", 12))])
    if said:
        with pytest.raises(ParioError, match=said):
            other.together("a save", lambda: 7, sum)
        assert 2 * PATIENCE <= other.now < 3 * PATIENCE
    else:
        assert other.together("a save", lambda: 7, sum) == 12


def test_one_that_stands_still_is_not_waited_for_because_it_moved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = scripted(monkeypatch, 0, [*moves(1, 300), (5000.0, (1, ("a save", "", 7)))])
    with pytest.raises(ParioError, match="rank 1 did not come within"):
        first.together("a save", lambda: 5, sum)
    assert first.now == 250 + PATIENCE


@pytest.mark.parametrize("rank", [0, 1])
def test_who_works_long_says_now_and_then_that_it_gets_on(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    mine, shown = scripted(monkeypatch, rank, []), list[int]()
    show = mine.moving(lambda done, whole: shown.append(done))
    for done in range(1000):
        mine.now = float(done)
        show(done, 1000)
    assert shown == list(range(1000))
    times = [at for at, _ in mine.sent]
    assert all(message[0] == MOVED for _, message in mine.sent)
    assert 25 <= times[0] <= 27 and all(25 <= later - at <= 27 for at, later in pairwise(times))


@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_one_is_told_to_all(where: int, kind: type[BaseException]) -> None:
    def program(mine: Ranks) -> str:
        def work() -> None:
            if mine.rank == where:
                raise kind

        try:
            mine.together("a save", work, lambda _: None)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return ""

    expected = [f"{kind.__name__}: " if rank == where else f"CheckpointError: rank {where}: {kind.__name__}" for rank in range(3)]
    assert run(3, program) == expected


@pytest.mark.parametrize(("rank", "most"), [(0, 10.0), (1, 0.0)])
def test_one_that_is_interrupted_does_not_wait_for_those_that_never_come(monkeypatch: pytest.MonkeyPatch, rank: int, most: float) -> None:
    mine = scripted(monkeypatch, rank, [])

    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine.together("a save", work, lambda _: None)
    assert mine.now == most and mine.patience == PATIENCE


def test_an_interrupt_while_rank_0_waits_is_told_to_those_that_have_come() -> None:
    def program(mine: Ranks) -> str:
        if mine.rank == 0:
            receive, came = mine._receive, []

            def interrupted(rank: int | None, deadline: float) -> Any:
                if came:
                    raise KeyboardInterrupt
                came.append(1)
                return receive(rank, deadline)

            mine._receive = interrupted  # type: ignore[method-assign]
        if mine.rank == 2:
            return "elsewhere"
        try:
            mine.together("a save", lambda: None, lambda _: None)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return ""

    assert run(3, program) == ["KeyboardInterrupt: ", "CheckpointError: a save: rank 0: KeyboardInterrupt", "elsewhere"]
