"""Every rule fires on its own job, states the seconds, and is silent on its control."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.cells import WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
from pario.see.analyze.model import FileSetting
from pario.see.analyze.rules import RULES
from pario.see.analyze.rules.base import pace
from pario.see.analyze.split import Times
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import LAYERS, SITE, Frame, Job
from tests.python.jobs import (
    add_events,
    add_function,
    add_record,
    make_job,
    set_layout,
)
from tests.python.layer_jobs import parse_table, print_text
from tests.python.rule_cases import (
    CASES,
    MIB,
    VARIANTS,
    bursts,
    job,
    late,
    stripe,
    targets,
    write_stream,
)

ALL_CASES = {**CASES, **VARIANTS}


def found(made: Job) -> dict[str, float]:
    return {finding.rule: finding.seconds for finding in analyze(made).findings}


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {rule.name for rule in RULES}


@pytest.mark.system
@pytest.mark.parametrize("name", ALL_CASES)
def test_rule_names_cause_and_seconds(name: str) -> None:
    case = ALL_CASES[name]
    made = job(case.ranks, kind=case.kind)
    case.bad(made)
    findings = analyze(made).findings
    assert [finding.rule for finding in findings][:1] == [name.partition(" (")[0]]
    least, most = case.seconds
    assert least <= findings[0].seconds <= most
    assert (
        findings[0].title
        and findings[0].cause
        and findings[0].method
        and findings[0].evidence
        and findings[0].fixes
    )


#: The settings that repair the finding of a case; the findings of other cases have none.
SETTINGS = {
    "one-stripe": ["striping.striping_factor", "striping.striping_unit"],
    "hole-read-modify-write": ["run.mpiio", "mpiio.romio_ds_write", "mpiio.pario_write_behind"],
    "missing-collectives": ["run.mpiio", "mpiio.romio_ds_write", "mpiio.pario_write_behind"],
    "collective-exchange": ["run.mpiio", "mpiio.romio_ds_write"],
    "mpi-library-time": ["run.mpiio", "mpiio.romio_ds_write"],
    "amplification": ["run.mpiio", "mpiio.romio_ds_write"],
    "tiny-collective-buffer": ["run.mpiio", "mpiio.romio_ds_write"],
    "shared-file-pointer": ["run.mpiio", "mpiio.romio_ds_write"],
    "tiny-collective-calls": ["run.mpiio", "mpiio.romio_ds_write"],
    "tiny-independent-calls": ["run.mpiio", "mpiio.romio_ds_write", "mpiio.pario_write_behind"],
    "backward-reads": ["streams.whole"],
    "small-writes": ["streams.size", "streams.count"],
    "small-reads": ["streams.size", "streams.prefetch"],
    "stdio-buffer": ["stdio.mode", "stdio.size"],
    "flush-storm": ["streams.ignoreflush"],
    "open-close-loop": ["streams.handles", "streams.lazyclose"],
    "seek-storm": ["streams.whole"],
    "re-read": ["streams.whole"],
    "all-ranks-read-one-file": ["streams.read_once"],
    "mmap-network": ["streams.map_ahead"],
    "repeated-imports": ["run.cached_trees"],
}


def settings_of(name: str, **facts: object) -> list[FileSetting]:
    made = job(CASES[name].ranks, kind=CASES[name].kind)
    CASES[name].bad(made)
    for key, value in facts.items():
        setattr(made, key, value)
    return [
        one
        for finding in analyze(made).findings
        if finding.rule == name
        for one in finding.settings
    ]


@pytest.mark.system
@pytest.mark.parametrize("name", CASES)
def test_a_finding_carries_the_settings_that_repair_it(name: str) -> None:
    assert [f"{one.table}.{one.key}" for one in settings_of(name)] == SETTINGS.get(name, [])


@pytest.mark.system
def test_only_settings_that_have_to_be_allowed_are_risky() -> None:
    assert {name for name in CASES for one in settings_of(name) if one.risky} == {
        "flush-storm",
        "open-close-loop",
    }


@pytest.mark.parametrize(("writers", "repaired"), [([0], True), ([0, 1], False)])
def test_files_that_several_processes_write_are_not_kept_in_buffers(
    writers: list[int], repaired: bool
) -> None:
    made = job(4)
    add_record(
        made,
        writers,
        "/scratch/log",
        opens=1,
        writes=10**6,
        bytes_written=10**8,
        write_time=5.0,
        write_sizes={100: 10**6},
        end_written=10**8,
    )
    (found,) = (finding for finding in analyze(made).findings if finding.rule == "small-writes")
    assert bool(found.settings) == repaired


def test_writes_and_seeks_with_an_open_each_are_attributed_to_the_opens() -> None:
    made = job()
    opened = {
        "opens": 50_000,
        "closes": 50_000,
        "open_time": 2.0,
        "close_time": 1.0,
        "seeks": 150_000,
        "seek_time": 1.0,
    }
    small = {"bytes_written": 10**6, "write_sizes": {20: 50_000}, "end_written": 10**6}
    add_record(made, 0, "/scratch/log", writes=50_000, write_time=2.0, **opened, **small)
    (found,) = analyze(made).findings
    assert (found.rule, [one.key for one in found.settings]) == (
        "open-close-loop",
        ["handles", "lazyclose"],
    )
    assert found.seconds == pytest.approx(5.0, abs=0.2)


def test_a_finding_without_settings_gives_the_reason_to_change_the_program() -> None:
    made = job(4)
    add_record(
        made,
        [0, 1],
        "/scratch/log",
        opens=1,
        writes=10**6,
        bytes_written=10**8,
        write_time=5.0,
        write_sizes={100: 10**6},
        end_written=10**8,
    )
    (found,) = (finding for finding in analyze(made).findings if finding.rule == "small-writes")
    assert (
        found.why_not
        == "several processes write the file, and none would see the buffered bytes of another"
    )


def test_settings_of_the_run_are_not_proposed_again() -> None:
    environment = {
        "PARIO_MPIIO": "1",
        "PARIO_HINTS": "*:pario_write_behind=1M:ds_write=disable",
        "PARIO_STREAMS": "*:size=1M:count=4",
    }
    for name in ("missing-collectives", "small-writes"):
        assert settings_of(name, metadata={"env": environment}) == []
    assert [
        one.key
        for one in settings_of("missing-collectives", metadata={"env": {"PARIO_MPIIO": "1"}})
    ] == ["romio_ds_write", "pario_write_behind"]


def test_no_repair_lets_mpi_io_read_the_holes_between_pieces() -> None:
    made = [one for rule in RULES for one in rule.repairs if ("run", "mpiio", "yes") in one.wanted]
    assert made
    for repair in made:
        assert ("mpiio", "romio_ds_write", "disable") in repair.wanted


def test_a_file_with_one_stripe_gets_the_stripe_count_of_the_policy() -> None:
    made = job(16, kind="lustre")
    for layer in ("mpiio", "posix"):
        add_record(
            made,
            range(16),
            "/scratch/one",
            layer=layer,
            writes=100,
            bytes_written=2**27,
            write_time=2.0,
            end_written=2**31,
        )
    set_layout(made, "/scratch/one", 1 << 20, [3])
    (found,) = (finding for finding in analyze(made).findings if finding.rule == "one-stripe")
    assert [(one.key, one.value) for one in found.settings] == [
        ("striping_factor", "16"),
        ("striping_unit", "4M"),
    ]


@pytest.mark.parametrize(("stripes", "seconds"), [(2, 15.0), (4, 10.0), (6, 0.0)])
def test_a_file_with_few_stripes_gets_more_if_ranks_share_its_targets(
    stripes: int, seconds: float
) -> None:
    made = job(8, kind="lustre")
    stripe(made, stripes)
    found = [one for one in analyze(made).findings if one.rule == "one-stripe"]
    assert sum(one.seconds for one in found) == pytest.approx(seconds)
    assert all(f"8 ranks share {stripes} OSTs" in one.title for one in found)


def test_the_first_repair_is_one_that_pario_can_make() -> None:
    made = job(CASES["small-writes"].ranks, kind=CASES["small-writes"].kind)
    CASES["small-writes"].bad(made)
    fix = analyze(made).findings[0].fixes[0]
    assert (fix.kind, fix.text) == (
        "setting",
        (
            "pario run --fix -- COMMAND, the program as it is: small writes are collected and"
            " written behind"
        ),
    )


@pytest.mark.parametrize("name", CASES)
def test_control_stays_silent(name: str) -> None:
    case = CASES[name]
    made = job(case.ranks, kind=case.kind)
    case.control(made)
    assert name not in found(made)


def test_unbuffered_and_line_buffered_streams_are_distinguished() -> None:
    titles = []
    for mode in (1, 2):
        made = job()
        write_stream(made, 0, mode, 10.0)
        titles.append(analyze(made).findings[0].title)
    assert "line-buffered" in titles[0] and "unbuffered" in titles[1]


def test_text_is_recognised_from_samples_where_nothing_was_formatted() -> None:
    made = job()
    add_record(
        made,
        0,
        "/scratch/t.csv",
        writes=2000,
        bytes_written=40 * MIB,
        write_time=5.0,
        sampled_writes=20,
        sampled_text=20,
        sampled_numbers=18,
    )
    assert list(found(made)) == ["text-output"]


@pytest.mark.parametrize(("numbers", "rules"), [(18, ["text-output"]), (2, [])])
def test_formatted_lines_are_numbers_as_far_as_samples_tell_them(
    numbers: int, rules: list[str]
) -> None:
    made = job()
    print_text(made, True)
    made.records["sampled_writes"] = made.records["sampled_text"] = 20
    made.records["sampled_numbers"] = numbers
    assert list(found(made)) == rules


def test_text_written_line_by_line_is_small_writes_because_calls_cost_more_than_digits() -> None:
    made = job()
    sampled = {"sampled_writes": 20, "sampled_text": 20, "sampled_numbers": 18}
    sizes = {"bytes_written": 40 * MIB, "write_sizes": {40: MIB}, "end_written": 40 * MIB}
    add_record(made, 0, "/scratch/t.csv", writes=MIB, write_time=5.0, **sizes, **sampled)
    assert list(found(made)) == ["small-writes"]


def test_slow_target_is_named_without_moving_files_that_are_only_written() -> None:
    made = job(32, kind="lustre")
    targets(made, 50.0)
    (finding,) = analyze(made).findings
    assert finding.title.startswith("OST 5 is slow: 4 files")
    assert [fix.kind for fix in finding.fixes] == ["code"]
    assert finding.ranks == (5, 13, 21, 29)


def test_files_on_a_slow_target_are_divided_among_the_others() -> None:
    made = job(32, kind="lustre")
    targets(made, 50.0, reading=True)
    (finding,) = analyze(made).findings
    assert [fix.kind for fix in finding.fixes] == ["code", "code", *["command"] * 3]
    commands = [fix.text for fix in finding.fixes[2:]]
    found = [re.fullmatch(r"lfs migrate -c 1 -o (\d) /\S+", text) for text in commands]
    assert [one[1] for one in found if one] == ["0", "1", "2"]


def test_stronger_cause_leaves_nothing_to_a_weaker_one() -> None:
    """A program that writes its values one by one through MPI-IO lacks collective calls; the POSIX
    writes below do not count as small writes as well."""
    made = job(4)
    add_record(
        made,
        range(4),
        "/scratch/s",
        "mpiio",
        writes=10_000,
        bytes_written=10_000_000,
        write_time=12.0,
    )
    below = {
        "writes": 10_000,
        "nested_writes": 10_000,
        "bytes_written": 10_000_000,
        "write_time": 11.0,
        "nested_write_time": 11.0,
    }
    add_record(made, range(4), "/scratch/s", **below)
    assert list(found(made)) == ["missing-collectives"]


@pytest.mark.parametrize(
    ("extent", "named"),
    [(100_000_000, ["missing-collectives"]), (10_000_000_000, [])],
    ids=["dense", "sparse"],
)
def test_view_that_cuts_a_call_into_pieces_counts_as_pieces(extent: int, named: list[str]) -> None:
    """Four independent calls per rank that the library turned into 10,000 writes; a collective call
    helps only if the pieces of the ranks are adjacent."""
    made = job(4)
    add_record(
        made,
        range(4),
        "/scratch/s",
        "mpiio",
        writes=4,
        views=4,
        bytes_written=25_000_000,
        write_time=12.0,
    )
    below = {
        "writes": 10_000,
        "nested_writes": 10_000,
        "bytes_written": 25_000_000,
        "write_time": 11.0,
        "nested_write_time": 11.0,
    }
    add_record(made, range(4), "/scratch/s", end_written=extent, **below)
    assert [rule for rule in found(made) if rule == "missing-collectives"] == named


def test_finding_on_a_rank_off_the_critical_path_costs_nothing() -> None:
    made = make_job(2, wall=100.0)
    add_record(made, 1, "/scratch/f", writes=1_000_000, bytes_written=8_000_000, write_time=20.0)
    add_events(made, 1, "/scratch/f", "write", start=1.0, duration=20.0, length=8_000_000)
    add_events(
        made,
        range(2),
        "",
        "communicate",
        start=[80.0, 21.0],
        duration=[0.1, 59.1],
        offset=0,
        flags=8,
    )
    assert analyze(made).findings == ()


def test_transfers_to_the_one_rank_count_as_its_cost() -> None:
    made = make_job(2, wall=100.0, has={"posix", "per_rank", "mpi"})
    add_record(made, 0, "/scratch/f", writes=100, bytes_written=400 * MIB, write_time=20.0)
    add_function(made, 0, "MPI_Recv", "p2p", calls=50, seconds=10.0, bytes=200 * MIB)
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("one-rank-for-all", pytest.approx(20.0))


def test_time_of_senders_to_the_one_rank_counts_where_they_are_the_critical_path() -> None:
    made = make_job(2, wall=100.0)
    add_record(made, 0, "/scratch/f", writes=100, bytes_written=400 * MIB, write_time=0.1)
    add_function(made, 0, "MPI_Recv", "p2p", calls=50, seconds=40.0, bytes=200 * MIB)
    add_function(made, 1, "MPI_Send", "p2p", calls=50, seconds=80.0, bytes=200 * MIB)
    talk = {"start": 1.0, "duration": [40.0, 80.0], "offset": 0}
    add_events(made, range(2), "", "communicate", **talk)
    meet = {"start": [90.0, 95.0], "duration": [6.0, 1.0], "offset": 1, "flags": 8}
    add_events(made, range(2), "", "communicate", **meet)
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("one-rank-for-all", pytest.approx(80.0, rel=0.05))


def test_a_rank_that_reads_its_own_output_does_not_read_for_all() -> None:
    made = make_job(2, wall=100.0)
    moved = {"writes": 100, "bytes_written": 400 * MIB, "reads": 100, "bytes_read": 400 * MIB}
    add_record(made, 0, "/scratch/f", **moved, write_time=10.0, read_time=20.0)
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("one-rank-for-all", pytest.approx(5.0))
    assert "while 1 rank waits." in finding.cause


@pytest.mark.parametrize(("more", "promised"), [(True, 30.0), (False, 0.0)])
def test_a_late_rank_with_more_work_is_named_where_ranks_wait_for_processors(
    more: bool, promised: float
) -> None:
    made = job(4)
    late(made, [3])
    made.has.add("cpu")
    made.processes["cpu_user"], made.processes["cpu_system"] = 20.0, 0.0
    queued = 50.0 if more else np.array([50.0, 50.0, 50.0, 90.0])
    made.processes["run_queue_delay"] = queued * 1e9
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert found.get("collective-waiting", 0.0) == pytest.approx(promised, abs=0.6)


def test_the_lines_of_a_late_rank_are_those_of_the_collective_calls() -> None:
    made = job(4)
    late(made, [3])
    made.has.add("sites")
    made.stacks = [(Frame(file="/home/user/a.c", line=line, function="f"),) for line in (7, 9)]
    made.function_names.append("MPI_Init")
    made.sites = np.zeros(2, SITE)
    made.sites["stack"], made.sites["calls"], made.sites["seconds"] = [0, 1], 10, [1.0, 9.0]
    made.sites["name"] = [made.events["function"][0], len(made.function_names) - 1]
    made.sites["layer"] = [LAYERS.index("mpiio"), COMMUNICATION]
    (finding,) = (one for one in analyze(made).findings if one.rule == "collective-waiting")
    assert [site.line for site in finding.sites] == [7]


def test_commands_can_be_typed_as_they_stand() -> None:
    made = job(32, kind="lustre")
    targets(made, 50.0, directory="/lustre/my run", reading=True)
    commands = [
        fix.text
        for finding in analyze(made).findings
        for fix in finding.fixes
        if fix.kind == "command"
    ]
    assert commands
    assert all("#" not in text and "'/lustre/my run/" in text for text in commands)


def test_overlap_is_silent_beside_a_direct_cause() -> None:
    made = job(1)
    bursts(made, 8.0)
    add_record(
        made, 0, "/scratch/values", writes=1_000_000, bytes_written=8_000_000, write_time=8.0
    )
    assert "overlap" not in found(made)


@pytest.mark.parametrize(
    ("large", "sentence"),
    [
        (1.0, "run at 51.2 MB/s, 10 % of the 512 MB/s that this file system gave in this run"),
        (20.0, "run at 51.2 MB/s, faster than large writes on this file system did in this run"),
    ],
)
def test_rates_are_compared_with_those_of_large_calls(large: float, sentence: str) -> None:
    made = job(1)
    add_record(made, 0, "/scratch/large", writes=1000, bytes_written=512_000_000, write_time=large)
    add_record(made, 0, "/scratch/f", writes=1_000_000, bytes_written=512_000_000, write_time=10.0)
    facts = Facts(Times(made))
    (small,) = np.flatnonzero(facts.column("writes") == 1_000_000)
    claim = Claim(np.array([small]), WRITE, np.array([5.0]))
    assert sentence in pace(facts, [claim])


@pytest.mark.parametrize(("locks", "reason"), [(2000, True), (2, False)])
def test_small_writes_between_locks_are_not_buffered(locks: int, reason: bool) -> None:
    made = job()
    moved = {"writes": 1000, "bytes_written": 20_000, "write_time": 10.0}
    add_record(made, 0, "/scratch/f", opens=1, **moved, locks=locks, lock_time=1e-6 * locks)
    (finding,) = [one for one in analyze(made).findings if one.rule == "small-writes"]
    assert ("a lock is set or released" in finding.why_not) == reason
    assert bool(finding.settings) != reason


@pytest.mark.parametrize(("files", "seconds"), [(1, 10.9), (8, 8.8)])
def test_images_that_are_too_many_to_keep_decoded_save_their_reads_alone(
    files: int, seconds: float
) -> None:
    """As those of a training over several epochs."""
    made = job()
    for number in range(files):
        parse_table(made, 12, f"{number}.png", 8 * MIB)
    assert found(made)["re-read"] == pytest.approx(seconds, abs=0.1)
