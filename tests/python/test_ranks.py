"""Meetings of ranks: how long a rank waits for the others, and for which messages."""

from __future__ import annotations

import errno
import math
import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pario import ranks
from pario.errors import ParioError
from pario.ranks import Ranks
from tests.python.support.threads import run

PATIENCE = 100.0


KEEP_ALIVE = object()


class Script:
    """The messages and keep-alives that one of two ranks receives, with their times; an exception
    is raised at its time. Time passes only in waits."""

    channel_number = 3

    def __init__(self, rank: int, script: list[tuple[float, Any]]) -> None:
        self.rank, self.size, self.now = rank, 2, 0.0
        self._script, self._last = script, 0.0
        self.sent, self.keep_alives = list[tuple[float, Any]](), list[tuple[float, float]]()

    def channel(self) -> int:
        return self.channel_number

    def send(self, to: int, channel: int, data: bytes) -> None:
        assert channel == self.channel_number
        self.sent.append((self.now, pickle.loads(data)))

    def receive(
        self, channel: int, source: int, begin: float, patience: float, check: Any
    ) -> tuple[int, bytes] | None:
        assert (channel, source) == (self.channel_number, 0 if self.rank else -1)
        while self._script and self._script[0][0] <= max(begin, self._last) + patience:
            at, message = self._script.pop(0)
            self.now = max(self.now, at)
            if isinstance(message, BaseException):
                raise message
            if message is not KEEP_ALIVE:
                return 1 - self.rank, pickle.dumps(message)
            self._last = at
        self.now = max(self.now, begin + patience, self._last + patience)
        return None

    def keep_alive(self, interval: float) -> None:
        self.keep_alives.append((self.now, interval))


def make_scripted(
    monkeypatch: pytest.MonkeyPatch, rank: int, script: list[tuple[float, Any]]
) -> tuple[Ranks, Script]:
    made = Script(rank, script)
    monkeypatch.setattr(ranks, "time", SimpleNamespace(monotonic=lambda: made.now))
    return Ranks(made, PATIENCE), made


def keep_alives(until: float) -> list[tuple[float, Any]]:
    """Returns the keep-alives of a rank that progresses until then."""
    return [(float(at), KEEP_ALIVE) for at in range(50, int(until), 50)]


@pytest.mark.parametrize(("until", "said"), [(0, "did not come within"), (5000, "")])
def test_rank_0_waits_as_long_as_another_one_progresses(
    monkeypatch: pytest.MonkeyPatch, until: float, said: str
) -> None:
    came = (5000.0, (1, ("a save", "", 7)))
    first, script = make_scripted(monkeypatch, 0, [*keep_alives(until), came])
    if said:
        with pytest.raises(ParioError, match=said):
            first.together("a save", lambda: 5, sum)
        assert script.now == PATIENCE
    else:
        assert first.together("a save", lambda: 5, sum) == 12


@pytest.mark.parametrize(("until", "said"), [(0, "rank 0 did not come within"), (5000, "")])
def test_others_wait_as_long_as_rank_0_progresses(
    monkeypatch: pytest.MonkeyPatch, until: float, said: str
) -> None:
    other, script = make_scripted(monkeypatch, 1, [*keep_alives(until), (5000.0, (1, "", 12))])
    if said:
        with pytest.raises(ParioError, match=said):
            other.together("a save", lambda: 7, sum)
        assert 2 * PATIENCE <= script.now < 3 * PATIENCE
    else:
        assert other.together("a save", lambda: 7, sum) == 12


def test_a_rank_that_stopped_progressing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came = (5000.0, (1, ("a save", "", 7)))
    first, script = make_scripted(monkeypatch, 0, [*keep_alives(300), came])
    with pytest.raises(ParioError, match="rank 1 did not come within"):
        first.together("a save", lambda: 5, sum)
    assert script.now == 250 + PATIENCE


