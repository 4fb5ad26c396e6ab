"""The tables of an analysis: functions, files, file systems, sizes, timeline, phases,
contention."""

import numpy as np
import pytest

from pario.see.analyze import analyze
from tests.python.jobs import (
    add_events,
    add_filesystem,
    add_function,
    add_hint,
    add_record,
    make_job,
    set_layout,
)

MIB = 1 << 20


def test_function_table_shows_imbalance_and_waiting_apart() -> None:
    job = make_job(4, wall=10.0)
    add_function(job, range(4), "MPI_Barrier", "collective", calls=1, seconds=[0.0, 3.0, 3.0, 6.0])
    add_events(
        job,
        range(4),
        "",
        "communicate",
        start=[6.0, 3.0, 3.0, 0.0],
        duration=[0.0, 3.0, 3.0, 6.0],
        offset=0,
        flags=8,
    )
    (row,) = (row for row in analyze(job).functions if row.category != "waiting")
    assert (row.name, row.calls, row.seconds, row.slowest_rank) == ("MPI_Barrier", 4, 12.0, 3)
    assert (row.imbalance, row.waiting, row.share) == (
        pytest.approx(0.5),
        pytest.approx(12.0),
        pytest.approx(0.3),
    )


@pytest.mark.parametrize("name", ["copy_file_range", "sendfile64"])
def test_a_copy_within_the_kernel_is_one_call_in_the_table(name: str) -> None:
    made = make_job(1, 4.0)
    source = f"{name.removesuffix('64')}_source"
    for each in (source, name):
        add_function(made, 0, each, "posix", thread=0, calls=100, seconds=1.0, bytes=51_200)
    (row,) = analyze(made).functions
    assert (row.name, row.calls, row.bytes) == (name, 100, 51_200)
    assert (row.seconds, row.share) == (2.0, 0.5)


def test_the_source_of_a_copy_to_a_socket_keeps_its_row() -> None:
    made = make_job(1, 4.0)
    add_function(made, 0, "splice_source", "posix", calls=100, seconds=1.0, bytes=51_200)
    assert [(row.name, row.calls) for row in analyze(made).functions] == [("splice_source", 100)]


def test_function_table_comes_from_counters_where_the_log_has_no_functions() -> None:
    job = make_job(2, wall=10.0, has={"posix"})
    add_record(
        job,
        range(2),
        "/f",
        writes=5,
        write_time=[1.0, 3.0],
        bytes_written=100,
        opens=1,
        open_time=0.5,
    )
    rows = {row.name: row for row in analyze(job).functions}
    assert set(rows) == {"POSIX write", "POSIX open"}
    assert (
        rows["POSIX write"].calls,
        rows["POSIX write"].seconds,
        rows["POSIX write"].slowest_rank,
    ) == (10, 4.0, 1)


def test_file_table_names_slowest_and_fastest_rank() -> None:
    job = make_job(3, wall=10.0)
    add_filesystem(job, "/scratch", "lustre")
    add_record(
        job,
        range(3),
        "/scratch/shared.dat",
        opens=1,
        writes=10,
        bytes_written=MIB,
        write_time=[2.0, 5.0, 1.0],
    )
    (row,) = analyze(job).files
    assert (
        row.ranks,
        row.slowest_rank,
        row.slowest_seconds,
        row.fastest_rank,
        row.fastest_seconds,
    ) == (3, 1, 5.0, 2, 1.0)
    assert (row.filesystem, row.bytes_written, row.writes) == ("lustre", 3 * MIB, 30)


def test_file_table_counts_listings_as_metadata() -> None:
    made = make_job(1)
    add_record(made, 0, "/scratch/items", opens=1, lists=3, stats=2, list_time=0.1)
    (row,) = analyze(made).files
    assert (row.metadata, row.calls) == (5, 6)


def test_bytes_below_mpi_io_are_not_counted_again() -> None:
    job = make_job(2, wall=10.0)
    add_record(job, range(2), "/s.h5", layer="mpiio", writes=1, bytes_written=100, write_time=1.0)
    add_record(
        job,
        0,
        "/s.h5",
        writes=1,
        bytes_written=4096,
        nested_writes=1,
        write_time=0.5,
        nested_write_time=0.5,
    )
    analysis = analyze(job)
    assert analysis.files[0].bytes_written == 200
    assert analysis.job.bytes_written == 4096
    assert analysis.files[0].write_seconds == pytest.approx(2.0)


def test_filesystems_and_sizes_sum_their_files() -> None:
    job = make_job(2, wall=10.0)
    add_filesystem(job, "/scratch", "lustre")
    add_record(
        job,
        range(2),
        "/scratch/a",
        writes=3,
        bytes_written=1500,
        write_time=1.0,
        write_sizes={500: 3},
    )
    analysis = analyze(job)
    (row,) = analysis.filesystems
    assert (row.type, row.mount, row.files, row.bytes_written, row.calls, row.seconds) == (
        "lustre",
        "/scratch",
        1,
        3000,
        6,
        2.0,
    )
    assert analysis.sizes[0].writes == (0, 6, 0, 0, 0, 0, 0, 0, 0, 0)


def test_hints_pair_requested_with_effective_values() -> None:
    job = make_job(2)
    add_hint(job, "/a.h5", "cb_nodes", "8", "requested")
    add_hint(job, "/a.h5", "cb_nodes", "2", "effective")
    assert analyze(job).hints == (("/a.h5", "cb_nodes", "8", "2"),)


