"""``pario tune``: what is found is faster each time, or nothing is set."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from pario.replay import perform, script_of
from pario.replay.perform import Manner
from pario.settings import load
from pario.tables import read
from pario.tables.model import Job
from pario.tune import Trial, tune
from pario.tune.choice import Choice
from tests.python.test_replay import recorded

SMALL_WRITES = """\
import os
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
for value in range(4000):
    os.write(out, b"8 bytes.")
os.close(out)
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return read([recorded(tmp_path, SMALL_WRITES)])


def system_writes(job: Job, place: Path) -> Callable[[Choice], float]:
    """Measures a choice by what reaches the kernel: the same on every machine."""
    script = script_of(job)

    def measure(choice: Choice) -> float:
        records = perform(script, place, Manner(settings=choice.settings())).job.records
        written = records[records["writes"] > 0]
        return float(sum(row["system_writes"] if row["buffers_used"] else row["writes"] for row in written))

    return measure


@pytest.mark.slow
def test_small_writes_become_few_system_writes(job: Job, tmp_path: Path) -> None:
    seen: list[Trial] = []
    found = tune(job, tmp_path, system_writes(job, tmp_path), 5, seen.append)
    assert found.original.median >= 4000
    assert found.best is not None and found.best.median <= 10
    assert 0 < len(seen) <= 5
    assert {key for _, settings in found.choice.sections for table, key, _ in settings if table == "streams"} >= {"size", "count"}


def test_what_is_worse_is_left(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 2.0 if choice.sections else 1.0, 8, lambda _: None)
    assert found.choice == Choice() and found.gain == 0


def test_what_is_not_better_beyond_noise_is_left(job: Job, tmp_path: Path) -> None:
    times = Random(7)
    found = tune(job, tmp_path, lambda _: times.uniform(0.5, 1.5), 8, lambda _: None)
    assert found.choice == Choice() and found.trials


def test_a_knob_that_helps_stays_turned_and_the_best_is_tried_again(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 10.0 - len(choice.sections[0][1]) if choice.sections else 10.0, 8, lambda _: None)
    assert found.best is not None and len(found.best.values) == 3
    assert len(found.trials) <= 8


def test_what_one_trial_has_shown_is_left(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 1.0 if choice.sections else 2.0, 1, lambda _: None)
    assert len(found.trials) == 1
    assert found.choice == Choice() and found.gain == 0


def test_choices_are_joined_and_the_later_one_is_right() -> None:
    one = Choice.of("/a/*.dat", ("streams", "size", "1M"), ("streams", "count", "2"))
    both = one.with_(Choice.of("", ("run", "mpiio", "yes"))).with_(Choice.of("/a/*.dat", ("streams", "size", "8M")))
    assert both.text() == "run: mpiio=yes; /a/*.dat: count=2, size=8M"


def test_the_command_writes_settings_that_a_run_takes(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pario", "tune", "--trials", "3", "-o", "pario.toml", "--", sys.executable, "-c", SMALL_WRITES]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "trial" in done.stderr
    load(tmp_path / "pario.toml")