def test_an_early_message_of_the_next_meeting_does_not_lengthen_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Patience counts from the start of the meeting."""
    gone = (PATIENCE / 2, (1, None))  # a rank that has stopped waiting for an earlier answer
    first, script = make_scripted(monkeypatch, 0, [gone])
    with pytest.raises(ParioError, match="rank 1 did not come within"):
        first.together("a save", lambda: 5, sum)
    assert script.now == PATIENCE


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_works_long_sends_keep_alives(
    monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    (mine, script), shown = make_scripted(monkeypatch, rank, []), list[int]()
    show = mine.moving(lambda done, whole: shown.append(done))
    for done in range(1000):
        script.now = float(done)
        show(done, 1000)
    assert shown == list(range(1000)) and not script.sent
    assert script.keep_alives == [(float(at), PATIENCE / 4) for at in range(1000)]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_dead_rank_ends_the_meeting(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    dead = ProcessLookupError(errno.ESRCH, "rank 1 (1 of the program) has died")
    mine, script = make_scripted(monkeypatch, rank, [(1.0, dead)])
    with pytest.raises(ParioError, match=r"^a save: rank 1 \(1 of the program\) has died$"):
        mine.together("a save", lambda: 5, sum)
    assert script.now == 1.0


@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_one_rank_is_sent_to_all(where: int, kind: type[BaseException]) -> None:
    def program(mine: Ranks) -> str:
        def work() -> None:
            if mine.rank == where:
                raise kind

        try:
            mine.together("a save", work, lambda _: None)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return ""

    expected = [
        f"{kind.__name__}: " if rank == where else f"CheckpointError: rank {where}: {kind.__name__}"
        for rank in range(3)
    ]
    assert run(3, program) == expected


@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize(
    ("end", "text"),
    [(KeyboardInterrupt(), "it was interrupted"), (MemoryError("no"), "MemoryError: no")],
)
def test_a_rank_that_leaves_between_calls_ends_the_later_calls_of_others(
    where: int, end: BaseException, text: str
) -> None:
    def program(mine: Ranks) -> str:
        mine.agree("an earlier call", lambda: None)
        if mine.rank == where:
            mine.leave(end)
            return "left"
        for call in ("a save", "the report of its error"):
            with pytest.raises(ParioError) as raised:
                mine.agree(call, lambda: None)
        return str(raised.value)

    expected = f"rank {where}: {text}"
    assert run(3, program) == ["left" if rank == where else expected for rank in range(3)]


def test_rank_0_that_has_left_is_not_waited_for_by_a_rank_that_comes_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranks, "_GRACE", 0.0)
    has_left = threading.Event()

    def program(mine: Ranks) -> str:
        mine.patience = math.inf

        def work() -> None:
            if mine.is_first:
                raise KeyboardInterrupt
            has_left.wait()

        try:
            mine.agree("long work", work)
        except BaseException as error:
            if mine.is_first:
                mine.leave(error)
            has_left.set()
            return f"{type(error).__name__}: {error}"
        return ""

    assert run(2, program) == ["KeyboardInterrupt: ", "CheckpointError: rank 0: it was interrupted"]


@pytest.mark.parametrize(("rank", "most"), [(0, 10.0), (1, 0.0)])
def test_an_interrupted_rank_does_not_wait_for_absent_ranks(
    monkeypatch: pytest.MonkeyPatch, rank: int, most: float
) -> None:
    mine, script = make_scripted(monkeypatch, rank, [])

    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine.together("a save", work, lambda _: None)
    assert script.now == most and mine.patience == PATIENCE


def test_an_interrupt_of_waiting_rank_0_is_sent_to_the_ranks_that_have_arrived() -> None:
    def program(mine: Ranks) -> str:
        if mine.rank == 0:
            receive, came = mine._receive, []

            def receive_once(rank: int, begin: float, patience: float) -> Any:
                if came:
                    raise KeyboardInterrupt
                came.append(1)
                return receive(rank, begin, patience)

            mine._receive = receive_once  # type: ignore[method-assign]
        if mine.rank == 2:
            return "elsewhere"
        try:
            mine.together("a save", lambda: None, lambda _: None)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return ""

    assert run(3, program) == [
        "KeyboardInterrupt: ",
        "CheckpointError: a save: rank 0: KeyboardInterrupt",
        "elsewhere",
    ]
