"""Findings on calls that are repeated: locks, opens, views, broadcasts, and the work for them."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import Finding
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_function, add_record, make_job
from tests.python.layer_jobs import copy_blocks, end_definitions, read_matrix, start_programs
from tests.python.repeated_jobs import (
    broadcast_lines,
    copy_again,
    map_again,
    open_for_parts,
    parse_after_close,
    parse_headers,
    parse_log,
    parse_settings,
    parse_to_append,
    read_columns,
    set_views,
)
from tests.python.rule_cases import job

MIB = 1 << 20


def find(made: Job, rule: str) -> Finding:
    (found,) = (finding for finding in analyze(made).findings if finding.rule == rule)
    return found


def rules_of(made: Job) -> list[str]:
    return [finding.rule for finding in analyze(made).findings]


def test_chunks_that_flushes_of_netcdf_write_are_no_fill_values() -> None:
    made = job()
    end_definitions(made, 64 * MIB, 0)
    assert "fill-values" in rules_of(made)
    made.records["flushes"][0], made.records["flush_time"][0] = 5000, 12.0
    assert "fill-values" not in rules_of(made)
    assert find(made, "flush-storm").seconds > 11.0


@pytest.mark.parametrize(("opens", "moves"), [(1, True), (2000, False)])
def test_opens_of_a_netcdf_file_are_no_moves_of_its_header(opens: int, moves: bool) -> None:
    made = job()
    end_definitions(made, 64 * MIB, 64 * MIB)
    made.records["opens"][0] = opens
    assert ("header-moves" in rules_of(made)) == moves


@pytest.mark.parametrize(("size", "small"), [(1000, True), (2 * MIB, False)])
def test_the_bytes_of_a_small_file_include_those_of_a_stream_on_its_descriptor(
    size: int, small: bool
) -> None:
    made = job()
    for number in range(300):
        path = f"/scratch/d/{number}"
        add_record(made, 0, path, opens=1, closes=1, open_time=0.05)
        moved = {"writes": 10, "bytes_written": size, "end_written": size, "write_time": 0.01}
        add_record(made, 0, path, "stdio", **moved)
    assert ("many-small-files" in rules_of(made)) == small
    if small:
        assert "300 small files in /scratch/d, 1.00 kB each" in find(made, "many-small-files").title


def test_files_that_the_program_removes_are_not_packed() -> None:
    made = job()
    for number in range(300):
        times = {"open_time": 0.05, "write_time": 0.01}
        add_record(made, 0, f"/scratch/{number}", opens=1, writes=1, bytes_written=100, **times)
    add_function(made, 0, "unlink", "posix", calls=300, seconds=0.1)
    (fix,) = find(made, "many-small-files").fixes
    assert "keep one temporary file open" in fix.text


def test_temporary_files_of_sort_need_a_larger_buffer() -> None:
    made = job()
    made.programs = ["/usr/bin/sort"]
    for number in range(300):
        add_record(made, 0, f"/scratch/{number}", opens=1, writes=1, open_time=0.05)
    (fix,) = find(made, "many-small-files").fixes
    assert "sort -S" in fix.text


def test_files_that_sed_renames_are_not_many_small_files() -> None:
    made = job()
    made.programs = ["/usr/bin/sed"]
    for number in range(300):
        add_record(made, 0, f"/scratch/sed{number}", opens=1, writes=1, open_time=0.05)
    assert "many-small-files" not in rules_of(made)


@pytest.mark.parametrize(("removals", "locks"), [(1000, True), (0, False)])
def test_only_files_that_are_removed_are_lock_files(removals: int, locks: bool) -> None:
    made = job()
    add_record(made, 0, "/scratch/x", opens=1000, closes=1000, others=1000, open_time=10.0)
    add_function(made, 0, "unlink", "posix", calls=removals, seconds=0.1)
    fix = find(made, "open-close-loop").fixes[-1]
    assert ("Lock a file" in fix.text) == locks


def test_a_rank_that_broadcasts_the_bytes_read_does_not_work_for_all() -> None:
    made = job(2)
    broadcast_lines(made, 10)
    assert rules_of(made) == []


def test_pieces_are_joined_for_writes_only() -> None:
    settings = []
    for kind, moved in (("read", "bytes_read"), ("write", "bytes_written")):
        made = job(2)
        counts = {f"{kind}s": 100, f"{kind}_time": 20.0, moved: 64 * MIB}
        add_record(made, 0, "/scratch/m", "mpiio", **counts)
        settings.append([one.key for one in find(made, "one-rank-for-all").settings])
    assert settings == [[], ["mpiio", "romio_ds_write", "pario_write_behind"]]


def test_small_reads_side_by_side_need_a_view_and_no_exchange() -> None:
    made = job(2)
    read_columns(made, 10_000_000)
    found = find(made, "tiny-independent-calls")
    assert "one MPI_File_read: the library reads windows" in found.fixes[-2].text
    assert "missing-collectives" not in rules_of(made)


def test_small_writes_side_by_side_are_one_finding() -> None:
    made = job(2)
    moved = {"bytes_written": 256_000_000, "end_written": 512_000_000}
    add_record(
        made, [0, 1], "/scratch/m", "mpiio", opens=1, writes=1_000_000, write_time=5.0, **moved
    )
    assert rules_of(made) == ["missing-collectives"]


@pytest.mark.parametrize(
    ("inside", "found"),
    [(50_000, ["missing-collectives"]), (0, ["missing-collectives", "small-writes"])],
)
def test_requests_of_nonblocking_mpi_io_are_part_of_its_finding(
    inside: int, found: list[str]
) -> None:
    made = job(2)
    moved = {"writes": 50_000, "bytes_written": 400_000, "end_written": [400_000, 800_000]}
    requests = {"async_writes": 50_000, "async_requests": 50_000, "async_calls": 50_000}
    add_record(made, [0, 1], "/scratch/m", "mpiio", opens=1, write_time=5.0, **moved)
    below = {**moved, **requests, "async_time": 4.0, "nested_rest": inside}
    add_record(made, [0, 1], "/scratch/m", **below)
    assert rules_of(made) == found
    assert find(made, "missing-collectives").seconds > (8.0 if inside else 4.0)


@pytest.mark.parametrize(("views", "repaired"), [(0, True), (8000, False)])
def test_no_setting_serves_the_views_of_a_program(views: int, repaired: bool) -> None:
    made = job()
    set_views(made, views)
    assert bool(find(made, "tiny-collective-calls").settings) == repaired


def read_blocks(made: Job, seconds: float) -> None:
    """Python reads 100,000 blocks of 4 KiB at random; 20 us lie between them."""
    made.programs = ["/usr/bin/python3"]
    count = 100_000
    moved = {"bytes_read": 4096 * count, "end_read": 8192 * count}
    add_record(made, 0, "/scratch/f", opens=1, reads=count, read_time=seconds * count, **moved)
    start = np.arange(count) * (20e-6 + seconds)
    add_events(made, 0, "/scratch/f", "read", start=start, duration=seconds, length=4096)


@pytest.mark.parametrize(("seconds", "slow"), [(1e-6, False), (20e-6, True)])
def test_calls_at_the_rate_of_large_ones_are_not_made_needlessly(
    seconds: float, slow: bool
) -> None:
    made = job(wall=10.0)
    read_blocks(made, seconds)
    assert ("small-reads" in rules_of(made)) == slow


def test_time_between_calls_that_no_promise_contains_is_named() -> None:
    made = job(wall=10.0)
    read_blocks(made, 20e-6)
    assert "pass between these calls" in find(made, "small-reads").cause
    made.programs = ["/home/user/solver"]
    assert "pass between these calls" not in find(made, "small-reads").cause


@pytest.mark.parametrize(("passes", "named"), [(0, True), (12, False)])
def test_time_between_calls_that_another_finding_claims_is_not_named(
    passes: int, named: bool
) -> None:
    made = job(wall=14.0)
    read_blocks(made, 20e-6)
    if passes:
        parse_log(made, passes)
    assert ("re-read" in rules_of(made)) != named
    assert ("pass between these calls" in find(made, "small-reads").cause) == named


@pytest.mark.system
def test_work_for_calls_takes_longer_where_processes_wait_for_processors() -> None:
    seconds = []
    for queued in (0.0, 6.0):
        made = make_job(1, 10.0, has={"posix", "per_rank", "cpu"})
        copy_blocks(made, 500_000)
        made.processes["run_queue_delay"] = queued * 1e9
        made.processes["cpu_user"], made.processes["cpu_system"] = 4.0, 0.0
        seconds.append(sum(finding.seconds for finding in analyze(made).findings))
    assert seconds[1] > 1.3 * seconds[0]


@pytest.mark.system
def test_files_whose_parsing_takes_longer_than_their_opens_need_no_kept_handles() -> None:
    made = job()
    parse_settings(made, 100_000)
    found = find(made, "open-close-loop")
    assert "opened and parsed" in found.title and "inside the program" in found.why_not
    assert "keep the result" in found.fixes[0].text and not found.settings


def test_parsing_before_a_write_of_the_same_open_is_promised() -> None:
    made = job(wall=21.0)
    parse_to_append(made, 1000, 5e-3)
    found = find(made, "open-close-loop")
    assert found.seconds == pytest.approx(1000 * 5e-3, rel=0.05)
    assert "opened and parsed" in found.title


@pytest.mark.parametrize(
    ("path", "pause", "least", "most"),
    [
        ("/scratch/words.txt", 500e-6, 4.8, 5.2),  # shorter than the usual parsing of 800 us
        ("/scratch/words.txt", 2e-3, 7.7, 8.3),
        ("/scratch/block.bin", 500e-6, 0.0, 0.2),
    ],
)
def test_text_that_is_parsed_after_the_close_is_promised_as_far_as_parsing_takes(
    path: str, pause: float, least: float, most: float
) -> None:
    made = job(wall=22.0)
    parse_after_close(made, 10_000, path, pause)
    found = sum(one.seconds for one in analyze(made).findings if one.rule == "open-close-loop")
    assert least <= found <= most


@pytest.mark.parametrize(("opens", "named"), [(1, True), (50_000, False)])
def test_one_empty_read_of_each_open_finds_the_end_of_the_file(opens: int, named: bool) -> None:
    made = job(wall=10.0)
    counts = {"opens": opens, "reads": 100_000, "zero_reads": 50_000, "read_time": 5.0}
    add_record(made, 0, "/scratch/words", **counts, bytes_read=50_000 * 4096, end_read=4096)
    assert ("empty-reads" in rules_of(made)) == named


def test_files_that_the_kernel_copies_again_are_promised_with_their_copies() -> None:
    made = job(wall=10.0)
    copy_again(made, 150, targets=True)
    found = find(made, "re-read")
    assert found.seconds == pytest.approx(7.45, abs=0.1) and "copied 150 times" in found.title
    assert found.remedy == "copying each file once" and not found.settings
    sent = job(wall=10.0)
    copy_again(sent, 150, targets=False)
    assert rules_of(sent) == []


@pytest.mark.system
def test_work_of_all_ranks_counts_once_along_the_critical_path() -> None:
    made = make_job(2, 6.0)
    parse_settings(made, 100_000, (0, 1))
    meet = {"start": [5.0, 5.1], "duration": [0.9, 0.8], "offset": 0, "flags": 8}
    add_events(made, range(2), "", "communicate", **meet, function="MPI_Barrier")
    assert 1.9 < find(made, "open-close-loop").seconds < 5.1


def test_parsing_after_opens_in_a_loop_is_promised_once() -> None:
    made = job(wall=20.0)
    parse_headers(made, 300, "/scratch/members.zip")
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert found["open-close-loop"] == pytest.approx(3.0, rel=0.05)
    assert found.get("re-read", 0.0) < 0.1


def test_only_passes_over_text_parse_it_again() -> None:
    made = job(wall=20.0)
    parse_log(made, 12, "matrix.bin")
    assert find(made, "re-read").seconds == pytest.approx(1.1, rel=0.05)


def test_numbers_that_are_read_again_are_converted_once() -> None:
    seconds = []
    for passes in (1, 10):
        made = job(wall=20.0)
        read_matrix(made, 300_000)
        made.records["end_read"] //= passes
        made.events["offset"] %= made.records["end_read"][0]
        found = {one.rule: one.seconds for one in analyze(made).findings}
        seconds.append(found["text-input"])
    assert seconds[1] == pytest.approx(seconds[0] / 10, rel=0.05)


@pytest.mark.parametrize(("renames", "renamed"), [(300, True), (3, False)])
def test_files_that_are_renamed_after_each_open_are_new_ones(renames: int, renamed: bool) -> None:
    made = job()
    calls = {"opens": 300, "writes": 300, "others": renames}
    add_record(made, 0, "/scratch/new", **calls, bytes_written=9000, open_time=30.0)
    add_function(made, 0, "rename", "posix", calls=renames, seconds=0.1)
    finding = find(made, "open-close-loop")
    assert ("300 small files made as /scratch/new, then renamed" in finding.title) == renamed
    assert (finding.remedy == "making fewer files") == renamed
    assert bool(finding.settings) != renamed


@pytest.mark.parametrize(("common", "seconds"), [(True, 20.0), (False, 0.0)])
@pytest.mark.system
def test_files_that_all_programs_of_a_storm_open_belong_to_it(common: bool, seconds: float) -> None:
    made = make_job(1, 100.0, has={"posix", "per_rank", "cpu"})
    start_programs(made, 400, 0.002)
    for number in range(1, 401):
        path = f"/scratch/{'index' if common else number}"
        add_record(made, number, path, opens=1, writes=1, bytes_written=100, open_time=0.05)
        add_record(made, number, f"/scratch/objects/{number}", opens=1, open_time=0.01)
    storms = [one for one in analyze(made).findings if one.rule == "process-storm"]
    others = [one for one in analyze(made).findings if one.rule == "many-small-files"]
    assert sum(one.seconds for one in storms) == pytest.approx(seconds, abs=2.5)
    assert sum(one.seconds for one in others) == pytest.approx(24.0 - seconds, abs=0.5)
    text = "Most of them open /scratch/index: 20.0 s in these calls."
    assert [text in one.cause for one in storms] == [True] * common


@pytest.mark.parametrize(
    ("places", "passes", "seconds"),
    [((0, 5000, 9000), 300, 0.6), ((0, 5000, 9000), 50, 0.0), ((0,), 900, 0.0)],
    ids=["header", "few passes", "settings"],
)
def test_work_between_opens_for_the_parts_of_a_header_is_repeated(
    places: tuple[int, ...], passes: int, seconds: float
) -> None:
    made = job(wall=30.0)
    open_for_parts(made, passes, places, 1e-3)
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert found.get("open-close-loop", 0.0) == pytest.approx(seconds, abs=0.15)


@pytest.mark.parametrize(
    ("opens", "calls", "seconds"),
    [
        (400, ("open", "mmap", "close", "munmap"), 2.0),
        (50, ("open", "mmap", "close", "munmap"), 0.0),
        (400, ("open", "mmap", "munmap", "close"), 0.0),
    ],
    ids=["library", "few opens", "used while open"],
)
def test_work_between_a_mapping_and_the_close_of_its_descriptor_sets_it_up(
    opens: int, calls: tuple[str, ...], seconds: float
) -> None:
    made = job(wall=30.0)
    map_again(made, opens, calls)
    found = {one.rule: one.seconds for one in analyze(made).findings}
    assert found.get("open-close-loop", 0.0) == pytest.approx(seconds, abs=0.1)


def test_seeks_of_mpi_files_are_replaced_by_calls_of_mpi() -> None:
    made = job(2, wall=30.0)
    counts = {"reads": 200_000, "seeks": 200_000, "bytes_read": 24 * 200_000, "end_read": 10**7}
    add_record(made, [0, 1], "/scratch/f", "mpiio", **counts, seek_time=5.0, read_time=1.0)
    assert "MPI_File_read_at" in find(made, "seek-storm").fixes[0].text


def test_streams_that_skip_bytes_are_not_sent_to_a_call_for_each_record() -> None:
    made = job(wall=30.0)
    counts = {"reads": 200_000, "seeks": 200_000, "bytes_read": 16 * 200_000, "end_read": 20 * MIB}
    add_record(made, 0, "/scratch/f", "stdio", **counts, forward_reads=199_999, seek_time=5.0)
    (fix,) = find(made, "seek-storm").fixes
    assert "in blocks of some MiB, and skip" in fix.text


@pytest.mark.parametrize(("closes", "named"), [(60_000, True), (1, False)])
def test_a_stream_for_each_read_is_named_as_the_cause_of_seeks(closes: int, named: bool) -> None:
    made = job(wall=30.0)
    add_record(made, 0, "/scratch/f", opens=1, closes=1, seeks=180_000, seek_time=0.5)
    counts = {"reads": 60_000, "seeks": 120_000, "bytes_read": 96 * 60_000, "end_read": 96 * 60_000}
    add_record(made, 0, "/scratch/f", "stdio", **counts, closes=closes, seek_time=1.5)
    found = find(made, "seek-storm")
    assert ("60,000 streams were made" in found.cause) == named
    assert any("np.memmap" in fix.text for fix in found.fixes) == named


@pytest.mark.parametrize(
    ("makes", "queued", "seconds"),
    [(True, 60.0, 4.8), (True, 0.0, 0.0), (False, 60.0, 40.0)],
    ids=["busy processors", "free processors", "never made"],
)
def test_asking_until_another_process_makes_a_file_costs_the_time_of_others(
    makes: bool, queued: float, seconds: float
) -> None:
    made = make_job(2, 100.0, has={"posix", "per_rank", "cpu"})
    calls = {"stats": 1_000_000, "stat_time": 40.0, "failed": 999_999}
    add_record(made, 1, "/scratch/done", **calls)
    add_record(made, 0, "/scratch/done" if makes else "/scratch/other", opens=1)
    made.processes["cpu_user"], made.processes["processors"] = 40.0, 2
    made.processes["run_queue_delay"] = queued * 1e9
    found = {one.rule: one for one in analyze(made).findings}
    assert ("stat-storm" in found) == (seconds > 0)
    if seconds:
        assert found["stat-storm"].seconds == pytest.approx(seconds, rel=0.02)
        assert (found["stat-storm"].remedy == "waiting for files without asking") == makes


@pytest.mark.parametrize("answers", [0, 30_000])
def test_one_rank_that_collects_small_messages_is_named_unless_it_answers(answers: int) -> None:
    made = make_job(2, wall=100.0, has={"posix", "per_rank", "mpi"})
    add_record(made, 0, "/scratch/f", writes=100, bytes_written=MIB, write_time=0.1)
    talk = {"calls": 30_000, "bytes": 2 * MIB}
    add_function(made, 0, "MPI_Mrecv", "p2p", **talk, seconds=40.0)
    add_function(made, 1, "MPI_Send", "p2p", **talk, seconds=60.0)
    if answers:
        add_function(made, 0, "MPI_Send", "p2p", calls=answers, bytes=8 * answers, seconds=1.0)
        assert rules_of(made) == []
        return
    found = find(made, "one-rank-for-all")
    assert found.seconds == pytest.approx(60.0, rel=0.02)
    assert "30,000 messages" in found.cause and "one message" in found.fixes[0].text
