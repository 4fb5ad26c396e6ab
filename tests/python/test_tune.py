"""``pario tune``: each accepted setting makes the replay faster; otherwise nothing is set."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from pario.cli.measured import describe
from pario.cli.tune import conclude, line
from pario.errors import ParioError
from pario.fix.stripe.commands import size_of
from pario.fix.stripe.layout import Part
from pario.prove.replay import ReplayError, perform, script_of
from pario.prove.replay.errors import LateError
from pario.prove.replay.limits import Limits
from pario.prove.replay.perform import Manner
from pario.prove.replay.script import Script
from pario.prove.tune.choice import Choice
from pario.prove.tune.history import keep_choice, last_choice
from pario.prove.tune.knobs import knobs
from pario.prove.tune.remedies import nothing_to_tune as why_nothing
from pario.prove.tune.trials import Measurement, Plan, Remedy, measure, player
from pario.see.analyze import analyze
from pario.see.tables import read
from pario.see.tables.model import Job
from pario.settings import load
from tests.python.jobs import add_events, add_record, make_job
from tests.python.support import timed
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


def remedies(job: Job, place: Path) -> list[Remedy]:
    return list(knobs(job, analyze(job), place))


def tune(
    job: Job,
    place: Path,
    seconds: Callable[[Choice], float],
    replays: int,
    tell: Callable[[str, float | ParioError], None] = lambda _, __: None,
) -> Measurement:
    """Measures the knobs of a job by a function of their settings."""
    script = Script([], [], [], 0)
    plan = Plan(script, None, place, tuple(remedies(job, place)), replays=replays, grow=True)
    return measure(plan, lambda _, choice, __: seconds(choice), tell)


def nothing_to_tune(job: Job) -> str:
    return why_nothing(job, analyze(job))


@pytest.mark.system
def test_small_writes_become_few_system_writes(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, system_writes(job, tmp_path), 5)
    assert found.replays <= 5
    assert found.original.median >= 100_000
    assert found.chosen is not None and found.chosen.pairs.seconds.median <= 10
    keys = {key for table, key in found.chosen.remedy.choice.keys if table == "streams"}
    assert keys >= {"size", "count"}


def test_a_worse_setting_is_rejected(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, lambda choice: 2.0 if choice.sections else 1.0, 12)
    assert found.chosen is None
    assert conclude(found) == (
        f"pario: leave it as it is ({found.replays} replays): the fastest settings were not shown"
        " to be faster"
        if found.remedies[0].ratio <= 1.25
        else f"pario: leave it as it is ({found.replays} replays): the fastest settings were not"
        " faster"
    )


@pytest.mark.parametrize("replays", [5, 12, 20])
def test_a_setting_within_noise_is_rejected(job: Job, tmp_path: Path, replays: int) -> None:
    times = Random(7)
    found = tune(job, tmp_path, lambda _: times.uniform(0.9, 1.1), replays)
    assert found.chosen is None and found.remedies


def test_a_knob_that_helps_stays_set_and_the_best_is_replayed_again(
    job: Job, tmp_path: Path
) -> None:
    found = tune(
        job,
        tmp_path,
        lambda choice: 10.0 - 3 * len(choice.sections[0][1]) if choice.sections else 10.0,
        12,
    )
    assert found.chosen is not None and len(found.chosen.pairs.seconds.values) == 3
    assert found.replays <= 12


def test_settings_that_help_are_the_base_of_the_next_ones(tmp_path: Path) -> None:
    first = Choice.of("/a", ("streams", "size", "8M"))
    second = Choice.of("/b", ("streams", "size", "8M"))
    steps = tuple(Remedy(one.text(), one, added=True) for one in (first, second))
    plan = Plan(Script([], [], [], 0), None, tmp_path, steps, replays=5)
    found = measure(plan, lambda _, choice, __: 4.0 - len(choice.sections))
    assert found.chosen is not None
    assert found.chosen.remedy.choice == first.with_(second)
    assert found.replays == 5


@pytest.mark.parametrize(("replays", "gain"), [(1, 0.5), (2, 0.15)])
def test_few_replays_show_no_small_gain(
    job: Job, tmp_path: Path, replays: int, gain: float
) -> None:
    found = tune(job, tmp_path, lambda choice: 1 - gain if choice.sections else 1.0, replays)
    assert found.replays == replays
    assert found.chosen is None


def failing(
    *failures: int, sides: Callable[[Choice], bool] = lambda choice: bool(choice.sections)
) -> Callable[[Choice], float]:
    """Returns a replay: settings help; of the replays on one side, those with these numbers, from
    0, fail."""
    seen = []

    def seconds(choice: Choice) -> float:
        if sides(choice):
            seen.append(choice)
            if len(seen) - 1 in failures:
                raise ReplayError(f"no room for {len(seen) - 1}")
        return 1.0 if choice.sections else 2.0

    return seconds


def test_a_failing_replay_is_named_and_the_others_continue(job: Job, tmp_path: Path) -> None:
    told: list[tuple[str, float | ParioError]] = []
    found = tune(job, tmp_path, failing(0), 12, lambda *one: told.append(one))
    assert line(*told[1]) == f"{told[1][0]}: failed, the others go on: no room for 0"
    assert not any(isinstance(result, ParioError) for _, result in told[2:])
    assert found.chosen is not None and found.chosen.remedy.name != told[1][0]
    assert found.original.median == 2.0


@pytest.mark.system
def test_a_replay_that_takes_too_long_is_ended_and_not_chosen(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[float]()
    module = sys.modules[
        "pario.prove.replay.perform"
    ]  # the package exports a function under the same name

    def play(script: Script, root: Path, manner: Manner) -> SimpleNamespace:
        given.append(10 * math.ceil(manner.limit / 10))  # the preparation takes a part of it
        if manner.settings and len(given) == 2:
            raise LateError(f"ended after {given[-1]} s")
        return SimpleNamespace(longest=1.0 if manner.settings else 2.0)

    monkeypatch.setattr(module, "play", play)
    told: list[tuple[str, float | ParioError]] = []
    plan = Plan(script_of(job), None, tmp_path, tuple(remedies(job, tmp_path)), replays=12)
    found = measure(plan, player(plan, (), Limits(1.0)), lambda *one: told.append(one))
    assert given[:2] == [600, 60] and set(given[1:]) == {60}
    assert line(*told[1]) == f"{told[1][0]}: failed, the others go on: ended after 60 s"
    assert found.chosen is not None and found.chosen.remedy.name != told[1][0]


def test_if_all_replays_fail_nothing_is_set(job: Job, tmp_path: Path) -> None:
    found = tune(job, tmp_path, failing(*range(100)), 12)
    assert found.chosen is None
    assert conclude(found).endswith("replays): all replays with settings failed")


def test_a_setting_that_fails_again_is_rejected(job: Job, tmp_path: Path) -> None:
    first = tune(job, tmp_path, failing(), 6)
    assert first.chosen is not None
    last = sum(len(one.pairs.seconds.values) for one in first.remedies) - 1
    found = tune(job, tmp_path, failing(last), 6)
    assert found.chosen is None or found.chosen.remedy.name != first.chosen.remedy.name


def test_without_a_replay_of_the_original_nothing_is_tried(job: Job, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no room for 0"):
        tune(job, tmp_path, failing(0, sides=lambda choice: not choice.sections), 12)


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
    ("targets", "present", "size", "names"),
    [
        (0, 3, 64 << 20, {"8 stripes", "4 stripes", "1 stripe"}),  # a likely number is assumed
        (0, 0, 64 << 20, set()),
        (6, 1, 64 << 20, {"6 stripes", "3 stripes"}),
        (6, 6, 64 << 20, {"3 stripes", "1 stripe"}),
        (8, 1, 100_000, set()),  # a file has no more stripes than it fills
    ],
)
def test_other_stripe_counts_than_the_present_one_are_tried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    targets: int,
    present: int,
    size: int,
    names: set[str],
) -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out", opens=1, writes=100, bytes_written=size, write_time=5.0)
    monkeypatch.setattr(
        "pario.prove.tune.knobs.facts_of", lambda _: facts_of_stripes(targets, present)
    )
    found = {knob.name for knob in remedies(job, tmp_path)}
    assert {name for name in found if "stripe" in name} == names


def test_five_replays_find_the_stripes_that_predict_the_largest_gain(
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
        bytes_written=16 << 20,
        end_written=64 << 20,
        write_time=9.0,
    )
    add_record(job, 0, "/scratch/log", writes=1000, bytes_written=1 << 20, write_time=1.0)
    add_record(job, 0, "/scratch/text", "stdio", writes=1000, bytes_written=1 << 20, write_time=1.0)
    monkeypatch.setattr("pario.prove.tune.knobs.facts_of", lambda _: facts_of_stripes(8, 1))

    wide = ("striping", "striping_factor", "8")

    def seconds(choice: Choice) -> float:
        return 1.0 if any(wide in settings for _, settings in choice.sections) else 5.4

    found = tune(job, tmp_path, seconds, 5)
    assert found.chosen is not None and seconds(found.chosen.remedy.choice) == 1.0
    assert found.replays <= 5


def test_settings_without_a_replay_are_named(job: Job, tmp_path: Path) -> None:
    names = [
        one.name for one in {one.choice: one for one in remedies(job, tmp_path)[::-1]}.values()
    ]
    first, *others = reversed(names)
    found = tune(job, tmp_path, lambda _: 1.0, 2)
    assert [one.remedy.name for one in found.remedies] == [first]
    assert list(describe(found))[-1] == (
        f"pario: not tried, for want of replays: {', '.join(others)}"
    )
    found = tune(job, tmp_path, lambda _: 1.0, 100)
    assert len(found.remedies) == len(names) and not found.untried


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
    first = remedies(history_job("/s/b"), tmp_path)[0]
    assert first.name == "the settings of the last tune"
    assert first.choice == Choice.of("/s/b/out.*", *settings)
    other = remedies(history_job("/s/b", size=64 << 20), tmp_path)
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
        "pario: leave it as it is (0 replays): " in done.stderr
        and "there is nothing to tune" in done.stderr
    )
    load(tmp_path / "pario.toml")


@pytest.mark.system
def test_options_may_follow_the_log(tmp_path: Path) -> None:
    done = pario_tune(tmp_path, "missing.pario", "--on", "nowhere", "--trials", "2")
    assert done.returncode == 2
    assert "nowhere is no directory" in done.stderr


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
from pario.prove.tune import trials
def player(plan, *_):
    from pario.scratch import scratch
    def play(script, choice, limit):
        with scratch(plan.directory, "pario-replay"):
            if choice.sections:
                os.kill(os.getpid(), int(sys.argv[1]))
            return 1.0
    return play
trials.player = player
sys.exit(main(["tune", "--on", "scratch", "-o", "pario.toml", sys.argv[2]]))
"""
    (tmp_path / "scratch").mkdir()
    words = [sys.executable, "-c", program, str(int(number)), str(log)]
    done = run_command(words, cwd=tmp_path)
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "pario: interrupted after 1 replay: no settings are written"
    )
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


