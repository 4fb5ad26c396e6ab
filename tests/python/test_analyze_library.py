"""The words of findings about MPI-IO, files and names: cause and repair fit the calls."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.cells import WRITE
from pario.see.analyze.facts import Facts, compute_once
from pario.see.analyze.ledger import Claim
from pario.see.analyze.model import Contention, Finding
from pario.see.analyze.rules.base import pace
from pario.see.analyze.split import Times
from pario.see.report.words import is_contended
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_filesystem, add_function, add_record, make_job
from tests.python.rule_cases import COUNTERS, KIB, MIB, job


def find(made: Job, rule: str) -> Finding:
    return next(one for one in analyze(made).findings if one.rule == rule)


def write_together(calls: int, asked: int, below: tuple[int, int], **own: float) -> Job:
    """Return the collective writes of two ranks of a host; ``below``: the system writes and bytes
    of each."""
    made = make_job(2, 100.0, hosts=1, has=COUNTERS)
    add_filesystem(made, "/scratch", "ext4", 4096, network=False)
    counts = {"writes": calls, "bytes_written": asked, "write_time": 20.0} | own
    add_record(made, range(2), "/scratch/m", "mpiio", opens=1, **counts)
    writes, moved = below
    counts = {"writes": writes, "nested_writes": writes, "bytes_written": moved}
    add_record(made, range(2), "/scratch/m", write_time=1.0, nested_write_time=1.0, **counts)
    return made


def test_collective_calls_of_ranks_that_need_no_exchange_are_told_to_write_alone() -> None:
    made = write_together(500, 100 * MIB, (500, 100 * MIB), collective_writes=500)
    finding = find(made, "mpi-library-time")
    assert "Each rank writes its own 210 kB of a call itself" in finding.cause
    assert "MPI_File_write_at instead of MPI_File_write_at_all" in finding.fixes[1].text


def test_collective_calls_of_ranks_that_exchange_pieces_are_told_to_make_them_large() -> None:
    made = write_together(1, 100 * MIB, (50, 100 * MIB), collective_writes=1)
    finding = find(made, "mpi-library-time")
    assert "sends the pieces of all ranks to its aggregators" in finding.cause
    assert finding.fixes[-1].text.startswith("Let each rank own whole rows or planes")


def test_collective_calls_of_ranks_that_wait_for_processors_are_not_blamed() -> None:
    made = write_together(1, 100 * MIB, (50, 100 * MIB), collective_writes=1)
    made.processes["run_queue_delay"] = int(70e9)
    assert not analyze(made).findings


def test_a_library_that_writes_its_own_records_alone_does_not_hide_collective_calls() -> None:
    """HDF5 writes its metadata with more independent calls than the data's one collective call."""
    together = {"collective_writes": 1, "collective_write_time": 19.9}
    made = write_together(80, 100 * MIB, (200, 100 * MIB), **together)
    assert find(made, "mpi-library-time").title.startswith("collective MPI-IO writes")
    assert "missing-collectives" not in {one.rule for one in analyze(made).findings}


@pytest.mark.parametrize(
    ("in_a_row", "cause"),
    [(0, "The ranks' small pieces lie side by side"), (9_999, "in small pieces, one after the")],
)
def test_independent_pieces_are_joined_across_ranks_or_within_one(
    in_a_row: int, cause: str
) -> None:
    made = job(2)
    counts = {"writes": 10_000, "consecutive_writes": in_a_row, "bytes_written": 10_000 * KIB}
    add_record(made, range(2), "/scratch/s", "mpiio", opens=1, write_time=12.0, **counts)
    finding = find(made, "missing-collectives")
    assert cause in finding.cause
    assert ("Collect the values of a rank" in finding.fixes[1].text) == bool(in_a_row)


@pytest.mark.parametrize(
    ("calls", "effect"),
    [("write", "the ranks of a node share one set of buffers"), ("read", "the next small pieces")],
)
def test_the_setting_for_tiny_collective_calls_fits_their_direction(
    calls: str, effect: str
) -> None:
    made = job(2)
    moved = {"write": "bytes_written", "read": "bytes_read"}[calls]
    counts = {f"{calls}s": 2000, f"collective_{calls}s": 2000, moved: 2000 * KIB}
    add_record(made, range(2), "/scratch/m", "mpiio", **counts, **{f"{calls}_time": 20.0})
    assert effect in find(made, "tiny-collective-calls").fixes[0].text


@pytest.mark.parametrize("direct", [0, 100_000])
def test_small_direct_writes_are_not_told_to_use_a_buffer(direct: int) -> None:
    made = job(1)
    counts = {"writes": 100_000, "bytes_written": 100_000 * 4 * KIB, "direct_calls": direct}
    add_record(made, 0, "/scratch/f", opens=1, write_time=20.0, **counts)
    finding = find(made, "small-writes")
    assert bool(finding.settings) != bool(direct)
    assert ("without O_DIRECT" in finding.fixes[-1].text) == bool(direct)


