"""Measured advice: nothing is promised that replays did not show."""

from __future__ import annotations

import os
from collections import namedtuple
from dataclasses import replace
from importlib import import_module
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pario.cli.advise import describe as describe_advice
from pario.cli.measured import advise_by_replays, describe
from pario.prove.replay import ReplayError, Script, perform, script_of
from pario.prove.replay.beginning import Beginning, count_space, end_of_beginning
from pario.prove.replay.errors import LateError
from pario.prove.replay.limits import Limits
from pario.prove.replay.perform import Manner
from pario.prove.replay.script import BARRIER, MPI, OPERATION, FileMade
from pario.prove.replay.together import make_collective
from pario.prove.tune import trials
from pario.prove.tune.choice import MPIIO_ON, Choice
from pario.prove.tune.history import keep_choice
from pario.prove.tune.pairs import Pairs
from pario.prove.tune.remedies import (
    BUSY,
    MPIIO,
    TOGETHER,
    NothingToMeasureError,
    advise_measured,
    choice_for,
    find_directory,
    list_repairs,
    plan_measurement,
    plan_tuning,
)
from pario.prove.tune.trials import Measured, Measurement, Plan, Remedy, measure, player
from pario.see.analyze import analyze
from pario.see.analyze.advise import explain_unrepaired
from pario.see.analyze.comparison import Sample
from pario.see.analyze.model import Analysis, FileSetting
from pario.see.tables import read
from pario.see.tables.model import COLLECTIVE
from tests.python.jobs import add_events, add_record, make_job
from tests.python.support import timed
from tests.python.test_advise import finding, run
from tests.python.test_replay import record_run

BUFFERS = FileSetting("streams", "size", "8M", False, "writes are collected")
DiskUsage = namedtuple("DiskUsage", ["total", "used", "free"])
HANDLES = FileSetting("streams", "handles", "yes", True, "a closed file stays open")
AHEAD = FileSetting("streams", "prefetch", "2", False, "reads are served from large ones")
EMPTY = Script([], [], [], 0)


def plan(*remedies: Remedy) -> Plan:
    return Plan(EMPTY, EMPTY, Path("/data"), remedies, seconds=60.0, cold=False)


def remedy(analysis: Analysis, number: int = 0, name: str = "", *allowed: str) -> Remedy:
    one = analysis.findings[number]
    return Remedy(name or one.title, choice_for(analysis, one, allowed), (one,))


def measure_remedies(
    analysis: Analysis, remedies: tuple[Remedy, ...], **figures: float
) -> Measurement:
    """Returns a measurement with the seconds of the remedies by name; ``as_it_is``: without,
    ``joined``: of settings together."""
    by_choice = {one.choice.text() + str(one.collective): figures[one.name] for one in remedies}

    def play(script: Script, choice: Choice, limit: float) -> float:
        if not choice.sections:
            return figures["as_it_is"]
        return by_choice.get(choice.text() + str(script is TOGETHER_SCRIPT), figures.get("joined"))

    return measure(replace(plan(*remedies), together=TOGETHER_SCRIPT), play)


TOGETHER_SCRIPT = Script([], [], [], 0, names=["together"])


# --- the printed advice
# -------------------------------------------------------------------------------------------------


def test_all_remedies_stand_beside_the_run_as_it_is() -> None:
    analysis = run(finding(BUFFERS, seconds=0.97))
    buffers = remedy(analysis, name="buffers")
    own = Remedy("own", MPIIO_ON)
    together = Remedy("together", MPIIO_ON, collective=True)
    found = measure_remedies(
        analysis,
        (buffers, own, together),
        as_it_is=1.8,
        buffers=1.6,
        own=1.5,
        together=0.6,
        joined=1.4,
    )
    assert list(describe(found)) == [
        "pario: measured by replays of all calls, median of 4:",
        "    1.80 s  as it is",
        "    0.60 s  together (a change of the program)",
        "    1.40 s  these settings together: set",
        "    1.50 s  own",
        "    1.60 s  buffers",
    ]