def test_remaining_replays_try_larger_sizes_as_long_as_these_help(job: Job, tmp_path: Path) -> None:
    def seconds(choice: Choice) -> float:
        sizes = [
            size_of(value)
            for _, settings in choice.sections
            for _, key, value in settings
            if key == "size"
        ]
        return 10.0 - max(sizes, default=0) / (10 << 20)

    told: list[str] = []
    found = tune(job, tmp_path, seconds, 30, lambda name, _: told.append(name))
    assert found.chosen is not None and "size=64M" in found.chosen.remedy.choice.text()
    assert len({name for name in told if name.endswith(", larger")}) == 1


@pytest.mark.parametrize(("length", "offered"), [(4 << 20, True), (64 << 20, False)])
def test_large_writes_of_one_process_may_be_written_behind(
    tmp_path: Path, length: int, offered: bool
) -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out", opens=1, writes=10, bytes_written=10 * length, write_time=5.0)
    names = {knob.name for knob in remedies(job, tmp_path)}
    assert ("large writes in the background" in names) is offered
    assert not any("under writes" in name for name in names)


@pytest.mark.parametrize(("length", "merged"), [(64 << 10, True), (64 << 20, False)])
def test_small_collective_calls_are_merged_at_first(
    tmp_path: Path, length: int, merged: bool
) -> None:
    job = make_job(2, wall=10.0)
    calls = {"writes": 100, "collective_writes": 100, "bytes_written": 100 * length}
    add_record(job, range(2), "/out", "mpiio", opens=1, write_time=5.0, **calls)
    first = remedies(job, tmp_path)[0]
    assert first.name == "the most promising settings together"
    assert (("mpiio", "pario_merge_collectives") in first.choice.keys) is merged
    assert ("mpiio", "romio_cb_write") in first.choice.keys


