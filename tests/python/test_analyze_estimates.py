"""The seconds that findings promise: the program's own work for calls, starts of programs, ranks
that take turns, and the range of each estimate."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest

from pario.see.analyze import analyze, idioms
from pario.see.analyze.model import Finding
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_filesystem, add_function, add_record, make_job
from tests.python.layer_jobs import MIB, start_programs, write_steps

PYTHON, COMPILED = "/usr/bin/python3.11", "/home/user/app"


def make_run(program: str, ranks: int = 1, kind: str = "ext4", wall: float = 2.0) -> Job:
    made = make_job(ranks, wall)
    made.programs = [program]
    made.processes["cpu_user"] = wall
    add_filesystem(made, "/scratch", kind, network=kind == "lustre")
    return made


def finding(made: Job, rule: str) -> Finding:
    (found,) = (one for one in analyze(made).findings if one.rule == rule)
    return found


def stat(made: Job, calls: int, gap: float, took: float = 0.75e-6) -> None:
    """Asks for the state of a file again and again, with a gap of the program between calls."""
    add_record(made, 0, "/scratch/entry", stats=calls, stat_time=calls * took)
    start = np.arange(calls) * (took + gap)
    add_events(made, 0, "/scratch/entry", "stat", start=start, duration=took)


@pytest.mark.parametrize(
    ("program", "gap", "gain"),
    [
        (PYTHON, 4e-6, 200_000 * 4.75e-6),  # the loop calls, and does nothing else
        (COMPILED, 0.3e-6, 200_000 * 1.05e-6),
        (COMPILED, 8e-6, 200_000 * 1.25e-6),  # the rest is computation
        (PYTHON, 8e-6, 200_000 * 5.75e-6),
    ],
)
def test_a_call_costs_also_the_work_of_the_program_for_it(
    program: str, gap: float, gain: float
) -> None:
    made = make_run(program)
    stat(made, 200_000, gap)
    assert finding(made, "stat-storm").seconds == pytest.approx(gain, rel=0.05)


def test_joined_events_tell_the_work_between_their_calls() -> None:
    made = make_run(PYTHON)
    add_record(made, 0, "/scratch/entry", stats=100_000, stat_time=0.1)
    joint = {"count": 100, "end": np.arange(1000) * 5e-4 + 5e-4}
    start = np.arange(1000) * 5e-4
    add_events(made, 0, "/scratch/entry", "stat", start=start, duration=1e-4, **joint)
    assert finding(made, "stat-storm").seconds == pytest.approx(0.5, rel=0.05)


def test_calls_of_other_kinds_between_two_calls_separate_them() -> None:
    made = make_run(PYTHON)
    stat(made, 100_000, 4e-6)
    start = np.arange(100_000) * 4.75e-6 + 2e-6
    add_record(made, 0, "/scratch/data", reads=100_000, bytes_read=10**9, read_time=0.1)
    add_events(made, 0, "/scratch/data", "read", start=start, duration=1e-6, length=10_000)
    assert finding(made, "stat-storm").seconds == pytest.approx(0.075, rel=0.05)


@pytest.mark.parametrize(("program", "gain"), [(PYTHON, 1.34), (COMPILED, 0.44)])
def test_a_listing_costs_also_the_work_for_its_names(program: str, gain: float) -> None:
    made = make_run(program)
    names, lists = 3000, 300
    add_record(*(made, 0, "/scratch/items"), lists=lists, entries=names * lists, list_time=0.26)
    start = np.arange(lists) * 4.5e-3
    add_events(made, 0, "/scratch/items", "list", start=start, duration=0.26 / lists)
    assert finding(made, "directory-listing").seconds == pytest.approx(gain, rel=0.05)


def test_a_program_that_sleeps_between_listings_is_promised_their_cost_alone() -> None:
    made = make_run(PYTHON, wall=100.0)
    add_record(made, 0, "/scratch/items", lists=100, entries=100_000, list_time=2.0)
    start = np.arange(100) * 1.0
    add_events(made, 0, "/scratch/items", "list", start=start, duration=0.02)
    assert finding(made, "directory-listing").seconds == pytest.approx(2.2, rel=0.03)


def test_an_hdf5_file_opened_again_costs_the_transfers_and_the_work_of_its_library() -> None:
    made = make_run(PYTHON)
    opens, path = 1000, "/scratch/series.h5"
    calls = {"opens": opens, "closes": opens, "open_time": 0.01, "close_time": 0.01}
    moved = {"reads": 9 * opens, "read_time": 0.05, "writes": 8 * opens, "write_time": 0.06}
    add_record(made, 0, path, bytes_read=10**5, bytes_written=10**5, **calls, **moved)
    add_record(made, 0, path, "hdf5", opens=opens, closes=opens, open_time=0.03, close_time=0.02)
    for part in range(2):
        kind, begin = ("open", 0.0) if part == 0 else ("close", 300e-6)
        start = np.arange(opens) * 400e-6 + begin
        add_events(made, 0, path, kind, start=start, duration=30e-6, layer="hdf5")
    gaps = 1000 * (70e-6 + 120e-6)
    assert finding(made, "open-close-loop").seconds == pytest.approx(0.18 + gaps, rel=0.05)


@pytest.mark.parametrize(("program", "gap"), [(PYTHON, 100e-6), (COMPILED, 12e-6)])
def test_small_steps_cost_also_the_work_between_their_calls(program: str, gap: float) -> None:
    made = make_run(program)
    steps, took = 2000, 20e-6
    write_steps(made, steps, took)
    for place, (path, kind) in enumerate((("", "other"), (":/v", "write"), ("", "flush"))):
        start = np.arange(steps) * 360e-6 + place * 120e-6
        add_events(
            made, 0, f"/scratch/s.bp{path}", kind, start=start, duration=took, layer="adios2"
        )
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert found == {"small-steps": pytest.approx(0.99 * steps * (10 * took + 3 * gap), rel=0.02)}


@pytest.mark.parametrize(("program", "work"), [(PYTHON, 12e-6), (COMPILED, 1.2e-6)])
def test_small_files_cost_also_the_work_of_the_program_for_them(program: str, work: float) -> None:
    made = make_run(program)
    took, files = 50e-6, 1000
    paths, begin = [f"/scratch/d/{number}" for number in range(files)], np.arange(files) * 240e-6
    seconds = {"open_time": took, "close_time": took}
    add_record(made, 0, paths, opens=1, closes=1, reads=1, bytes_read=2000, **seconds)
    add_events(made, 0, paths, "open", start=begin, duration=took)
    add_events(made, 0, paths, "close", start=begin + 120e-6, duration=took)
    gain = files * (2 * took + 2 * work)
    assert finding(made, "many-small-files").seconds == pytest.approx(gain, rel=0.05)


def test_starts_of_programs_cost_their_processor_time_and_an_empty_start() -> None:
    made = make_run(COMPILED, wall=10.0)
    start_programs(made, 300, 0.0007)
    assert finding(made, "process-storm").seconds == pytest.approx(300 * 1.3e-3, rel=0.01)


def test_a_fork_before_the_start_of_a_program_costs_no_more_than_the_start() -> None:
    """Each of 300 processes is forked in 1 ms, and then executes a program."""
    made = make_run(COMPILED, wall=10.0)
    start_programs(made, 300, 0.7e-3)
    add_function(made, 0, "fork", "posix", thread=0, calls=300, seconds=0.3)
    forked = made.processes[1:].copy()
    forked["parent_image"], forked["cpu_user"], forked["cpu_system"] = 1, 0.0, 0.0
    forked["end"] = forked["seen"] = forked["start"]
    forked["start"] -= 4e-3
    made.processes = np.concatenate([made.processes, forked])
    assert finding(made, "process-storm").seconds == pytest.approx(300 * 1.3e-3, rel=0.01)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_processes_of_a_pipeline_cost_the_time_in_which_any_of_them_lives(width: int) -> None:
    """Of 300 processes of 5 ms, ``width`` run at the same time."""
    made = make_run(COMPILED, wall=10.0)
    start_programs(made, 300, 5e-3)
    children = made.processes[1:]
    children["start"] = np.repeat(0.01 + np.arange(300 // width) * width / 31, width)
    children["end"] = children["seen"] = children["start"] + 5e-3
    expected = 300 // width * (5e-3 + 0.6e-3)
    assert finding(made, "process-storm").seconds == pytest.approx(expected, rel=0.01)


def test_a_program_that_waits_for_another_one_costs_its_own_start_and_time_too() -> None:
    """Each of 300 shells starts a program and waits for it."""
    made = make_run(COMPILED, wall=10.0)
    start_programs(made, 300, 0.7e-3)
    shells = made.processes[1:]
    shells["end"] = shells["seen"] = shells["start"] + 5e-3
    below = shells.copy()
    below["parent"], below["pid"] = shells["pid"], shells["pid"] + 1000
    below["start"], below["end"] = shells["start"] + 2e-3, shells["start"] + 4e-3
    below["seen"] = below["end"]
    made.processes = np.concatenate([made.processes, below])
    assert finding(made, "process-storm").seconds == pytest.approx(300 * 2 * 1.3e-3, rel=0.01)


@pytest.mark.system
def test_the_work_for_calls_belongs_to_the_finding_that_has_their_time() -> None:
    made = make_run(COMPILED)
    reads, path = 400_000, "/scratch/records"
    moved = {"reads": reads, "bytes_read": 128 * reads, "end_read": 8 * MIB, "read_time": 0.4}
    add_record(made, 0, path, seeks=reads, seek_time=0.1, **moved)
    start = np.arange(reads) * 2e-6
    add_events(made, 0, path, "seek", start=start, duration=0.25e-6)
    add_events(made, 0, path, "read", start=start + 0.5e-6, duration=1e-6, length=128)
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert list(found) == ["seek-storm"]
    assert 0.49 <= found["seek-storm"] <= 0.6  # with half of the work, at most 0.1 s


@pytest.mark.parametrize(("queued", "promised"), [(0.0, 30.0), (80.0, 6.0)])
def test_waiting_for_processors_is_no_waiting_for_locks(queued: float, promised: float) -> None:
    made = make_job(2, 100.0, has={"posix", "per_rank", "cpu"})
    add_record(made, [0, 1], "/scratch/log", opens=1, locks=100, lock_time=30.0)
    made.processes["cpu_user"] = 10.0
    made.processes["run_queue_delay"] = queued * 1e9
    (finding,) = analyze(made).findings
    assert (finding.rule, finding.seconds) == ("lock-waiting", pytest.approx(promised, rel=0.01))


@pytest.mark.measured
@pytest.mark.parametrize(
    "idiom",
    [
        idioms.ask_for_a_name,
        idioms.read_a_file,
        idioms.append_compressed,
        idioms.select_a_name,
        idioms.print_a_number,
        idioms.read_a_number,
        idioms.parse_a_table,
        idioms.write_a_line,
        idioms.pass_a_byte,
        idioms.pass_an_object,
    ],
)
def test_an_idiom_is_measured_in_microseconds(idiom: Callable[[], None]) -> None:
    assert 1e-8 < idioms.measure(idiom) < 1e-2


@pytest.mark.measured
def test_the_start_of_an_empty_program_is_measured_in_milliseconds() -> None:
    assert 1e-5 < idioms.measure_start() < 1.0


def test_messages_are_measured_only_if_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def note(idiom: Callable[[], None]) -> float:
        measured.append(idiom.__name__)
        return 1e-6

    monkeypatch.setattr(idioms, "measure", note)
    monkeypatch.setattr(idioms, "measure_answer", lambda: measured.append("answer") or 1e-6)
    made = make_job(1, 1.0, mpi=False)
    made.processes["cpu_user"] = 1.0
    for calls, expected in ((9_000, set()), (900_000, {"pass_a_byte"})):
        made.processes["untraced_reads"] = calls
        analyze(made)
        assert set(measured) == expected


@pytest.mark.measured
def test_the_answer_of_another_process_is_measured_in_microseconds() -> None:
    allowed = os.sched_getaffinity(0)
    assert 1e-7 < idioms.measure_answer() < 0.1
    assert os.sched_getaffinity(0) == allowed


def take_turns(made: Job, seconds: list[float], paths: list[str]) -> None:
    """Lets ranks write one after the other, three times; MPI_Mprobe receives the turn."""
    now = 0.0
    for turn in range(3 * made.ranks):
        rank, after = turn % made.ranks, (turn + 1) % made.ranks
        took = seconds[rank]
        add_record(made, rank, paths[rank], writes=1, bytes_written=MIB, write_time=took)
        add_events(made, rank, paths[rank], start=now, duration=took, length=MIB)
        end, tag = now + took, turn
        peer = {"offset": after << 32 | tag, "function": "MPI_Send"}
        add_events(made, rank, "", "communicate", start=end, duration=1e-6, **peer)
        peer = {"offset": rank << 32 | tag, "function": "MPI_Mprobe"}
        add_events(made, after, "", "communicate", start=now, duration=took + 2e-6, **peer)
        now = end + 3e-6
    made.has |= {"events", "mpi", "sync"}


def test_ranks_that_pass_a_turn_on_are_found_if_their_shares_differ() -> None:
    made = make_run(PYTHON, ranks=2, wall=1.3)
    take_turns(made, [0.3, 0.1], ["/scratch/a", "/scratch/b"])
    assert finding(made, "serialized-ranks").seconds == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize(("kind", "gain"), [("ext4", False), ("lustre", True)])
def test_turns_on_one_file_cost_nothing_where_the_kernel_makes_writers_wait(
    kind: str, gain: bool
) -> None:
    made = make_run(PYTHON, ranks=2, kind=kind, wall=1.3)
    take_turns(made, [0.2, 0.2], ["/scratch/a", "/scratch/a"])
    assert ("serialized-ranks" in {one.rule for one in analyze(made).findings}) == gain


def test_waiting_for_locks_of_a_few_tenths_of_a_millisecond_is_found() -> None:
    made = make_run(COMPILED, wall=2.0)
    made.has -= {"events"}
    made.processes = np.repeat(made.processes, 3)
    made.processes["pid"] += np.arange(3)
    locks = {"writes": 1000, "locks": 2000}
    for worker, seconds in ((1, 0.9), (2, 0.7)):
        add_record(made, worker, "/scratch/ledger", opens=1, lock_time=seconds, **locks)
    assert finding(made, "lock-waiting").seconds == pytest.approx(0.8, rel=0.02)


def test_locks_of_a_network_file_system_that_take_a_request_each_are_no_waiting() -> None:
    made = make_run(COMPILED, kind="lustre")
    add_record(made, 0, "/scratch/ledger", writes=1000, locks=2000, lock_time=1.0)
    assert "lock-waiting" not in {one.rule for one in analyze(made).findings}


@pytest.mark.parametrize(
    ("cpu", "gain"),
    [
        (1.8, 0.2 - 0.02),  # the program computes most of the time
        (0.5, 0.4 - 0.02),
    ],
)
def test_page_faults_cost_at_most_the_time_outside_of_user_code(cpu: float, gain: float) -> None:
    made = make_run(COMPILED)
    made.processes["cpu_user"], made.processes["cpu_system"] = cpu, 0.0
    mapped = {"bytes_mapped": 40e6, "bytes_resident": 40e6, "mapped_faults": 4000}
    add_record(made, 0, "/scratch/table", opens=1, maps=1, **mapped)
    assert finding(made, "mmap-network").seconds == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize(
    ("system", "faults", "gain"),
    [
        (0.4, 100_000, 0.2 + 0.4),
        (0.8, 100_000, 0.2 + 0.5),  # at most 5 us per fault
        (0.8, 10_000, 0.2 + 0.05),  # most mappings have none
        (0.0, 100_000, 0.2),
    ],
)
def test_faults_of_new_mappings_are_time_of_the_kernel(
    system: float, faults: int, gain: float
) -> None:
    made = make_run(COMPILED)
    made.processes["cpu_user"], made.processes["cpu_system"] = 0.5, system
    made.processes["minor_faults"] = faults
    mapped = {"bytes_mapped": 400e6, "maps": 100_000, "map_time": 0.2}
    add_record(made, 0, "/scratch/table", opens=1, **mapped)
    assert finding(made, "mapping-storm").seconds == pytest.approx(gain, rel=0.02)


@pytest.mark.parametrize(
    ("wall", "seconds", "found"),
    [(0.5, 0.03, True), (0.5, 0.015, False), (3.0, 0.04, False), (3.0, 0.06, True)],
)
def test_in_a_short_run_fewer_seconds_are_worth_a_finding(
    wall: float, seconds: float, found: bool
) -> None:
    made = make_run(COMPILED, wall=wall)
    add_record(made, 0, "/scratch/entry", stats=100_000, stat_time=seconds)
    assert bool(analyze(made).findings) == found


def test_an_estimate_has_a_range_of_a_factor_of_two_within_the_run() -> None:
    made = make_run(COMPILED)
    add_record(made, 0, "/scratch/entry", stats=100_000, stat_time=1.0)
    found = finding(made, "stat-storm")
    assert found.most / found.least == pytest.approx(2.0)
    assert found.least < found.seconds < found.most
    made = make_run(COMPILED)
    add_record(made, 0, "/scratch/entry", stats=100_000, stat_time=1.8)
    assert finding(made, "stat-storm").most == 2.0


def test_a_value_by_stdio_is_not_charged_with_the_clock_of_the_tracer() -> None:
    made = make_run(COMPILED)
    moved = {"reads": 10_000_000, "bytes_read": 40_000_000, "read_time": 0.3}
    add_record(made, 0, "/scratch/field", "stdio", opens=1, buffer_size=4096, **moved)
    expected = 0.3 - 0.02 - 10_000_000 * 6e-9
    assert finding(made, "stdio-per-value").seconds == pytest.approx(expected, rel=0.01)


def test_few_writes_that_wait_for_the_device_are_no_cost_of_small_writes() -> None:
    made = make_job(1, 20.0)
    add_filesystem(made, "/scratch", "ext4", 4096)
    calls, seconds = 10_000, np.full(10_000, 3e-6)
    seconds[::2000] = 1.0
    counts = {"writes": calls, "bytes_written": 512 * calls, "end_written": 512 * calls}
    add_record(made, 0, "/scratch/f", opens=1, write_time=seconds.sum(), **counts)
    starts = np.append(0.0, np.cumsum(seconds)[:-1])
    add_events(made, 0, "/scratch/f", "write", start=starts, duration=seconds, length=512)
    assert [finding for finding in analyze(made).findings if finding.seconds > 0.1] == []


def test_syncs_without_write_calls_are_not_one_per_write() -> None:
    made = make_run(COMPILED)
    add_record(made, 0, "/scratch/f", syncs=1000, sync_time=1.0)
    assert finding(made, "sync-storm").title.endswith("with no write call between them")