def test_a_remedy_of_fewer_rounds_is_listed_beside_its_own_originals() -> None:
    one = Remedy("it", MPIIO_ON)
    pairs = Pairs(Sample((1.2,)), Sample((2.0,)))
    found = Measurement(Sample((2.0, 1.0, 1.0)), (Measured(one, pairs),))
    assert list(describe(found))[1:] == [
        "    1.00 s  as it is",
        "    1.20 s  it (as it is, in the same rounds: 2.00 s): set",
    ]


def test_a_promise_is_the_measured_gain() -> None:
    analysis = run(finding(BUFFERS, seconds=0.97))
    analysis = with_io(analysis, 1.8)
    found = measure_remedies(
        analysis, (remedy(analysis, name="buffers"),), as_it_is=1.8, buffers=1.61
    )
    advice = advise_measured(analysis, found)
    (repaired,) = advice.repaired
    assert repaired.seconds == pytest.approx(0.19)
    assert "worth 0.19 s as measured" in next(describe_advice(advice))


def test_settings_save_nothing_in_calls_that_replays_leave_out() -> None:
    analysis = with_io(run(finding(BUFFERS)), 10.0)
    one = remedy(analysis, name="buffers")
    found = measure_remedies(analysis, (one,), as_it_is=1.0, buffers=0.5)
    for seconds, saved in ((inf, 5.0), (20.0, 5.0), (2.0, 1.0)):
        (repaired,) = advise_measured(analysis, replace(found, seconds=seconds)).repaired
        assert repaired.seconds == pytest.approx(saved)
        assert repaired.most == pytest.approx(saved)


def test_a_run_without_replayed_calls_has_none_of_their_seconds() -> None:
    job = make_job(1, wall=9.0)
    step = np.arange(4)
    names = {"kind": "other", "function": "rename"}
    add_events(job, 0, "/out/a", start=step, duration=0.5, function="write", length=10)
    add_events(job, 0, "/out/a", start=4 + step, duration=0.9, **names)
    script = script_of(job, partial=True)
    assert (script.seconds, script.whole_seconds) == (pytest.approx(2.0), pytest.approx(2.0))
    part = script_of(job, partial=True, beginning=Beginning(seconds=1.2))
    assert (part.seconds, part.whole_seconds) == (pytest.approx(1.0), pytest.approx(2.0))


def test_settings_that_repair_the_same_seconds_are_not_promised_twice() -> None:
    analysis = with_io(run(finding(BUFFERS), finding(AHEAD, files=("/in/b.dat",))), 10.0)
    remedies = (remedy(analysis, 0, "one"), remedy(analysis, 1, "other"))
    found = measure_remedies(analysis, remedies, as_it_is=1.0, one=0.3, other=0.4, joined=0.2)
    advice = advise_measured(analysis, found)
    assert sum(one.seconds for one in advice.repaired) == pytest.approx(8.0)
    assert "worth 8.00 s as measured" in next(describe_advice(advice))


def test_a_collective_program_without_findings_gets_the_mpiio_that_is_faster() -> None:
    analysis = run()
    found = measure_remedies(analysis, (Remedy(MPIIO, MPIIO_ON),), as_it_is=2.9, **{MPIIO: 0.9})
    advice = advise_measured(analysis, found)
    assert advice.acts
    (proposal,) = advice.proposals
    assert [(line.table, line.key, line.value) for line in proposal.lines] == [
        ("run", "mpiio", "yes")
    ]
    assert proposal.reasons == ("pario's MPI-IO: measured by replays, 0.90 s instead of 2.90 s.",)
    assert "nothing to set" not in next(describe_advice(advice))


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("MPI_File_write_at_all", [MPIIO]),
        ("MPI_File_write_at", [MPIIO, TOGETHER]),
        ("write", []),  # nothing beneath MPI: no remedy
    ],
)
def test_mpiio_is_measured_under_programs_without_findings(
    tmp_path: Path, function: str, names: list[str]
) -> None:
    pytest.importorskip("mpi4py")
    job, steps = make_job(2, wall=9.0), np.arange(4)
    layer, prefix, together, mode = "posix", "", 0, os.O_CREAT | os.O_WRONLY
    if function.startswith("MPI_"):
        layer, prefix, together, mode = "mpiio", "MPI_File_", COLLECTIVE, 1 | 4  # create, write
    for rank in range(2):
        ends = {"layer": layer, "flags": together, "offset": mode}
        add_events(job, rank, "/s/f", "open", start=0.1, function=f"{prefix}open", **ends)
        calls = {"layer": layer, "flags": together if "_all" in function else 0, "length": 8}
        places = {"start": 1 + steps, "offset": 16 * steps + 8 * rank}
        add_events(job, rank, "/s/f", function=function, **calls, **places)
        add_events(job, rank, "/s/f", "close", start=8.0, function=f"{prefix}close", **ends)
    add_record(job, range(2), "/s/f", layer, opens=1, closes=1, writes=4, bytes_written=32)
    try:
        found = [one.name for one in plan_measurement(job, run(), tmp_path).remedies]
    except NothingToMeasureError:
        found = []
    assert found == names


