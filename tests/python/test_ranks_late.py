"""Ranks that arrive late, or never, at a meeting of a checkpoint."""

import pytest

from pario.checkpoint import CheckpointError, Writer
from pario.ranks import Ranks
from tests.python.support import threads
from tests.support.waiting import PATIENCE


def test_an_absent_rank_is_named(tmp_path, monkeypatch):
    """Rank 0 begins to wait when the question of rank 1 has been sent."""
    asked, send = threads.threading.Event(), Ranks._send

    def send_and_note(ranks, rank, message):
        send(ranks, rank, message)
        asked.set()

    def program(ranks):
        if ranks.rank == 0:
            assert asked.wait(PATIENCE)
        if ranks.rank != 2:
            Writer(ranks, tmp_path)

    monkeypatch.setattr(Ranks, "_send", send_and_note)

    first, second, third = threads.run(3, program, patience=0.2)
    assert "rank 2 did not come within 0.20 s" in str(first) == str(second)
    assert third is None


def test_a_late_answer_is_not_taken_for_the_next_one(monkeypatch):
    monkeypatch.setattr("pario.ranks._GRACE", 0)
    gone = threads.threading.Event()

    def program(ranks):
        if ranks.rank:
            ranks.patience = 0.01
            with pytest.raises(CheckpointError, match="rank 0 did not come"):
                ranks.together("meeting", lambda: 0, lambda _: None)
            ranks.patience = PATIENCE
            gone.set()
        else:
            assert gone.wait(PATIENCE)
            ranks.together("meeting", lambda: 0, lambda _: "too late")
        return ranks.together("meeting", lambda: 1, sum)

    assert threads.run(2, program) == [2, 2]


def test_an_abandoned_meeting_is_forgotten(monkeypatch):
    """Rank 0 never arrived at the first meeting, which does not affect the next ones."""
    monkeypatch.setattr("pario.ranks._GRACE", 0)
    gone = threads.threading.Barrier(3)

    def program(ranks):
        if ranks.rank:
            ranks.patience = 0.01 * ranks.rank
            with pytest.raises(CheckpointError, match="rank 0 did not come"):
                ranks.together("first", lambda: 0, lambda _: None)
            ranks.patience = PATIENCE
        gone.wait(PATIENCE)
        return [ranks.together(what, lambda: 1, sum) for what in ("second", "third")]

    assert threads.run(3, program) == [[3, 3]] * 3


def test_a_late_rank_gets_an_error_and_the_others_continue():
    gone = threads.threading.Event()

    def program(ranks):
        if ranks.rank == 1:
            assert gone.wait(PATIENCE)
        ranks.patience = PATIENCE if ranks.rank else 0.01
        try:
            ranks.together("first", lambda: 0, lambda _: None)
        except CheckpointError as error:
            told = str(error)
        if ranks.rank == 0:
            ranks.patience = PATIENCE
            gone.set()
        return told, [ranks.together(what, lambda: 1, sum) for what in ("second", "third")]

    first, second, third = threads.run(3, program)  # the third meeting may be late, too
    assert "did not come" in first[0] and "rank 1 came too late" in second[0]
    assert first[1] == second[1] == third[1] == [3, 3]