def test_timeline_from_events_is_exact() -> None:
    job = make_job(2, wall=300.0)
    add_record(job, 1, "/f", writes=1, write_time=150.0, bytes_written=1500)
    add_events(job, 1, "/f", "write", start=150.0, duration=150.0, length=1500)
    timeline = analyze(job).timeline
    assert timeline is not None and timeline.exact
    assert timeline.labels == ("rank 0", "rank 1")
    assert np.sum(timeline.write_share[0]) == 0
    assert np.array(timeline.write_share[1]) == pytest.approx(np.repeat([0.0, 1.0], 150), abs=1e-3)
    assert sum(timeline.bytes_written) == pytest.approx(1500, rel=1e-3)


def test_timeline_from_counters_is_marked() -> None:
    job = make_job(1, wall=100.0, has={"posix"})
    add_record(job, 0, "/f", writes=10, write_time=5.0, first_write=50.0, last_write=60.0)
    timeline = analyze(job).timeline
    assert timeline is not None and not timeline.exact
    assert sum(timeline.write_share[0]) * timeline.bin_seconds == pytest.approx(5.0, rel=1e-2)


def test_timeline_groups_many_ranks() -> None:
    job = make_job(1000, wall=10.0)
    add_record(job, range(1000), "/f", writes=1, write_time=1.0, first_write=1.0, last_write=2.0)
    add_events(job, range(1000), "/f", "write", start=1.0, duration=1.0)
    timeline = analyze(job).timeline
    assert timeline is not None
    assert len(timeline.labels) <= 64
    assert timeline.labels[0] == "ranks 0-15"
    assert max(timeline.write_share[0]) == pytest.approx(1.0)


def test_phases_are_parted_by_pauses_of_all_ranks() -> None:
    job = make_job(2, wall=100.0)
    starts = np.concatenate([np.arange(10, 15), np.arange(60, 65)])
    add_record(job, range(2), "/f", writes=10, write_time=5.0, bytes_written=1000)
    for rank in range(2):
        add_events(job, rank, "/f", "write", start=starts, duration=0.5, length=100)
    phases = analyze(job).phases
    assert [(phase.start, phase.end, phase.kind, phase.bytes, phase.ranks) for phase in phases] == [
        (10, 14.5, "write", 1000, 2),
        (60, 64.5, "write", 1000, 2),
    ]


def test_contention_map_of_an_unaligned_shared_file() -> None:
    """Four ranks write 0.5, 2, 1 and 1 MiB one after the other into a file on 4 OSTs with stripes
    of 1 MiB: 3, 1, 2, 2 ranks per OST."""
    job = make_job(4)
    sizes = np.array([0.5, 2.0, 1.0, 1.0]) * MIB
    offsets = np.cumsum(sizes) - sizes
    add_record(
        job, range(4), "/scratch/shared", writes=1, bytes_written=sizes.astype(int), write_time=0.1
    )
    add_events(
        job,
        range(4),
        "/scratch/shared",
        "write",
        start=1.0,
        duration=0.1,
        offset=offsets.astype(int),
        length=sizes.astype(int),
    )
    set_layout(job, "/scratch/shared", MIB, [0, 1, 2, 3])
    (found,) = analyze(job).contention
    assert found.targets == ("OST 0", "OST 1", "OST 2", "OST 3")
    assert found.ranks_per_target == (3, 1, 2, 2)
    assert found.shared_units == 3
    assert np.sum(found.bytes, axis=1).tolist() == sizes.tolist()


def test_contention_map_without_stripes_uses_blocks() -> None:
    job = make_job(2)
    add_record(
        job, range(2), "/shared", writes=1, bytes_written=6144, write_time=0.1, block_size=4096
    )
    add_events(
        job, range(2), "/shared", "write", start=1.0, duration=0.1, offset=[0, 6144], length=6144
    )
    (found,) = analyze(job).contention
    assert found.unit == "4 KiB block"
    assert found.ranks_per_target == (1, 2, 1)
    assert found.shared_units == 1


def test_merged_events_keep_their_seconds_and_bytes() -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/f", writes=1000, write_time=1.0, bytes_written=5000)
    add_events(job, 0, "/f", "write", start=2.0, duration=1.0, length=5000, count=1000)
    job.events["end"] = 6.0
    timeline = analyze(job).timeline
    assert timeline is not None
    assert sum(timeline.write_share[0]) * timeline.bin_seconds == pytest.approx(1.0, rel=1e-2)
    assert sum(timeline.bytes_written) == pytest.approx(5000, rel=1e-2)


def test_files_beyond_the_limit_of_a_process_count_in_the_job() -> None:
    job = make_job(1, wall=10.0)
    for number in range(3):
        add_record(job, 0, f"/out/{number}", opens=1, writes=1, bytes_written=10)
    add_record(job, 0, "/out/*", opens=197, writes=197, bytes_written=1970)
    job.files["folded"] = [path.endswith("*") for path in job.paths]
    job.processes["files_folded"] = 197
    assert analyze(job).job.files == 200


def test_small_files_are_counted_in_full_even_if_most_took_hardly_any_time() -> None:
    made = make_job(1, wall=10.0)
    seconds = np.where(np.arange(1000) < 3, 2.0, 1e-6)
    add_record(made, 0, [f"/out/{number}" for number in range(1000)], opens=1, open_time=seconds)
    (finding,) = analyze(made).findings
    assert finding.rule == "many-small-files"
    assert finding.title.startswith("1,000 small files in /out")


def test_small_files_that_every_rank_reads_are_read_once_and_broadcast() -> None:
    made = make_job(4, wall=10.0)
    counts = {"opens": 1, "reads": 1, "bytes_read": 2000, "end_read": 2000}
    paths = [f"/in/{number}" for number in range(1000)]
    add_record(made, range(4), paths, **counts, open_time=4e-3, read_time=1e-3)
    (finding,) = analyze(made).findings
    assert finding.rule == "all-ranks-read-one-file"
    assert finding.seconds == pytest.approx(3.75, rel=0.05)