@pytest.mark.parametrize(
    ("setting", "allowed", "ratio"),
    [(HANDLES, ("handles",), 1.49), (AHEAD, (), 8.0), (BUFFERS, (), 0.99)],
)
def test_a_setting_that_does_not_pay_is_left_out_and_listed(
    setting: FileSetting, allowed: tuple[str, ...], ratio: float
) -> None:
    analysis = with_io(run(finding(setting, seconds=0.72)), 1.0)
    one = remedy(analysis, 0, "it", *allowed)
    found = measure_remedies(analysis, (one,), as_it_is=1.0, it=ratio)
    assert list(describe(found))[-1].endswith("it: not faster, left out")
    advice = advise_measured(analysis, found, allowed)
    assert not advice.acts and not advice.proposals
    (left,) = advice.left
    assert "replays with it were not faster" in left.why_not


@pytest.mark.parametrize(("ratio", "saved"), [(1.0, 0.0), (0.5, 5.0)])
def test_findings_with_the_same_settings_share_a_measurement(ratio: float, saved: float) -> None:
    analysis = with_io(run(finding(BUFFERS), finding(BUFFERS, title="its other cause")), 10.0)
    first, second = analysis.findings
    (only,) = list_repairs(analysis)
    assert only.findings == (first, second)
    found = measure_remedies(analysis, (only,), as_it_is=1.0, **{only.name: ratio})
    advice = advise_measured(analysis, found)
    assert (advice.acts, len(advice.repaired)) == (bool(saved), 2 if saved else 0)
    assert sum(one.seconds for one in advice.repaired) == pytest.approx(saved)


def test_a_setting_that_pays_less_than_the_chosen_one_is_called_slower() -> None:
    analysis = with_io(run(finding(BUFFERS, seconds=0.72)), 1.0)
    one = remedy(analysis, 0, "it")
    found = measure_remedies(
        analysis, (one, Remedy(MPIIO, MPIIO_ON)), as_it_is=1.0, it=0.8, joined=0.9, **{MPIIO: 0.5}
    )
    (left,) = advise_measured(analysis, found).left
    (text,) = explain_unrepaired(left)
    assert text.startswith("The chosen settings serve these calls, too: replays with it (")
    assert text.endswith("instead of 1.00 s) were slower than the chosen settings.")


@pytest.mark.parametrize("count", [1, 2])
def test_the_chosen_part_of_the_settings_of_findings_is_theirs(count: int) -> None:
    mpiio, sieving = (
        FileSetting("run", "mpiio", "yes", False, "pario does MPI-IO"),
        FileSetting("mpiio", "romio_ds_write", "disable", False, "no holes are read"),
    )
    found = [finding(mpiio, sieving, seconds=0.4, title=f"cause {i}") for i in range(count)]
    analysis = with_io(run(*found), 1.0)
    own = Remedy("both", choice_for(analysis, analysis.findings[0], ()), analysis.findings)
    measured = measure_remedies(
        analysis, (own, Remedy(MPIIO, MPIIO_ON)), as_it_is=1.0, both=0.26, **{MPIIO: 0.25}
    )
    advice = advise_measured(analysis, measured)
    assert [len(advice.repaired), len(advice.left)] == [count, 0]
    assert {setting.key for one in advice.repaired for setting in one.settings} == {"mpiio"}
    assert sum(one.seconds for one in advice.repaired) == pytest.approx(0.75)
    assert Choice.of_proposals(advice.proposals) == MPIIO_ON
    assert "worth 0.75 s as measured" in next(describe_advice(advice))