def test_choices_are_joined_and_the_later_one_wins() -> None:
    one = Choice.of("/a/*.dat", ("streams", "size", "1M"), ("streams", "count", "2"))
    both = one.with_(Choice.of("", ("run", "mpiio", "yes"))).with_(
        Choice.of("/a/*.dat", ("streams", "size", "8M"))
    )
    assert both.text() == "run: mpiio=yes; /a/*.dat: count=2, size=8M"


@pytest.mark.system
@pytest.mark.parametrize("better", [True, False])
def test_the_command_writes_settings_that_a_run_takes(tmp_path: Path, better: bool) -> None:
    """The replays run; their seconds are given."""
    times = {"as it is": 1.0, "with settings": 0.5 if better else 1.5}
    program = SMALL_WRITES.replace("100_000", "300_000")
    tune = ["tune", "--trials", "5", "-o", "pario.toml", "--", sys.executable, "-c", program]
    command = [sys.executable, timed.__file__, json.dumps(times), *tune]
    state = tmp_path / "state"
    done = run_command(command, cwd=tmp_path, env=os.environ | {"XDG_STATE_HOME": str(state)})
    assert done.returncode == 0, done.stderr
    replays = re.search(r"\((\d+) replays", done.stderr)
    assert replays and 2 <= int(replays[1]) <= 5  # it may end before the last
    (words,) = (line for line in done.stderr.splitlines() if replays[0] in line)
    assert ("leave it as it is" in words) is not better
    assert bool(load(tmp_path / "pario.toml").sections) is better
    assert bool([*state.rglob("tune/*/*.json")]) is better  # for the next tune
