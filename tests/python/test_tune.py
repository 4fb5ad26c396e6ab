"""``pario tune``: each accepted setting makes the replay faster; otherwise nothing is set."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from pario.cli.tune import describe, line
from pario.fix.stripe.commands import size_of
from pario.fix.stripe.layout import Part
from pario.prove.replay import ReplayError, perform, script_of
from pario.prove.replay.errors import LateError
from pario.prove.replay.limits import Limits
from pario.prove.replay.perform import Manner
from pario.prove.replay.script import Script
from pario.prove.tune import Trial, nothing_to_tune, tune
from pario.prove.tune.choice import Choice
from pario.prove.tune.history import keep_choice, last_choice
from pario.prove.tune.knobs import Knob, knobs
from pario.prove.tune.search import measurement
from pario.see.tables import read
from pario.see.tables.model import Job
from pario.settings import load
from tests.python.jobs import add_events, add_record, make_job
from tests.python.test_replay import record_run
from tests.support.commands import run_command

SMALL_WRITES = """\
import os
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
for value in range(100_000):
    os.write(out, b"8 bytes.")
os.close(out)
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_run(tmp_path_factory.mktemp("recorded"), SMALL_WRITES)


@pytest.fixture(scope="module")
def job(log: Path) -> Job:
    return read([log])


def system_writes(job: Job, place: Path) -> Callable[[Choice], float]:
    """Returns a function that measures a choice by its system writes, which are equal on all
    machines."""
    script = script_of(job)

    def measure(choice: Choice) -> float:
        records = perform(script, place, Manner(settings=choice.settings())).job.records
        written = records[records["writes"] > 0]
        return float(
            sum(row["system_writes"] if row["buffers_used"] else row["writes"] for row in written)
        )

    return measure


@pytest.mark.system
def test_small_writes_become_few_system_writes(job: Job, tmp_path: Path) -> None:
    seen: list[Trial] = []
    found = tune(job, tmp_path, system_writes(job, tmp_path), 5, seen.append)
    assert found.original.median >= 100_000
    assert found.best is not None and found.best.median <= 10
    assert 0 < len(seen) <= 5
    assert {
        key
        for _, settings in found.choice.sections
        for table, key, _ in settings
        if table == "streams"
    } >= {"size", "count"}


@pytest.mark.system
def test_a_worse_setting_is_rejected(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 2.0 if choice.sections else 1.0, 8, lambda _: None)
    assert found.choice == Choice() and found.gain == 0


def test_a_setting_within_noise_is_rejected(job: Job, tmp_path: Path) -> None:
    times = Random(7)
    found = tune(job, tmp_path, lambda _: times.uniform(0.5, 1.5), 8, lambda _: None)
    assert found.choice == Choice() and found.trials


def test_a_knob_that_helps_stays_turned_and_the_best_is_tried_again(
    job: Job, tmp_path: Path
) -> None:
    found = tune(
        job,
        tmp_path,
        lambda choice: 10.0 - len(choice.sections[0][1]) if choice.sections else 10.0,
        8,
        lambda _: None,
    )
    assert found.best is not None and len(found.best.values) == 3
    assert len(found.trials) <= 8


def test_a_single_trial_is_not_sufficient(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 1.0 if choice.sections else 2.0, 1, lambda _: None)
    assert len(found.trials) == 1
    assert found.choice == Choice() and found.gain == 0


def failing(
    *failures: int, sides: Callable[[Choice], bool] = lambda choice: bool(choice.sections)
) -> Callable[[Choice], float]:
    """Returns a trial function: settings help; of the replays on one side, those with these
    numbers, from 0, fail."""
    seen = []

    def measure(choice: Choice) -> float:
        if sides(choice):
            seen.append(choice)
            if len(seen) - 1 in failures:
                raise ReplayError(f"no room for {len(seen) - 1}")
        return 1.0 if choice.sections else 2.0

    return measure


def test_a_failing_trial_is_named_and_the_others_continue(job: Job, tmp_path: Path) -> None:
    told: list[Trial] = []
    found = tune(job, tmp_path, failing(0), 8, told.append)
    assert line(told[0]) == f"{told[0].name}: failed, the others go on: no room for 0"
    assert not any(trial.failure for trial in told[1:])
    assert found.choice == told[1].choice != Choice()
    assert found.original.median == 2.0