@pytest.mark.system
def test_the_settings_of_the_last_tune_are_measured_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    job = read([record_run(tmp_path, MANY_WRITES.replace("20_000", "300_000"))])
    kept = Choice.of(f"{tmp_path}/out.dat", ("streams", "size", "2M"))
    keep_choice(job, tmp_path, kept)
    first = plan_measurement(job, analyze(job), tmp_path).remedies[0]
    assert (first.name, first.choice) == ("the settings of the last tune", kept)
    own = plan_measurement(job, analyze(job), tmp_path).remedies[1]
    keep_choice(job, tmp_path, own.choice)
    (only,) = plan_measurement(job, analyze(job), tmp_path).remedies
    assert only.findings


def test_only_the_measured_value_of_a_setting_is_written() -> None:
    analysis = run(finding(BUFFERS))
    larger = Remedy("last", Choice.of("/out/a.dat", ("streams", "size", "32M")))
    found = measure_remedies(analysis, (larger,), as_it_is=1.0, last=0.5)
    written = [
        (line.key, line.value)
        for proposal in advise_measured(analysis, found).proposals
        for line in proposal.lines
    ]
    assert written == [("size", "32M")]


def with_io(analysis: Analysis, seconds: float) -> Analysis:
    critical = replace(analysis.verdict.critical, io=seconds)
    return replace(analysis, verdict=replace(analysis.verdict, critical=critical))


# --- the measurement
# -------------------------------------------------------------------------------------------------


def test_a_gain_within_noise_does_not_pay() -> None:
    analysis = run(finding(BUFFERS))
    values = iter([1.0, 0.95, 0.95, 1.0, 1.0, 1.02])  # it is slower in the last round

    def play(script: Script, choice: Choice, limit: float) -> float:
        return next(values)

    found = measure(plan(remedy(analysis)), play)
    assert len(found.original.values) == 3
    assert found.chosen is None


@pytest.mark.parametrize(("later", "rounds", "pays"), [(0.5, 5, True), (1.05, 5, False)])
def test_a_large_gain_is_measured_until_it_is_beyond_noise(
    later: float, rounds: int, pays: bool
) -> None:
    analysis = run(finding(BUFFERS))
    beside = [(1.0, 0.5), (1.0, 0.5), (1.0, 1.2), *[(1.0, later)] * 4]  # a busy machine
    played = [one if number % 2 == 0 else one[::-1] for number, one in enumerate(beside)]
    values = iter([seconds for one in played for seconds in one])

    def play(script: Script, choice: Choice, limit: float) -> float:
        return next(values)

    found = measure(plan(remedy(analysis)), play)
    assert len(found.original.values) == rounds
    assert (found.chosen is not None) == pays


def test_replays_end_in_time_and_keep_time_to_confirm_the_best() -> None:
    analysis = run(*(finding(BUFFERS, files=(f"/out/{n}.dat",)) for n in range(20)))
    remedies = tuple(
        Remedy(f"{n}", Choice.of(f"/out/{n}.dat", ("streams", "size", "8M")), (one,))
        for n, one in enumerate(analysis.findings)
    )
    now = 0.0

    def play(script: Script, choice: Choice, limit: float) -> float:
        nonlocal now
        now += 5.0
        return 1.0 if choice.sections else 2.0

    found = measure(plan(*remedies), play, clock=lambda: now)
    assert now <= 60.0
    assert found.chosen is not None and len(found.chosen.pairs.seconds.values) >= 2


