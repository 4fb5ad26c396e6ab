"""Time in storage inside MPI-IO calls, in logs that keep sums of all ranks, such as Darshan's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import Finding
from pario.see.tables.model import Job
from tests.python.jobs import add_record, set_layout
from tests.python.rule_cases import GIB, KIB, MIB, job

RANKS = 64


def add_sum(made: Job, layer: str, slowest: float, **counts: float) -> None:
    """Adds the row of a file that sums all ranks; ``slowest``: the seconds of the slowest."""
    facts = {"ranks": RANKS, "slowest_rank": 0, "slowest_rank_time": slowest}
    add_record(made, -1, "/scratch/big", layer, **facts, **counts)


def write_by_aggregators(made: Job, *, reads: int = 0, storage: float = 20.0) -> None:
    """Adds collective writes of 80 seconds on all ranks, done by 4 aggregators."""
    made.hosts = []
    written = 4 * GIB if reads else GIB
    counts = {"writes": 640, "collective_writes": 640, "bytes_written": GIB}
    add_sum(made, "mpiio", 80.0, write_time=80.0 * RANKS, **counts)
    times = {"read_time": storage * 2, "write_time": storage * 2} if reads else {}
    times = times or {"write_time": storage * 4}
    nested = {f"nested_{name}": value for name, value in times.items()}
    counts = {"writes": 640, "nested_writes": 640, "reads": reads, "nested_reads": reads}
    counts |= {"bytes_written": written, "end_written": written}
    add_sum(made, "posix", storage, **counts, **times, **nested)


def first(fill: Callable[[Job], None], kind: str = "lustre") -> Finding:
    made = job(RANKS, kind=kind)
    fill(made)
    return analyze(made).findings[0]


def test_windows_of_holes_are_found_where_the_log_sums_ranks() -> None:
    finding = first(lambda made: write_by_aggregators(made, reads=640, storage=60.0))
    assert (finding.rule, finding.seconds) == (
        "hole-read-modify-write",
        pytest.approx(50.9, abs=0.5),
    )
    assert "moved to write 1.07 GB" in finding.title


def test_exchange_is_the_time_beyond_that_of_the_slowest_aggregator() -> None:
    finding = first(lambda made: write_by_aggregators(made, storage=20.0))
    assert (finding.rule, finding.seconds) == ("collective-exchange", pytest.approx(60.0, abs=1))
    assert "or waiting for other ranks" in finding.title


def test_stripes_save_time_in_storage_only() -> None:
    def fill(made: Job) -> None:
        write_by_aggregators(made, storage=60.0)
        set_layout(made, "/scratch/big", MIB, [5])

    finding = first(fill)
    assert (finding.rule, finding.seconds) == ("one-stripe", pytest.approx(60.0, rel=0.2))


def test_a_file_on_all_targets_is_promised_no_more_of_them() -> None:
    def fill(made: Job) -> None:
        made.hosts = ["node0", "node1"]
        counts = {"writes": 640, "bytes_written": 64 * GIB, "end_written": 64 * GIB}
        add_sum(made, "posix", 80.0, write_time=80.0 * RANKS, **counts)

    few, all_targets = job(RANKS, kind="lustre"), job(RANKS, kind="lustre")
    for made, targets in ((few, range(5, 13)), (all_targets, range(8))):
        fill(made)
        set_layout(made, "/scratch/big", MIB, targets)
    assert [one.rule for one in analyze(few).findings] == ["one-stripe"]
    assert analyze(all_targets).findings == ()


def test_reads_of_a_row_are_not_storage_of_its_writes() -> None:
    """Locks around whole writes, as on NFS."""

    def fill(made: Job) -> None:
        made.hosts = ["node0"]
        counts = {"reads": 40, "writes": 40, "bytes_read": GIB, "bytes_written": GIB}
        times = {"read_time": 30.0, "write_time": 40.0}
        add_record(made, range(RANKS), "/scratch/big", "mpiio", **counts, **times)
        nested = {"nested_reads": 40, "nested_read_time": 30.0}
        nested |= {"nested_writes": 40, "nested_write_time": 1.0, "write_time": 1.0}
        add_record(made, range(RANKS), "/scratch/big", read_time=30.0, **counts, **nested)

    finding = first(fill, "nfs")
    assert (finding.rule, finding.seconds) == ("mpi-library-time", pytest.approx(38.5, abs=1))
    assert "98 % of their time" in finding.title
    assert "one call on storage for each of its own" in finding.cause


def test_small_unaligned_pieces_of_collective_writes_share_blocks() -> None:
    def fill(made: Job) -> None:
        counts = {"writes": 100, "collective_writes": 100, "bytes_written": 100 * 48 * KIB}
        add_record(made, range(RANKS), "/scratch/big", "mpiio", write_time=42.0, **counts)
        nested = {"nested_writes": 100, "nested_write_time": 40.0, "unaligned_writes": 100}
        counts = {"writes": 100, "bytes_written": 100 * 48 * KIB, "block_size": 16 * MIB}
        add_record(made, range(RANKS), "/scratch/big", write_time=40.0, **counts, **nested)

    finding = first(fill, "gpfs")
    assert (finding.rule, finding.seconds) == ("unaligned-shared-writes", pytest.approx(20, abs=1))
    assert any("romio_cb_write=enable" in fix.text for fix in finding.fixes)
