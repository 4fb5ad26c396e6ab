"""Sweeps of stripes: the stripes and calls to measure, kept results, and the advice from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pario import state
from pario.cli import main
from pario.fix.stripe.policy import Expected, advise, choose
from pario.prove.replay.verbs import numbers
from pario.prove.sweep import combinations, shared_file, usual_counts
from pario.see.analyze import analyze
from pario.see.analyze.sweeps import Point, Sweep, describe_for_library, keep, load_sweeps
from tests.python.jobs import add_filesystem, add_record, make_job, set_layout

MIB = 1 << 20
LAB = ("lustre", "/scratch")


def sweep(
    seconds: dict[int, float], writers: int = 8, size: int = 16 * MIB, when: float = 0.0
) -> Sweep:
    points = tuple(
        Point(count, 2 * MIB, {"write": (value,), "read": (0.0,)}, {})
        for count, value in seconds.items()
    )
    return Sweep(*LAB, "lustre", 8, writers, size, "8 processes", when, points)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("size", "counts", "found"),
    [
        (64, (1, 2, 8), [(1, 1), (2, 1), (2, 4), (2, 16), (4, 16), (8, 1), (8, 4)]),
        (16, (1, 8), [(1, 1), (4, 4), (8, 1)]),
        (1, (1, 2), [(1, 1)]),
    ],
)
def test_a_file_has_no_more_stripes_than_it_fills(
    size: int, counts: tuple[int, ...], found: list[tuple[int, int]]
) -> None:
    parts = combinations(size * MIB, counts, (MIB, 4 * MIB, 16 * MIB))
    assert [(part.count, part.unit // MIB) for part in parts] == found


@pytest.mark.parametrize(
    ("targets", "counts"), [(8, [1, 2, 4, 8]), (6, [1, 2, 4, 6]), (1, [1]), (0, [1, 2, 4, 8])]
)
def test_counts_double_up_to_all_targets(targets: int, counts: list[int]) -> None:
    assert usual_counts(targets) == counts


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_the_ranks_write_the_whole_file_once_and_read_it_once(ranks: int) -> None:
    pattern = shared_file(ranks, 64 * MIB, mpi=False)
    assert [phase.name for phase in pattern.phases] == ["write", "read"]
    for phase, verb in zip(pattern.phases, ("pwrite", "pread"), strict=True):
        calls = np.concatenate(phase.script.seats)
        calls = np.sort(calls[calls["verb"] == numbers()[verb]], order="offset")
        ends = calls["offset"] + calls["length"]
        assert calls["offset"][0] == 0 and ends[-1] == pattern.size
        assert (calls["offset"][1:] == ends[:-1]).all()
    if ranks > 1:  # no rank reads its own part, which its host may have in memory
        written, read = (phase.script.seats for phase in pattern.phases)
        assert all(a["offset"][1] != b["offset"][1] for a, b in zip(written, read, strict=True))


def test_a_kept_sweep_decides_for_similar_files_of_its_file_system() -> None:
    sweeps = [sweep({1: 2.1, 4: 0.5, 8: 0.49})]
    choice = choose(Expected(20 * MIB, 8, 8, 8, 1, LAB), sweeps)
    assert (choice.count, choice.unit, choice.rule) == (4, 2 * MIB, "sweep")
    assert choice.saves == pytest.approx(1 - 0.5 / 2.1)
    striped = [
        choose(Expected(20 * MIB, 8, 8, 8, 1, LAB, stripes), sweeps).saves for stripes in (8, 2)
    ]
    assert striped == [pytest.approx(1 - 0.5 / 0.49), None]  # 2 stripes were not measured
    assert choice.reason == (
        "pario stripe sweep measured it on 1970-01-01 (8 processes): 0.50 s, with 1 stripe of 2 MiB"
        " 2.10 s"
    )


@pytest.mark.parametrize(
    "expected",
    [
        Expected(16 * MIB, 8, 8, 8, 1, ("lustre", "/home")),
        Expected(16 * MIB, 8, 8, 8, 1, ("ext4", "/scratch")),
        Expected(16 * MIB, 8, 8, 8, 1),  # file system unknown
        Expected(65 * MIB, 8, 8, 8, 1, LAB),
        Expected(3 * MIB, 8, 8, 8, 1, LAB),
        Expected(16 * MIB, 33, 33, 8, 1, LAB),
        Expected(16 * MIB, 1, 8, 8, 1, LAB),
        Expected(16 * MIB, 8, 8, 4, 1, LAB),  # other targets than those measured
        Expected(16 * MIB, 8, 8, 8, 2, LAB),
        Expected(0, 8, 8, 8, 1, LAB),
    ],
)
def test_a_sweep_says_nothing_about_other_files(expected: Expected) -> None:
    choice = choose(expected, [sweep({1: 2.0, 8: 0.5})])
    assert choice == choose(expected) and choice.saves is None


def test_the_nearest_sweep_decides_and_the_newest_of_equal_ones() -> None:
    sweeps = [
        sweep({1: 1.0, 2: 0.1}, size=32 * MIB, when=9.0),
        sweep({1: 1.0, 4: 0.1}, when=2.0),
        sweep({1: 1.0, 8: 0.1}, when=1.0),
    ]
    assert choose(Expected(17 * MIB, 8, 8, 8, 1, LAB), sweeps).count == 4


def test_kept_sweeps_are_found_again_and_the_same_pattern_is_replaced() -> None:
    keep(sweep({1: 1.0, 2: 2.0}), "fs")
    keep(sweep({1: 1.0, 4: 0.5}), "fs")
    keep(sweep({1: 3.0}, writers=2), "fs")
    for name, text in {"damaged": "{", "other": "[]", "older": '{"format": "x"}'}.items():
        (state.folder("stripes") / f"{name}.json").write_text(text)
    assert sorted(load_sweeps(), key=lambda one: one.writers) == [
        sweep({1: 3.0}, writers=2),
        sweep({1: 1.0, 4: 0.5}),
    ]


def test_the_library_reads_the_newest_sweeps_of_shared_files() -> None:
    many = [sweep({2: 1.0}, size=MIB + number, when=number) for number in range(100)]
    alone, newest = sweep({8: 1.0}, writers=1, when=998.0), sweep({4: 1.0}, when=999.0)
    told = describe_for_library([*many, alone, newest])
    assert told.startswith("16777216:8:4:2097152=/scratch,1048675:8:2:2097152=/scratch,1048674:")
    assert 900 < len(told) <= 1023


def test_a_small_shared_file_is_advised_what_the_sweep_found_best() -> None:
    job = make_job(ranks=8, wall=4.0)
    add_filesystem(job, "/scratch", "lustre", network=True)
    add_record(
        job,
        range(8),
        "/scratch/shared",
        opens=1,
        writes=2,
        bytes_written=2 * MIB,
        end_written=16 * MIB,
        write_time=3.0,
    )
    set_layout(job, "/scratch/shared", MIB, [3])
    assert advise(job)[0].choice.count == 1
    assert not [one for one in analyze(job).findings if one.rule == "one-stripe"]
    keep(sweep({1: 2.0, 8: 0.5}), "fs")
    (advice,) = advise(job)
    assert (advice.choice.count, advice.choice.rule, advice.change) == (8, "sweep", True)
    (finding,) = [one for one in analyze(job).findings if one.rule == "one-stripe"]
    assert finding.seconds == pytest.approx(0.75 * 3.0)
    assert {(one.key, one.value) for one in finding.settings} == {
        ("striping_factor", "8"),
        ("striping_unit", "2M"),
    }


def test_a_file_system_without_stripes_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["stripe", "sweep", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path} is on " in error
    assert "which has nothing to sweep: it has no stripes that can be set; expected" in error
    assert not list(tmp_path.iterdir())


def test_a_log_has_ranks_and_sizes_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["stripe", "sweep", str(tmp_path), "run.pario", "--ranks", "2"]) == 2
    assert "--ranks and --size belong to the made pattern" in capsys.readouterr().err