def test_a_failing_remedy_is_named_and_not_chosen() -> None:
    analysis = run(finding(BUFFERS))

    def play(script: Script, choice: Choice, limit: float) -> float:
        if choice.sections:
            raise ReplayError("no room")
        return 1.0

    found = measure(plan(remedy(analysis, name="buffers")), play)
    assert found.chosen is None
    assert list(describe(found))[-1] == "    failed  buffers: no room"
    (left,) = advise_measured(analysis, found).left
    assert left.why_not == "a replay with buffers failed: no room"


def test_a_late_replay_keeps_the_earlier_rounds() -> None:
    values = iter([1.0, 0.2, 0.2])

    def play(script: Script, choice: Choice, limit: float) -> float:
        try:
            return next(values)
        except StopIteration:
            raise LateError("a replay was not over") from None

    found = measure(plan(remedy(run(finding(BUFFERS)))), play)
    assert found.original.values == (1.0,)
    assert found.chosen is not None and found.chosen.pairs.seconds.values == (0.2,)


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_beginning_too_short_to_judge_the_run_is_an_error(share: float) -> None:
    short = replace(plan(remedy(run(finding(BUFFERS)))), script=replace(EMPTY, share=share))

    def play(script: Script, choice: Choice, limit: float) -> float:
        return 0.005

    if share == 1.0:
        assert measure(short, play).remedies
        return
    with pytest.raises(ReplayError, match="the first 1 % of the calls"):
        measure(short, play)


def test_creating_the_files_of_a_replay_takes_no_more_than_its_limit(tmp_path: Path) -> None:
    script = Script([], ["/large"], [FileMade(0, 1 << 30)], 0)
    play = player(replace(plan(), directory=tmp_path), (), Limits(1.0))
    with pytest.raises(LateError, match=r"not over after 0\.05 s \(--measure raises the limit\)"):
        play(script, Choice(), 0.05)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("cold", [False, True])
def test_the_files_of_a_replay_are_as_cold_as_those_of_the_run(
    cold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []

    def note(descriptor: int) -> None:
        dropped.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    performing = import_module("pario.prove.replay.perform")
    monkeypatch.setattr(performing, "drop_from_cache", note)
    monkeypatch.setattr(performing, "play", lambda *_: SimpleNamespace(longest=1.5))
    (tmp_path / "in.dat").write_bytes(bytes(100_000))
    job = read([record_run(tmp_path, 'open("in.dat", "rb").read()')])
    analysis = analyze(job)
    assert analysis.kernel is not None
    stored = analysis.job.bytes_read if cold else 0
    seen = replace(analysis, kernel=replace(analysis.kernel, storage_read=stored))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    keep_choice(job, tmp_path, Choice.of(f"{tmp_path}/in.dat", ("streams", "size", "2M")))
    assert plan_measurement(job, seen, tmp_path).cold == cold
    planned = plan_tuning(job, seen, tmp_path, 1)
    assert player(planned, (), Limits(1.0))(planned.script, Choice(), 60.0) == 1.5
    assert dropped.count("in.dat") == cold


@pytest.mark.parametrize("pauses", [False, True])
def test_a_replay_includes_the_flush_of_buffers_and_pauses_if_wanted(
    pauses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(script: Script, root: Path, manner: Manner) -> SimpleNamespace:
        assert (manner.close_files, manner.pauses) == (True, pauses)
        return SimpleNamespace(longest=1.5)

    monkeypatch.setattr(import_module("pario.prove.replay.perform"), "play", play)
    one = replace(plan(), directory=tmp_path, pauses=pauses)
    assert player(one, (), Limits(1.0))(EMPTY, Choice(), 60.0) == 1.5


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        ((1000, 1000, 0), "has no free space"),
        ((10**9, 0, 10**6), " 5 % of the free space are 50.0 kB"),
    ],
)
def test_a_file_system_that_is_full_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usage: tuple[int, int, int], message: str
) -> None:
    (tmp_path / "in.dat").write_bytes(bytes(100_000))
    job = read([record_run(tmp_path, 'open("in.dat", "rb").read()')])
    monkeypatch.setattr("shutil.disk_usage", lambda _: DiskUsage(*usage))
    with pytest.raises(ReplayError, match=message):
        plan_measurement(job, analyze(job), tmp_path)


