"""Predicted times of recorded runs on other machines."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pario.cli import main
from pario.cli.whatif import describe, predict
from pario.prove.model.machine import Machine, load
from pario.prove.model.whatif import Use, outcome, phase_of, scale_computation, uses_of
from pario.see.tables.model import Job
from tests.python.jobs import add_record, make_job

MB = 10**6
DAY = 86400.0
MACHINE = Machine(
    "m",
    "m",
    "lustre",
    1 << 20,
    4,
    {"targets": 8, "write_rate": 1e6, "handover_seconds": 0.5, "create_seconds": 1},
    {},
    (),
)


def test_a_day_on_16_cores_with_one_percent_serial_io_on_1024() -> None:
    job = make_job(ranks=16, wall=DAY)
    add_record(job, range(16), "/scratch/out", writes=1, bytes_written=MB, write_time=0.01 * DAY)
    (found,), _ = predict(job, None, (1,), 1024)
    assert found.io == pytest.approx(14 * 60 + 24, rel=1e-3)
    assert found.beside == pytest.approx(22 * 60 + 16.5, rel=1e-3)
    assert found.io / found.seconds == pytest.approx(0.39, abs=0.005)
    assert scale_computation(100, 4, 8) == 50


def test_files_are_shared_or_of_one_rank_each_or_of_one_rank() -> None:
    job = make_job(ranks=4)
    add_record(
        job, range(4), "/s/shared", writes=10, consecutive_writes=9, bytes_written=MB, opens=1
    )
    for rank in range(4):
        add_record(job, rank, f"/s/own.{rank}", writes=5, bytes_written=2 * MB, opens=1)
    add_record(job, 0, "/s/input", reads=7, bytes_read=3 * MB, opens=1)
    shared, single, own = uses_of(job)
    assert shared == Use("/s/shared", "shared", True, 4, 1, 4 * MB, 40, 4)
    assert own == Use("4 files of 4 ranks", "own files", True, 4, 4, 8 * MB, 20, 4)
    assert single == Use("/s/input", "one rank", False, 1, 1, 3 * MB, 7, 1)
    assert [use.of_ranks(2).users for use in (shared, own, single)] == [8, 8, 1]
    assert [use.of_ranks(2).files for use in (shared, own, single)] == [1, 8, 1]


def test_requests_that_jump_are_interleaved_and_take_locks() -> None:
    job = make_job(ranks=2)
    add_record(
        job, range(2), "/s/rows", writes=100, consecutive_writes=0, bytes_written=100, opens=1
    )
    (use,) = uses_of(job)
    assert use.interleaved
    assert sum(flow.handovers for flow in phase_of(MACHINE, use, 1, "as it is").flows) == 200
    ordered = dataclasses.replace(use, interleaved=False)
    assert sum(flow.handovers for flow in phase_of(MACHINE, ordered, 1, "as it is").flows) == 2


def test_stripes_help_until_the_targets_are_used_up() -> None:
    use = Use("/s/big", "shared", True, 64, 1, 64 * MB, 64, 64)
    seconds = [outcome(MACHINE, [use], stripes, "collective", 5).io for stripes in (1, 8, 100)]
    assert seconds[0] == pytest.approx(65, rel=0.02)
    assert seconds[1] == seconds[2] == pytest.approx(1 + 8, rel=0.05)


def test_a_file_has_no_more_stripes_than_bytes_for_them() -> None:
    flows = phase_of(
        MACHINE, Use("/s/small", "one rank", True, 1, 1, 2 << 20, 512, 1), 8, "as it is"
    ).flows
    assert [flow.targets for flow in flows] == [2]


@pytest.mark.parametrize(("requests", "depth"), [(8, 8), (64, 8), (128, 2), (2048, 1)])
def test_writes_that_are_not_waited_for_keep_several_targets_busy(
    requests: int, depth: int
) -> None:
    machine = MACHINE.with_values({"in_flight": 8})
    use = Use("/s/log", "one rank", True, 1, 1, 8 << 20, requests, 1)
    assert phase_of(machine, use, 8, "as it is").flows[0].depth == depth
    assert (
        phase_of(machine, dataclasses.replace(use, writes=False), 8, "as it is").flows[0].depth == 1
    )
    assert phase_of(MACHINE, use, 8, "as it is").flows[0].depth == 1


@pytest.mark.parametrize(
    ("requests", "interleaved", "depth"),
    [(64, False, 3), (64, True, 1), (4, True, 2), (1, True, 3)],
)
def test_a_rank_that_reads_sequentially_or_much_has_several_requests_in_flight(
    requests: int, interleaved: bool, depth: int
) -> None:
    machine = MACHINE.with_values({"read_ahead": 3, "read_rate": 1e6})
    use = Use("/s/log", "one rank", False, 1, 1, 8 << 20, requests, 1, interleaved)
    assert phase_of(machine, use, 8, "as it is").flows[0].depth == depth
    assert phase_of(MACHINE, use, 8, "as it is").flows[0].depth == 1
    one, all_of_them = (
        outcome(each, [dataclasses.replace(use, requests=1)], 8, "as it is", 0).io
        for each in (MACHINE, machine)
    )
    assert (
        all_of_them == pytest.approx(8 * 1.048576 / 3, rel=1e-3) and one == 0
    )  # MACHINE has no rate for reading


def test_a_file_per_process_is_spread_over_targets_and_creates_files() -> None:
    found = outcome(
        MACHINE, [Use("own", "own files", True, 16, 16, 16 * MB, 16, 16)], 1, "as it is", 0
    )
    assert found.io == pytest.approx(16 + 2, rel=0.02)
    assert found.bound == "metadata"


def test_thousands_of_ranks_on_two_targets_are_warned_of() -> None:
    stampede = load("stampede")
    restart = Use("/s/restart", "shared", False, 7620, 1, 250 * 10**9, 7620, 7620)
    few, many = (
        outcome(stampede, [restart], stripes, "as it is", 0).warnings for stripes in (2, 80)
    )
    assert few[0].startswith("/s/restart: 7,620 ranks on 2 targets keep each busy for ")
    assert "7,620 opens keep the metadata server busy" in few[1]
    assert len(many) == 1


def ways(job: Job, machine: Machine) -> list[tuple[int, int, int | None, int]]:
    """Returns requests, bytes, hand-overs and the number of missing costs, as recorded and then of
    each way."""
    outcomes, _ = predict(job, machine, (8,), job.ranks)
    return [(one.requests, one.bytes, one.handovers, len(one.lacks)) for one in outcomes]


@pytest.mark.parametrize(("machine", "requests"), [("theta", 46), ("ascent", 3)])
def test_a_machine_without_rates_counts_the_requests_of_the_run(
    machine: str, requests: int
) -> None:
    """The published counts of 48 ranks with 1,000,000 bytes each, from a log in which one
    aggregator made the requests."""
    job = make_job(ranks=48)
    calls = {"writes": 1, "collective_writes": 1, "bytes_written": MB, "opens": 1}
    add_record(job, range(48), "/s/all", "mpiio", **calls)
    add_record(job, 0, "/s/all", writes=12, bytes_written=48 * MB, consecutive_writes=11, opens=1)
    recorded, one, together = ways(job, load(machine))
    assert recorded == (12, 48 * MB, None, 0)
    assert one == (12, 48 * MB, 0, 1)
    assert together[:2] == (requests, 48 * MB) and together[3] == 1
    outcomes, _ = predict(job, load(machine), (8,), 48)
    rows = list(describe(job, outcomes, load(machine), 48))[3:]
    assert [row.split()[1] for row in rows[:2]] == ["as", "collective"]
    assert all(row.count("unknown") == 2 for row in rows[:2])
    assert rows[2:] == [
        "These ways cannot be compared, because the description of the machine lacks costs"
        " (docs/model.md, Machines):",
        f"  as it is, collective: {machine} has no rate for writing",
    ]


def interleaved_job() -> Job:
    job = make_job(ranks=4)
    add_record(
        job,
        range(4),
        "/s/rows",
        writes=1000,
        consecutive_writes=0,
        bytes_written=512_000,
        write_time=1.0,
        opens=1,
    )
    return job


def test_small_interleaved_writes_are_not_equal_to_collective_ones_for_want_of_costs() -> None:
    bare = MACHINE.with_values({})
    machine = dataclasses.replace(
        bare, values={name: bare.values[name] for name in ("targets", "write_rate")}
    )
    outcomes, _ = predict(interleaved_job(), machine, (1,), 4)
    _, alone, together = outcomes
    assert alone.lacks == (
        "m has no cost for a request in addition to its bytes, and 4,000 requests move 512 B each",
        "m has no cost for lock hand-overs, and ranks take locks from each other 4,000 times",
    )
    assert together.lacks == () and together.io > 0
    page = list(describe(interleaved_job(), outcomes, machine, 4))
    assert "unknown" in page[3] and "unknown" not in page[4]
    assert page[5].startswith("These ways cannot be compared")
    assert page[6] == f"  as it is: {alone.lacks[0]}"


def test_costs_that_are_known_or_do_not_matter_are_not_missed() -> None:
    known = MACHINE.with_values({"request_seconds": 0.0, "handover_seconds": 0.0})
    outcomes, _ = predict(interleaved_job(), known, (1,), 4)
    assert not any(found.lacks for found in outcomes)
    large = Use("/s/big", "one rank", True, 1, 1, 1000 * MB, 10, 1)
    few = Use("/s/log", "one rank", True, 1, 1, 6400, 100, 1)
    assert not outcome(MACHINE, [large, few], 1, "as it is", 0).lacks
    assert outcome(MACHINE, [few], 1, "as it is", 0).lacks


def test_unknown_seconds_are_null_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pario.see.tables.read", lambda _: interleaved_job())
    assert main(["whatif", "x", "--machine", "theta", "--json"]) == 0
    recorded, alone, _ = json.loads(capsys.readouterr().out)["outcomes"]
    assert recorded["io"] == 1.0 and recorded["requests"] == 4000
    assert (alone["io"], alone["seconds"], alone["handovers"]) == (None, None, 4000)
    assert len(alone["lacks"]) == 3


def test_only_ranks_count_and_only_where_data_is() -> None:
    job = make_job(ranks=2)
    job.processes["rank"][1] = -1
    add_record(job, range(2), "/s/data", writes=1, bytes_written=MB, opens=1)
    add_record(job, 0, "/proc/cpuinfo", reads=1, bytes_read=100, opens=1)
    assert [(use.what, use.manner, use.bytes) for use in uses_of(job)] == [
        ("/s/data", "one rank", MB)
    ]


def test_the_table_is_marked_as_a_prediction() -> None:
    job = make_job(ranks=4)
    add_record(job, range(4), "/s/shared", writes=10, bytes_written=MB, write_time=1.0, opens=1)
    outcomes, _ = predict(job, MACHINE, (1, 8, 144), 8)
    first, head, *rows = describe(job, outcomes, MACHINE, 8)
    assert first == "./app on m, 8 ranks instead of 4: predicted, not measured"
    assert head.split()[0] == "stripes"
    assert [row.split()[0] for row in rows] == ["as", "1", "1", "8", "8"]


@pytest.mark.system
def test_darshan_logs_are_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    darshan = pytest.importorskip("darshan")
    logs = Path(darshan.__file__).parent / "examples" / "example_logs"
    words = ["--machine", "shaheen", "--stripes", "1,8", "--plot", str(tmp_path / "io.svg")]
    assert main(["whatif", str(logs / "example.darshan"), *words]) == 0
    printed = capsys.readouterr().out
    assert "2,048 ranks instead of 2048: predicted, not measured" in printed
    assert "vpicio.hdf5: 2,048 ranks on 1 target keep each busy for" in printed
    assert (tmp_path / "io.svg").read_text().count("<title>") == 3
    assert main(["whatif", str(logs / "dxt.darshan"), "--machine", "shaheen"]) == 0
    assert capsys.readouterr().out.startswith("the recorded run on Shaheen II")


def test_fewer_aggregators_take_longer() -> None:
    machine = MACHINE.with_values({"exchange_rate": 1e6, "node_rate": 1e6})
    job = make_job(ranks=16)
    add_record(
        job, range(16), "/s/shared", writes=16, bytes_written=16 * MB, write_time=1.0, opens=1
    )
    outcomes, _ = predict(job, machine, (8,), 16, (1, 4))
    alone, one, four = outcomes[1:]
    assert (alone.aggregators, one.aggregators, four.aggregators) == (0, 1, 4)
    assert one.io > 2 * four.io
    assert "collective by 4" in "\n".join(describe(job, outcomes, machine, 16))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Job:
    """The job that is read from any log."""
    job = make_job(ranks=1)
    job.processes["rank"][:] = -1  # without MPI
    monkeypatch.setattr("pario.see.tables.read", lambda logs: job)
    return job


def test_a_log_without_mpi_or_without_io_is_accepted(
    recorded: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "x", "--machine", "shaheen", "--ranks", "64"]) == 0
    assert "64 ranks instead of 1" in capsys.readouterr().out
    add_record(recorded, 0, "/s/a", writes=10, bytes_written=10**11, write_time=1.0, opens=1)
    assert main(["whatif", "x", "--machine", "shaheen", "--stripes", "1,8,8"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]] == ["1", "8"]
    assert main(["whatif", "x", "--machine", "shaheen", "--stripes", "1,999,1000"]) == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[3:]] == ["1", "144"]
    assert shown.err == (
        "pario whatif: --stripes 999 and 1,000: shaheen has 144 targets; predicted with 144"
        " stripes\n"
    )


@pytest.mark.parametrize(
    ("suffix", "begin"), [("svg", b"<svg "), ("html", b"<!doctype html>"), ("png", b"\x89PNG")]
)
def test_pictures_have_the_format_of_their_suffix(
    recorded: Job, tmp_path: Path, suffix: str, begin: bytes
) -> None:
    if suffix == "png":
        pytest.importorskip("matplotlib")
    add_record(recorded, 0, "/s/a", writes=10, bytes_written=10**11, write_time=1.0, opens=1)
    path = tmp_path / f"io.{suffix}"
    assert (
        main(["whatif", "x", "--machine", "shaheen", "--stripes", "1,8", "--plot", str(path)]) == 0
    )
    assert path.read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "0"], "0; expected a number from 1 to 1,000,000"),
        (["--ranks", "1" + "0" * 30], "expected a number from 1 to 1,000,000"),
        (
            ["--aggregators", "1,99999999999999999999"],
            "99999999999999999999; expected a number from 1 to",
        ),
        (["--stripes", ","], "expected a number from 1 to 1,000,000"),
        (
            ["--plot", "io.pdf", "--machine", "shaheen"],
            "expected a name that ends in .svg, .html or .png",
        ),
        (["--plot", "/nonexistent/io.svg", "--machine", "shaheen"], "no directory /nonexistent"),
        (["--plot", "io.svg"], "expected a --machine"),
    ],
)
def test_invalid_questions_are_refused(
    recorded: Job, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    try:
        status = main(["whatif", "x", *words])
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == 2 and said in capsys.readouterr().err


def test_machines_are_listed_and_logs_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["whatif", "--list"]) == 0
    assert "shaheen        Shaheen II at KAUST" in capsys.readouterr().out
    assert main(["whatif"]) == 2
    assert main(["whatif", str(tmp_path), "--machine", "nowhere"]) == 2
    assert "no machine nowhere; there are ascent," in capsys.readouterr().err