@pytest.mark.parametrize("requests", [0, 100_000])
def test_asynchronous_requests_have_no_setting(requests: int) -> None:
    made = job(1)
    counts = {"writes": 100_000, "bytes_written": 100_000 * 64, "async_requests": requests}
    add_record(made, 0, "/scratch/f", opens=1, write_time=20.0, **counts)
    finding = find(made, "small-writes")
    assert bool(finding.settings) != bool(requests)
    assert ("pass by the buffers" in finding.why_not) == bool(requests)


@pytest.mark.parametrize(
    ("program", "text"),
    [("/usr/bin/tar", "Give the program larger blocks: tar -b 2048."), ("/home/me/tar", "Collect")],
)
def test_tools_of_the_system_are_repaired_by_their_options(program: str, text: str) -> None:
    made = job(1)
    made.programs = [program]
    counts = {"writes": 200_000, "bytes_written": 200_000 * 512, "write_time": 20.0}
    add_record(made, 0, "/scratch/a.tar", opens=1, **counts)
    assert find(made, "small-writes").fixes[-1].text.startswith(text)


@pytest.mark.parametrize(
    ("program", "text"), [("/usr/bin/cut", "Start the program without"), ("/home/me/a", "setvbuf")]
)
def test_tools_of_the_system_get_their_buffers_back_by_their_options(
    program: str, text: str
) -> None:
    made = job(1)
    made.programs = [program]
    counts = {"writes": 200_000, "bytes_written": 200_000 * 12, "write_time": 20.0}
    add_record(made, 0, "/scratch/a.txt", "stdio", buffer_mode=1, **counts)
    (fix,) = [fix for fix in find(made, "stdio-buffer").fixes if fix.kind == "code"][:1]
    assert fix.text.startswith(text)


def test_files_that_cost_a_sync_each_are_told_to_synchronise_once() -> None:
    made = job(1)
    for number in range(300):
        counts = {"opens": 1, "syncs": 1, "writes": 1, "bytes_written": 2000, "end_written": 2000}
        times = {"open_time": 0.01, "sync_time": 0.05, "write_time": 1e-4}
        add_record(made, 0, f"/scratch/q/{number}", **counts, **times)
    finding = find(made, "many-small-files")
    assert finding.cause == "fsync of each file takes 0.05 s of the 0.06 s per file."
    assert finding.fixes[0].text.startswith("Synchronise once, after the last file")


@pytest.mark.parametrize(
    ("program", "moved", "found"),
    [
        ("/usr/bin/tar", "read", False),
        ("/usr/bin/tar", "written", True),
        ("/usr/bin/cp", "read", True),
        ("/home/user/tar", "read", True),
    ],
)
def test_files_that_an_archiver_packs_need_no_packing(
    program: str, moved: str, found: bool
) -> None:
    made = job(1)
    made.programs = [program]
    for number in range(300):
        counts = {"opens": 1, "open_time": 0.01, f"bytes_{moved}": 2000}
        add_record(made, 0, f"/scratch/q/{number}", **counts)
    assert ("many-small-files" in {one.rule for one in analyze(made).findings}) == found


def write_steps(made: Job, files: int, each: float) -> None:
    for number in range(files):
        opened = {"opens": 1, "collective_opens": 1, "open_time": each, "end_written": 80_000}
        moved = {"writes": 1, "bytes_written": 40_000, "write_time": 1e-4}
        add_record(made, range(2), f"/scratch/step-{number}", "mpiio", **opened, **moved)


def test_some_files_that_cost_a_part_of_the_run_to_open_are_small_files() -> None:
    made = job(2)
    write_steps(made, 60, 0.5)
    finding = find(made, "many-small-files")
    assert finding.title.startswith("60 small files in /scratch")
    assert finding.seconds == pytest.approx(30, rel=0.01)
    assert "every MPI_File_open and MPI_File_close is a meeting" in finding.fixes[0].text


@pytest.mark.parametrize(("files", "each"), [(60, 0.01), (20, 0.5)])
def test_few_files_or_cheap_opens_are_no_small_files(files: int, each: float) -> None:
    made = job(2)
    write_steps(made, files, each)
    assert "many-small-files" not in {one.rule for one in analyze(made).findings}


def change_names(made: Job, column: str, functions: dict[str, tuple[int, float]]) -> Finding:
    names = [f"/scratch/q/{number}" for number in range(1000)]
    add_record(made, 0, names, **{f"{column}s": 3, f"{column}_time": 0.02})
    for name, (calls, seconds) in functions.items():
        add_function(made, 0, name, "posix", calls=calls, seconds=seconds)
    return find(made, "directory-storm")