def test_replays_on_a_busy_machine_are_no_measurement() -> None:
    one = plan(remedy(run(finding(BUFFERS))))
    busy = replace(one, script=replace(one.script, seconds=0.2), most_seconds=BUSY * 0.2)
    with pytest.raises(ReplayError, match="the same calls of the run"):
        measure(busy, lambda *_: 2.0)
    assert measure(busy, lambda *_: 0.5).original.median == 0.5


def test_an_original_that_cannot_be_replayed_is_an_error() -> None:
    def play(script: Script, choice: Choice, limit: float) -> float:
        raise ReplayError("no room")

    with pytest.raises(ReplayError, match="no room"):
        measure(plan(remedy(run(finding(BUFFERS)))), play)


# --- the beginning of a run
# -------------------------------------------------------------------------------------------------

MANY_WRITES = """\
import os
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
for value in range(20_000):
    os.write(out, bytes(100))
os.close(out)
late = os.open("late.dat", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
os.write(late, bytes(100))
"""


@pytest.mark.system
def test_a_beginning_holds_the_first_calls_within_its_size(tmp_path: Path) -> None:
    job = read([record_run(tmp_path, MANY_WRITES)])
    whole, part = script_of(job), script_of(job, beginning=Beginning(size=500_000))
    assert whole.share == 1.0 and 0.1 < part.share < 0.3
    assert 200_000 < part.written <= 500_000  # the bytes of reads count, too
    assert part.written % 4096 == 0
    assert np.array_equal(part.seats[0], whole.seats[0][: len(part.seats[0])])
    records = perform(part, tmp_path).job.records
    assert 0 <= part.written - records["bytes_written"].max() < 4096
    assert script_of(job, beginning=Beginning(seconds=1e9)).share == 1.0


def test_the_space_of_a_replay_counts_blocks_and_preallocations() -> None:
    job = make_job(2, wall=1.0)
    steps, small = np.arange(10), np.arange(1024)
    add_events(job, 0, "/sparse", start=0.01 * steps, offset=steps << 24, length=8)
    add_events(job, 0, "/across", start=0.1, offset=4090, length=8)
    add_events(job, 0, "/log", start=0.2 + 1e-4 * small, offset=8 * small, length=8)
    add_events(job, 0, "/large", start=0.4, offset=0, length=1 << 20)
    add_events(job, 0, "/sized", "truncate", start=0.5, offset=1 << 41, function="ftruncate")
    kept = {"function": "posix_fallocate", "offset": 0, "length": 1 << 40}
    add_events(job, 0, "/kept", "truncate", start=0.6, **kept)
    ranks = {"layer": "mpiio", "function": "MPI_File_preallocate", "offset": 1 << 30}
    add_events(job, [0, 1], "/ranks", "truncate", start=0.7, **ranks)
    rows = np.arange(len(job.events))
    taken = count_space(job, rows)
    assert {
        job.path(int(file)): int(taken[job.events["file"] == file].sum())
        for file in np.unique(job.events["file"])
    } == {
        "/sparse": 10 * 4096,
        "/across": 2 * 4096,
        "/log": 2 * 4096,
        "/large": 1 << 20,
        "/sized": 0,
        "/kept": 1 << 40,
        "/ranks": 1 << 30,
    }
    limit = Beginning(size=50_000)
    lanes = job.events["process"]
    assert end_of_beginning(job.events, lanes, taken, limit) == pytest.approx(0.2)


# --- collective calls instead of independent ones
# -------------------------------------------------------------------------------------------------

NAMES = ["Open", "Write_at", "Close", "Write_at_all"]
OPEN, WRITE, CLOSE, WRITE_ALL = range(4)


def operation(name: int, offset: int = 0, length: int = 0) -> tuple[int, ...]:
    return (offset, length, 0, 0, 0, name, MPI, 0)


def ranks(*seats: list[tuple[int, ...]]) -> Script:
    made = [np.array([operation(OPEN), *seat, operation(CLOSE)], OPERATION) for seat in seats]
    return Script(made, ["/f"], [], len(seats), [tuple(range(len(seats)))], names=list(NAMES))


