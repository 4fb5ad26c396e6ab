"""Replays that hang end at their limit, or with the process that started them, with all their
processes."""

from __future__ import annotations

import math
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from pario.prove.replay import Script, perform
from pario.prove.replay.errors import LateError, ReplayError
from pario.prove.replay.limits import Limits, first_limit
from pario.prove.replay.perform import Manner
from pario.prove.replay.script import OPERATION, WAIT
from tests.support.commands import start_command
from tests.support.waiting import wait_until


def hanging() -> Script:
    """Makes a script that waits for a process that the replay does not have."""
    waiting = np.zeros(1, OPERATION)
    waiting["verb"] = WAIT
    return Script([waiting, waiting], ["/file"], [], ranks=0, waits=[[1]])


def players(place: Path) -> list[str]:
    """Returns the command lines of processes that name a directory."""

    def words(process: Path) -> str:
        try:
            return (process / "cmdline").read_text(errors="replace")
        except OSError:
            return ""

    return [
        line for process in Path("/proc").glob("[0-9]*") if str(place) in (line := words(process))
    ]


@pytest.mark.system
def test_a_replay_that_hangs_is_ended_after_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scratch", "told"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "told"))
    with pytest.raises(LateError, match=r"^ended after 2.00 s: the replay was not over"):
        perform(hanging(), tmp_path / "scratch", Manner(limit=2.0))
    assert not players(tmp_path) and not [*tmp_path.glob("*/*")]


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_hanging_replay_ended_by_a_signal_leaves_no_files(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = """\
import sys
from pathlib import Path
from pario.prove.replay import perform
from tests.python.test_replay_limits import hanging
perform(hanging(), Path(sys.argv[1]))
"""
    for name in ("scratch", "told"):
        (tmp_path / name).mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "told")}
    command = [sys.executable, "-c", program, tmp_path / "scratch"]
    with start_command(command, env=environment) as process:
        wait_until(
            lambda: [*tmp_path.glob("told/*/ended")] or process.poll() is not None,
            "the processes that play",
        )
        process.send_signal(number)
        assert process.wait_for_end() == 128 + number
    assert not players(tmp_path) and not [*tmp_path.glob("*/*")]


def test_a_full_directory_of_temporary_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(*_: object) -> None:
        raise OSError("150231 requested and 198 written")  # as numpy says it

    for name in ("scratch", "told"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "told"))
    monkeypatch.setattr(sys.modules["pario.prove.replay.perform"], "save", save)
    with pytest.raises(ReplayError, match=rf"^{tmp_path}/told \(TMPDIR, .*\): 150231 requested"):
        perform(hanging(), tmp_path / "scratch")


@pytest.mark.parametrize(
    ("seconds", "asked", "limit"),
    [(1.0, None, 600.0), (100.0, None, 2000.0), (math.nan, None, 600.0), (100.0, 3.0, 3.0)],
)
def test_the_first_replay_may_take_many_times_the_time_of_the_run(
    seconds: float, asked: float | None, limit: float
) -> None:
    assert Limits(seconds, asked).now() == first_limit(seconds, asked) == limit


def test_later_replays_may_take_some_times_the_time_of_the_slowest_original() -> None:
    limits = Limits(1000.0)
    limits.original_took(2.0)
    assert limits.now() == 60.0
    limits.original_took(100.0)
    limits.original_took(50.0)
    assert limits.now() == 500.0
    limits.asked = 7.0
    assert limits.now() == 7.0