def test_removing_names_is_not_told_to_list_the_directory() -> None:
    removed = change_names(job(), "other", {"rmdir": (1000, 18.0), "rename": (2000, 2.0)})
    assert removed.title.endswith("; 1,000 rmdir calls take 90 % of the time")
    assert removed.fixes[0].text.startswith("Make, rename and remove fewer names")
    asked = change_names(job(), "stat", {"stat": (3000, 20.0)})
    assert asked.title.endswith("one name at a time")
    assert asked.fixes[0].text.startswith("List the directory once")


def test_a_rate_is_not_compared_with_itself() -> None:
    made = job(1)
    add_record(made, 0, "/scratch/f", writes=1000, bytes_written=512_000_000, write_time=10.0)
    claim = Claim(np.array([0]), WRITE, np.array([5.0]))
    sentence = pace(Facts(Times(made)), [claim])
    assert sentence == "These writes run at 51.2 MB/s, and none of this run were faster."


def test_parts_of_a_file_without_stripes_are_no_overloaded_targets() -> None:
    def make(unit: str, shared: int = 0) -> Contention:
        return Contention(
            path="/scratch/f",
            unit=unit,
            targets=("a", "b", "c"),
            ranks=("rank 0",),
            bytes=((10, 1, 1),),
            ranks_per_target=(1, 1, 1),
            shared_units=shared,
            note="",
        )

    assert not is_contended(make("80 KiB region"))
    assert is_contended(make("80 KiB region", 1)) and is_contended(make("OST"))


@pytest.mark.parametrize("function, told", [("chmod", True), ("fcntl64", False)])
def test_calls_that_change_nothing_are_no_storm_of_changes(function: str, told: bool) -> None:
    made = job()
    add_record(made, 0, "/scratch/f", opens=1, others=100_000, other_time=10.0)
    add_events(made, 0, "/scratch/f", "other", start=np.arange(100), function=function)
    assert ("attribute-storm" in {one.rule for one in analyze(made).findings}) == told


@pytest.mark.parametrize("failed, words", [(99_999, "fails, because"), (0, "changes the metadata")])
def test_directories_that_exist_are_not_changed_by_mkdir(failed: int, words: str) -> None:
    made = job()
    add_record(made, 0, "/scratch/d", others=100_000, other_time=10.0, failed=failed)
    add_events(made, 0, "/scratch/d", "other", start=np.arange(100), function="mkdir")
    (finding,) = (one for one in analyze(made).findings if one.rule == "attribute-storm")
    assert words in finding.cause


def test_changes_of_small_files_are_no_cost_of_opening_them() -> None:
    made = job()
    files = [f"/scratch/d/{number}" for number in range(300)]
    add_record(made, 0, files, opens=1, open_time=1e-2, others=1000, other_time=0.1)
    add_events(made, 0, files[0], "other", start=np.arange(100), function="setxattr")
    first, second = analyze(made).findings
    assert (first.rule, first.seconds) == ("attribute-storm", pytest.approx(30.0, rel=0.01))
    assert (second.rule, second.seconds) == ("many-small-files", pytest.approx(3.12, abs=0.02))


@pytest.mark.parametrize("opens, seconds", [(0, 25.0), (1, 20.0)])
def test_links_are_removed_with_their_snapshots(opens: int, seconds: float) -> None:
    made = job()
    files = [f"/scratch/state/{number}" for number in range(100)]
    add_record(made, 0, files, others=1000, other_time=0.2)
    add_events(made, 0, files[0], "other", start=np.arange(100), function="link")
    snapshots = [f"/scratch/snap{number}/state" for number in range(100)]
    add_record(made, 0, snapshots, opens=opens, others=1, other_time=0.05)
    (finding,) = (one for one in analyze(made).findings if one.rule == "attribute-storm")
    assert finding.seconds == pytest.approx(seconds, rel=0.01)
    assert "one more name" in finding.cause


def test_answers_that_several_rules_need_are_computed_once() -> None:
    asked: list[int] = []

    @compute_once
    def add_one(facts: Facts, number: int) -> int:
        asked.append(number)
        return number + 1

    first, second = Facts(Times(job())), Facts(Times(job()))
    assert [add_one(first, 1), add_one(first, 1), add_one(first, 2), add_one(second, 1)] == [
        *(2, 2, 3, 2)
    ]
    assert asked == [1, 2, 1]


@pytest.mark.parametrize("through_mpi", [False, True])
def test_locks_below_mpi_io_are_those_of_its_library(through_mpi: bool) -> None:
    made = make_job(1, wall=20)
    add_record(
        made,
        0,
        "/scratch/log",
        opens=1,
        writes=100_000,
        bytes_written=100_000 * 4096,
        write_time=1.0,
        locks=2_000_000,
        lock_time=4.0,
    )
    if through_mpi:
        add_record(made, 0, "/scratch/log", "mpiio", opens=1, writes=100_000, write_time=6.0)
    (finding,) = (one for one in analyze(made).findings if one.rule == "lock-storm")
    assert ("MPI_File_set_atomicity" in finding.fixes[0].text) is through_mpi