def test_independent_calls_become_collective_and_short_ranks_add_empty_ones() -> None:
    script = ranks([operation(WRITE, 0, 4), operation(WRITE, 8, 4)], [operation(WRITE, 4, 4)])
    made = make_collective(script)
    assert made is not None
    calls = [[(row["other"], row["offset"], row["length"]) for row in seat] for seat in made.seats]
    assert calls[0][1:3] == [(WRITE_ALL, 0, 4), (WRITE_ALL, 8, 4)]
    assert calls[1][1:3] == [(WRITE_ALL, 4, 4), (WRITE_ALL, 4, 0)]
    assert script.seats[0]["other"][1] == WRITE  # the original is unchanged


def test_a_collective_program_has_nothing_to_change() -> None:
    call = operation(WRITE_ALL, 0, 4)
    assert make_collective(ranks([call], [call])) is None


def test_ranks_that_meet_elsewhere_in_between_are_not_changed() -> None:
    barrier = (0, 0, 0, 0, 0, 0, BARRIER, 0)
    writes = [operation(WRITE, 0, 4), operation(WRITE, 4, 4)]
    assert make_collective(ranks([writes[0], barrier, writes[1]], [*writes, barrier])) is None
    assert make_collective(ranks([*writes, barrier], [*writes, barrier])) is not None


def test_a_file_that_one_rank_opens_alone_is_not_changed() -> None:
    script = ranks([operation(WRITE, 0, 4)])
    assert make_collective(script) is None


# --- the whole way
# -------------------------------------------------------------------------------------------------


@pytest.mark.system
def test_a_recorded_run_is_measured_where_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replays run; their seconds are given."""
    times = {"as it is": 0.2, "with settings": 0.05}
    monkeypatch.setattr(trials, "player", timed.time_player(trials.player, times))
    log = record_run(tmp_path, MANY_WRITES.replace("20_000", "300_000"))
    job = read([log])
    analysis = analyze(job)
    advice, lines = advise_by_replays(job, analysis, (), 60.0)
    assert lines[0].startswith("pario: measured by replays of all calls")
    assert lines[2].split()[:2] == ["0.05", "s"] and lines[2].endswith(": set")
    assert advice.acts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["late.dat", "log", "out.dat"]


def test_a_file_whose_directory_cannot_be_looked_up_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "in.dat").write_bytes(bytes(100_000))
    analysis = analyze(read([record_run(tmp_path, 'open("in.dat", "rb").read()')]))
    row = next(row for row in analysis.files if row.path.endswith("in.dat"))
    bad = replace(row, path=f"/{'x' * 300}/{'x' * 300}/in.dat")
    root = replace(row, path="/")
    assert find_directory(replace(analysis, files=(bad, root, row))) == tmp_path
    with pytest.raises(ReplayError, match="do not exist here"):
        find_directory(replace(analysis, files=(bad,)))


@pytest.mark.parametrize("removed", ["gone", "gone/deep/deeper"])
def test_the_nearest_directory_above_replaces_a_removed_one(removed: str, tmp_path: Path) -> None:
    (tmp_path / "in.dat").write_bytes(bytes(100_000))
    analysis = analyze(read([record_run(tmp_path, 'open("in.dat", "rb").read()')]))
    row = next(row for row in analysis.files if row.path.endswith("in.dat"))
    (tmp_path / "out").mkdir()
    gone = replace(row, path=str(tmp_path / "out" / removed / "out.dat"))
    assert find_directory(replace(analysis, files=(gone, row))) == tmp_path / "out"


@pytest.mark.system
def test_a_run_without_its_directory_keeps_estimates(tmp_path: Path) -> None:
    job = read([record_run(tmp_path, MANY_WRITES.replace("20_000", "300_000"))])
    analysis = analyze(job)
    _, lines = advise_by_replays(job, analysis, (), 20.0, on=tmp_path / "missing")
    (line,) = lines
    assert line.startswith("pario: the seconds are estimates, not measured by replays: ")
    assert "missing is no directory" in line