def test_a_trial_that_takes_too_long_is_ended_and_not_chosen(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, given = Limits(1.0), list[float]()
    module = sys.modules[
        "pario.prove.replay.perform"
    ]  # the package exports its function under the same name

    def play(script: Script, directory: Path, manner: Manner) -> SimpleNamespace:
        given.append(manner.limit)
        if manner.settings and len(given) == 2:
            raise LateError(f"ended after {manner.limit:.0f} s")
        return SimpleNamespace(longest=1.0 if manner.settings else 2.0)

    monkeypatch.setattr(module, "perform", play)
    told: list[Trial] = []
    found = tune(
        job,
        tmp_path,
        measurement(script_of(job), tmp_path, (), pauses=False, limits=limits),
        8,
        told.append,
    )
    assert given[:2] == [600.0, 60.0] and set(given[1:]) == {60.0}
    assert line(told[0]) == f"{told[0].name}: failed, the others go on: ended after 60 s"
    assert told[0].choice != found.choice != Choice()


def test_if_all_trials_fail_nothing_is_set(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, failing(*range(100)), 8, lambda _: None)
    assert (found.choice, found.why) == (Choice(), "no trial could be played")


def test_a_setting_that_fails_again_is_rejected(job: Job, tmp_path: Path) -> None:
    trials: list[Trial] = []
    tune(job, tmp_path, failing(), 8, trials.append)
    found = tune(job, tmp_path, failing(len(trials) - 1), 8, lambda _: None)
    assert found.choice == Choice()
    assert found.why.startswith("the fastest setting failed in a later trial: no room")


def test_without_a_replay_of_the_original_nothing_is_tried(job: Job, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no room for 0"):
        tune(job, tmp_path, failing(0, sides=lambda choice: not choice.sections), 8, lambda _: None)


def test_a_run_whose_io_is_over_at_once_has_nothing_to_tune() -> None:
    job = make_job(1, wall=0.01)
    add_record(job, 0, "/out", opens=1, writes=1, bytes_written=100, write_time=0.005)
    assert (
        nothing_to_tune(job)
        == "all I/O takes 5.00 ms, too little to compare: there is nothing to tune"
    )


def test_a_run_without_io_has_nothing_to_tune() -> None:
    assert (
        nothing_to_tune(make_job(1, wall=10.0))
        == "the run of 10.0 s made no I/O calls to files: there is nothing to tune"
    )


@pytest.mark.parametrize(("seconds", "worth"), [(0.1, False), (1.0, True)])
def test_a_run_with_hardly_any_io_has_nothing_to_tune(seconds: float, worth: bool) -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out", opens=1, writes=100, bytes_written=100 << 20, write_time=seconds)
    add_events(
        job, 0, "/out", "write", start=np.arange(100) * 0.01, duration=seconds / 100, length=1 << 20
    )
    assert bool(nothing_to_tune(job)) is not worth
    if not worth:
        assert nothing_to_tune(job).startswith(
            "I/O is 1 % of the 10.0 s run: nothing here is worth changing; computation takes 99 %"
        )
        assert nothing_to_tune(job).endswith("; there is nothing to tune")


def facts_of_stripes(targets: int, present: int) -> SimpleNamespace:
    """Returns the facts of a file system with this default of new files; 0: without stripes."""
    parts = (Part(unit=1 << 22, count=present),) if present else ()
    return SimpleNamespace(
        targets=targets,
        mount=SimpleNamespace(type="lustre", point="/scratch"),
        stripes=SimpleNamespace(parts=parts, settable=bool(present)),
    )


@pytest.mark.parametrize(
    ("targets", "present", "names"),
    [
        (0, 3, {"8 stripes", "4 stripes", "1 stripe"}),  # a likely number of targets is assumed
        (0, 0, set()),
        (6, 1, {"6 stripes", "3 stripes"}),
        (6, 6, {"3 stripes", "1 stripe"}),
    ],
)
def test_other_stripe_counts_than_the_present_one_are_tried(
    job: Job,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    targets: int,
    present: int,
    names: set[str],
) -> None:
    monkeypatch.setattr(
        "pario.prove.tune.knobs.facts_of", lambda _: facts_of_stripes(targets, present)
    )
    found = {knob.name for knob in knobs(job, tmp_path)}
    assert {name for name in found if "stripe" in name} == names


def test_six_trials_find_the_stripes_that_predict_the_largest_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter-example of an earlier order: one stripe, which the files had already, and other
    settings used up the trials."""
    job = make_job(4, wall=10.0)
    add_record(
        job,
        range(4),
        "/scratch/out",
        opens=1,
        writes=64,
        bytes_written=4 << 20,
        end_written=16 << 20,
        write_time=9.0,
    )
    add_record(job, 0, "/scratch/log", writes=1000, bytes_written=1 << 20, write_time=1.0)
    add_record(job, 0, "/scratch/text", "stdio", writes=1000, bytes_written=1 << 20, write_time=1.0)
    monkeypatch.setattr("pario.prove.tune.knobs.facts_of", lambda _: facts_of_stripes(8, 1))

    def measure(choice: Choice) -> float:
        wide = ("striping", "striping_factor", "8")
        return 1.0 if any(wide in settings for _, settings in choice.sections) else 5.4

    found = tune(job, tmp_path, measure, 6, lambda _: None)
    assert ("striping", "striping_factor", "8") in found.choice.sections[-1][1]
    assert len(found.trials) <= 6


def test_settings_without_a_trial_are_named(job: Job, tmp_path: Path) -> None:
    ways = {knob.choice: knob.name for knob in reversed(list(knobs(job, tmp_path)))}
    first, *names = reversed(ways.values())
    found = tune(job, tmp_path, lambda _: 1.0, 4, lambda _: None)
    assert [trial.name for trial in found.trials] == [first]
    assert list(describe(found))[1] == (
        f"pario: not tried, for want of trials: {', '.join(names)} (--trials {len(ways) + 3} tries"
        " all)"
    )
    found = tune(job, tmp_path, lambda _: 1.0, found.enough_trials, lambda _: None)
    assert len(found.trials) == len(ways) and not found.untried


def history_job(folder: str, size: int = 1 << 20) -> Job:
    job = make_job(2, wall=10.0)
    for rank in range(2):
        add_record(
            job, rank, f"{folder}/out.{rank}", writes=1000, bytes_written=size, write_time=4.0
        )
    return job


def test_the_settings_of_the_last_tune_come_first_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = (("streams", "count", "2"), ("streams", "size", "8M"))
    keep_choice(history_job("/s/a"), tmp_path, Choice.of("/s/a/out.*", *settings))
    knob = next(knobs(history_job("/s/b"), tmp_path))
    assert knob == Knob("the settings of the last tune", Choice.of("/s/b/out.*", *settings))
    other = knobs(history_job("/s/b", size=64 << 20), tmp_path)
    assert "the settings of the last tune" not in {knob.name for knob in other}
    (damaged,) = (tmp_path / "state" / "pario" / "tune").glob("*/*.json")
    damaged.write_text("{")
    assert last_choice(history_job("/s/a"), tmp_path) is None
    keep_choice(history_job("/s/a"), tmp_path, Choice())  # nothing was better this time
    assert not damaged.exists()


def pario_tune(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pario", "tune", *words]
    return run_command(command, cwd=place)


@pytest.mark.system
def test_the_command_reports_that_nothing_can_be_tuned(tmp_path: Path) -> None:
    done = pario_tune(tmp_path, "-o", "pario.toml", "--", "true")
    assert done.returncode == 0, done.stderr
    assert (
        "pario: leave it as it is (0 trials): " in done.stderr
        and "there is nothing to tune" in done.stderr
    )
    load(tmp_path / "pario.toml")


@pytest.mark.system
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "nowhere"), "nowhere is no directory"),
        (("-o", "nowhere/pario.toml"), "cannot write nowhere/pario.toml"),
    ],
)
def test_the_command_is_not_run_if_tuning_is_impossible(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = pario_tune(tmp_path, *words, "--", "touch", "was_run")
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_reported_and_leaves_no_files(
    log: Path, tmp_path: Path, number: signal.Signals
) -> None:
    program = """import os, sys
from pario.cli import main
from pario.prove.tune import search
def measurement(script, directory, *_, **__):
    from pario.scratch import scratch
    def measure(choice):
        with scratch(directory, "pario-replay-"):
            if choice.sections:
                os.kill(os.getpid(), int(sys.argv[1]))
            return 1.0
    return measure
search.measurement = measurement
sys.exit(main(["tune", "--on", "scratch", "-o", "pario.toml", sys.argv[2]]))
"""
    (tmp_path / "scratch").mkdir()
    words = [sys.executable, "-c", program, str(int(number)), str(log)]
    done = run_command(words, cwd=tmp_path)
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr == "pario: interrupted after 0 trials: no settings are written\n"
    assert not list((tmp_path / "scratch").iterdir()) and not (tmp_path / "pario.toml").exists()


@pytest.mark.system
def test_buffered_bytes_of_open_files_count(tmp_path: Path) -> None:
    """With ``close_files``, the log counts the buffered writes of files that stay open."""
    program = (
        'import os\nout = os.open("out.dat", os.O_CREAT | os.O_WRONLY)\nfor _ in range(100):'
        ' os.write(out, b"8 bytes.")\n'
    )
    script = script_of(read([record_run(tmp_path, program)]))
    choice = Choice.of("*/out.dat", ("streams", "size", "8M"), ("streams", "count", "2"))
    for close_files in (False, True):
        records = perform(
            script, tmp_path, Manner(settings=choice.settings(), close_files=close_files)
        ).job.records
        assert records[records["writes"] == 100]["closes"].sum() == close_files


@pytest.mark.parametrize(
    ("table", "key", "value", "larger"),
    [
        ("streams", "size", "8M", "32M"),
        ("streams", "size", "32M", "64M"),
        ("streams", "size", "64M", "64M"),
        ("streams", "count", "2", "2"),
        ("mpiio", "pario_write_behind", str(16 << 20), "64M"),
        ("stdio", "size", "0", "0"),
        ("stdio", "mode", "full", "full"),
    ],
)
def test_sizes_grow_as_far_as_they_may(table: str, key: str, value: str, larger: str) -> None:
    assert Choice.of("*", (table, key, value)).larger() == Choice.of("*", (table, key, larger))


def test_remaining_trials_try_larger_sizes_as_long_as_these_help(job: Job, tmp_path: Path) -> None:
    def measure(choice: Choice) -> float:
        sizes = [
            size_of(value)
            for _, settings in choice.sections
            for _, key, value in settings
            if key == "size"
        ]
        return 10.0 - max(sizes, default=0) / (10 << 20)

    told: list[Trial] = []
    found = tune(job, tmp_path, measure, 20, told.append)
    assert "size=64M" in found.choice.text()
    assert [trial.name.endswith("writes, larger") for trial in told].count(
        True
    ) == 1  # the largest size has no larger one


@pytest.mark.parametrize(("length", "offered"), [(4 << 20, True), (64 << 20, False)])
def test_large_writes_of_one_process_may_be_written_behind(
    tmp_path: Path, length: int, offered: bool
) -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out", opens=1, writes=10, bytes_written=10 * length, write_time=5.0)
    names = {knob.name for knob in knobs(job, tmp_path)}
    assert ("large writes in the background" in names) is offered
    assert not any("under writes" in name for name in names)


def test_choices_are_joined_and_the_later_one_wins() -> None:
    one = Choice.of("/a/*.dat", ("streams", "size", "1M"), ("streams", "count", "2"))
    both = one.with_(Choice.of("", ("run", "mpiio", "yes"))).with_(
        Choice.of("/a/*.dat", ("streams", "size", "8M"))
    )
    assert both.text() == "run: mpiio=yes; /a/*.dat: count=2, size=8M"


@pytest.mark.system
def test_the_command_writes_settings_that_a_run_takes(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "pario",
        "tune",
        "--trials",
        "3",
        "-o",
        "pario.toml",
        "--",
        sys.executable,
        "-c",
        SMALL_WRITES,
    ]
    done = run_command(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trial" in done.stderr
    load(tmp_path / "pario.toml")
