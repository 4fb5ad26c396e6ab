"""Every rule fires on its own job, states the seconds, and is silent on its control."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import FileSetting
from pario.see.analyze.rules import RULES
from pario.see.tables.model import Job, LoaderUse
from tests.python import layer_jobs as layers
from tests.python.jobs import (
    add_events,
    add_filesystem,
    add_function,
    add_hint,
    add_record,
    make_job,
    set_layout,
)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COUNTERS = {
    "posix",
    "stdio",
    "mpiio",
    "per_rank",
    "layout",
    "alignment",
    "sampled",
    "hints",
}  # the tables of a log without events


def job(ranks: int = 1, wall: float = 100.0, kind: str = "ext4") -> Job:
    made = make_job(ranks, wall, hosts=min(ranks, 2), has=COUNTERS)
    add_filesystem(made, "/scratch", kind, 4096, network=kind != "ext4")
    return made


@dataclass
class Case:
    """A job on which a rule fires, the least and most seconds it may claim, and a control on which
    it must stay silent."""

    bad: Callable[[Job], None]
    control: Callable[[Job], None]
    seconds: tuple[float, float]
    ranks: int = 1
    kind: str = "ext4"


def small(word: str) -> Case:
    def make(made: Job, calls: int, size: int, seconds: float) -> None:
        counts = {
            f"{word}s": calls,
            f"{word}_time": seconds,
            {"write": "bytes_written", "read": "bytes_read"}[word]: calls * size,
        }
        add_record(
            made, 0, "/scratch/f", opens=1, end_read=calls * size if word == "read" else 0, **counts
        )

    return Case(
        lambda j: make(j, 1_000_000, 512, 20.0), lambda j: make(j, 1000, 512 * KIB, 0.9), (19, 20)
    )


def sync(made: Job, syncs: int, seconds: float) -> None:
    add_record(
        made,
        0,
        "/scratch/f",
        writes=1000,
        bytes_written=16 * MIB,
        write_time=0.1,
        syncs=syncs,
        sync_time=seconds,
    )


def flush(made: Job, flushes: int, seconds: float) -> None:
    counts = {"writes": 5000, "bytes_written": 500_000, "write_time": 0.01, "buffer_size": 4096}
    add_record(made, 0, "/scratch/log", "stdio", flushes=flushes, flush_time=seconds, **counts)


def open_and_close(made: Job, opens: int) -> None:
    times = {"open_time": opens * 1e-3, "close_time": opens * 1e-3}
    add_record(
        made,
        0,
        "/scratch/log",
        opens=opens,
        closes=opens,
        writes=100,
        bytes_written=100_000,
        write_time=0.01,
        **times,
    )


def small_files(made: Job, files: int) -> None:
    for number in range(files):
        seconds = 30.0 / files
        add_record(
            made,
            0,
            f"/scratch/d/{number}",
            opens=1,
            open_time=seconds,
            writes=1,
            bytes_written=2000,
            write_time=1e-5,
            end_written=2000,
        )


def stats(made: Job, calls: int) -> None:
    add_record(made, 0, "/scratch/f", stats=calls, stat_time=calls * 1e-4)


def queue_opens(made: Job, last: float) -> None:
    add_record(
        made,
        range(16),
        "/scratch/f",
        opens=1,
        open_time=np.linspace(0.5, last, 16),
        writes=1,
        bytes_written=1000,
        write_time=0.01,
    )


def all_read(made: Job, readers: int) -> None:
    size = 16 * MIB
    add_record(
        made,
        range(readers),
        "/scratch/table",
        opens=1,
        reads=16,
        bytes_read=size,
        end_read=size,
        read_time=8.0 * readers / 8,
    )


def one_rank(made: Job, writers: int) -> None:
    size = 800 * MIB // writers
    add_record(
        made,
        range(writers),
        "/scratch/out",
        opens=1,
        writes=size // MIB,
        bytes_written=size,
        write_time=16.0 / writers,
    )


def straggler(made: Job, slowest: float) -> None:
    times = np.full(8, 5.0)
    times[3] = slowest
    for rank in range(8):
        add_record(
            made,
            rank,
            f"/scratch/out.{rank}",
            opens=1,
            writes=100,
            bytes_written=100 * MIB,
            write_time=times[rank],
        )


def reread(made: Job, times: int) -> None:
    add_record(
        made,
        0,
        "/scratch/t",
        opens=1,
        reads=32 * times,
        bytes_read=32 * MIB * times,
        end_read=32 * MIB,
        read_time=0.5 * times,
    )


def seeks(made: Job, seeks: int, reads: int) -> None:
    times = {"seek_time": seeks * 1e-6, "read_time": reads * 5e-6 + 0.02}
    add_record(
        made,
        0,
        "/scratch/r",
        opens=1,
        seeks=seeks,
        reads=reads,
        bytes_read=16 * MIB,
        end_read=16 * MIB,
        **times,
    )


def empty(made: Job, empty: int) -> None:
    add_record(
        made,
        0,
        "/scratch/fifo.dat",
        opens=1,
        reads=empty + 100,
        zero_reads=empty,
        bytes_read=100 * KIB,
        read_time=(empty + 100) * 1e-5,
    )


def write_stream(made: Job, size: int, mode: int, seconds: float) -> None:
    counts = {
        "writes": 500_000,
        "bytes_written": 50_000_000,
        "buffer_size": size,
        "buffer_mode": mode,
    }
    add_record(made, 0, "/scratch/s", "stdio", opens=1, write_time=seconds, **counts)


def values(made: Job, calls: int) -> None:
    add_record(
        made,
        0,
        "/scratch/s",
        "stdio",
        opens=1,
        writes=calls,
        bytes_written=80_000_000,
        write_time=3.0 if calls > 1000 else 0.1,
        buffer_size=4096,
    )


def holes(made: Job, sieving: bool) -> None:
    add_record(
        made,
        range(2),
        "/scratch/h",
        "mpiio",
        opens=1,
        writes=20,
        bytes_written=5 * MIB,
        write_time=10.0,
    )
    moved = (
        {
            "reads": 160,
            "nested_reads": 160,
            "bytes_read": 640 * MIB,
            "nested_read_time": 4.0,
            "read_time": 4.0,
        }
        if sieving
        else {}
    )
    written = 640 * MIB if sieving else 5 * MIB
    add_record(
        made,
        range(2),
        "/scratch/h",
        writes=160,
        nested_writes=160,
        bytes_written=written,
        write_time=5.0,
        nested_write_time=5.0,
        **moved,
    )


def independent(made: Job, calls: int, size: int) -> None:
    add_record(
        made,
        range(4),
        "/scratch/s",
        "mpiio",
        opens=1,
        writes=calls,
        bytes_written=calls * size,
        write_time=12.0 if calls > 100 else 0.3,
    )


def exchange(made: Job, storage: float) -> None:
    counts = {"writes": 10, "collective_writes": 10, "bytes_written": 100 * MIB}
    add_record(made, range(4), "/scratch/c", "mpiio", opens=1, write_time=20.0, **counts)
    add_record(
        made,
        0,
        "/scratch/c",
        writes=100,
        nested_writes=100,
        bytes_written=400 * MIB,
        write_time=storage,
        nested_write_time=storage,
    )


def late(made: Job, last: list[int]) -> None:
    """Adds ten collective calls; the ranks in ``last`` take turns in arriving four seconds late."""
    made.has.add("events")
    for call in range(10):
        starts = np.full(4, call * 10.0)
        starts[last[call % len(last)]] += 4.0
        spent = call * 10.0 + 4.5 - starts
        add_events(
            made,
            range(4),
            "/scratch/c",
            "write",
            layer="mpiio",
            start=starts,
            duration=spent,
            length=100 * MIB,
            flags=8,
        )
    spent = [
        float(made.events["duration"][made.events["process"] == rank].sum()) for rank in range(4)
    ]
    add_record(
        made,
        range(4),
        "/scratch/c",
        "mpiio",
        opens=1,
        writes=10,
        collective_writes=10,
        bytes_written=GIB,
        write_time=spent,
    )


def hint(made: Job, effective: int) -> None:
    add_record(
        made,
        range(4),
        "/scratch/c",
        "mpiio",
        opens=1,
        writes=10,
        collective_writes=10,
        bytes_written=GIB,
        write_time=20.0,
    )
    add_record(
        made,
        range(4),
        "/scratch/c",
        writes=10,
        nested_writes=10,
        bytes_written=GIB,
        write_time=19.0,
        nested_write_time=19.0,
    )
    add_hint(made, "/scratch/c", "striping_factor", "8", "requested")
    add_hint(made, "/scratch/c", "striping_factor", str(effective), "effective")


def targets(made: Job, slow: float, directory: str = "/scratch", reading: bool = False) -> None:
    for rank in range(32):
        seconds = slow if rank % 8 == 5 else 2.0
        add_record(
            made,
            rank,
            f"{directory}/o.{rank}",
            opens=1,
            **(
                {"reads": 64, "bytes_read": 256 * MIB, "read_time": seconds}
                if reading
                else {"writes": 64, "bytes_written": 256 * MIB, "write_time": seconds}
            ),
        )
        set_layout(made, f"{directory}/o.{rank}", MIB, [rank % 8])


def stripe(made: Job, stripes: int) -> None:
    add_record(
        made,
        range(8),
        "/scratch/big",
        opens=1,
        writes=256,
        bytes_written=256 * MIB,
        write_time=20.0,
        end_written=2048 * MIB,
    )
    set_layout(made, "/scratch/big", MIB, range(stripes))


def misalign(made: Job, off: int) -> None:
    counts = {"writes": 100, "unaligned_writes": off, "bytes_written": 100 * MIB, "block_size": MIB}
    add_record(made, range(4), "/scratch/shared", opens=1, write_time=20.0, **counts)
    set_layout(made, "/scratch/shared", MIB, range(4))


def bursts(made: Job, length: float) -> None:
    made.has.add("events")
    starts = np.arange(5) * 20.0
    add_record(
        made,
        0,
        "/scratch/out",
        opens=1,
        writes=5,
        bytes_written=5 * 200 * MIB,
        write_time=5 * length,
    )
    add_events(
        made,
        0,
        "/scratch/out",
        "write",
        start=starts,
        duration=length,
        length=200 * MIB,
        offset=np.arange(5) * 200 * MIB,
    )


def loading(made: Job, workers: int) -> None:
    add_record(
        made,
        0,
        "/scratch/images",
        opens=1,
        reads=1000,
        bytes_read=200 * MIB,
        end_read=200 * MIB,
        read_time=10.0,
    )
    times = {"first": 1.0, "waited": 40.0, "worked": 20.0, "longest": 0.1}
    made.loaders = [
        LoaderUse(0, "DataLoader", "Images", workers, 32, processors=8, batches=1000, **times)
    ]


CASES = {
    "loader-without-workers": Case(lambda j: loading(j, 0), lambda j: loading(j, 4), (40, 40)),
    "small-writes": small("write"),
    "small-reads": small("read"),
    "sync-storm": Case(lambda j: sync(j, 1000, 30.0), lambda j: sync(j, 1, 0.5), (29, 30)),
    "flush-storm": Case(lambda j: flush(j, 5000, 20.0), lambda j: flush(j, 1, 0.01), (19, 20)),
    "open-close-loop": Case(
        lambda j: open_and_close(j, 5000), lambda j: open_and_close(j, 1), (9.9, 10.02)
    ),
    "many-small-files": Case(
        lambda j: small_files(j, 1000), lambda j: small_files(j, 1), (29, 30.1)
    ),
    "stat-storm": Case(lambda j: stats(j, 100_000), lambda j: stats(j, 20), (9.9, 10)),
    "metadata-queue": Case(
        lambda j: queue_opens(j, 20.0), lambda j: queue_opens(j, 0.6), (19, 20), ranks=16
    ),
    "all-ranks-read-one-file": Case(
        lambda j: all_read(j, 8), lambda j: all_read(j, 1), (6.9, 8), ranks=8
    ),
    "one-rank-for-all": Case(lambda j: one_rank(j, 1), lambda j: one_rank(j, 8), (13, 15), ranks=8),
    "straggler": Case(lambda j: straggler(j, 40.0), lambda j: straggler(j, 6.0), (34, 36), ranks=8),
    "re-read": Case(lambda j: reread(j, 20), lambda j: reread(j, 1), (9, 10)),
    "seek-storm": Case(
        lambda j: seeks(j, 3_000_000, 1_000_000), lambda j: seeks(j, 1, 4), (7.5, 8.1)
    ),
    "empty-reads": Case(lambda j: empty(j, 1_000_000), lambda j: empty(j, 1), (9.9, 10.1)),
    "mmap-network": Case(
        lambda j: layers.map_file(j, 40_000),
        lambda j: layers.map_file(j, 10),
        (15, 25),
        kind="lustre",
    ),
    "lock-waiting": Case(layers.lock, lambda j: layers.lock(j, 0.01), (29, 31), ranks=2),
    "text-output": Case(
        lambda j: layers.print_text(j, True), lambda j: layers.print_text(j, False), (4.5, 5)
    ),
    "stdio-buffer": Case(
        lambda j: write_stream(j, 64, 0, 10.0), lambda j: write_stream(j, MIB, 0, 0.06), (9, 10)
    ),
    "stdio-per-value": Case(lambda j: values(j, 10_000_000), lambda j: values(j, 10), (2.5, 3)),
    "hole-read-modify-write": Case(
        lambda j: holes(j, True), lambda j: holes(j, False), (8, 10), ranks=2
    ),
    "missing-collectives": Case(
        lambda j: independent(j, 10_000, 1000), lambda j: independent(j, 10, MIB), (11, 12), ranks=4
    ),
    "collective-exchange": Case(
        lambda j: exchange(j, 5.0), lambda j: exchange(j, 19.0), (14, 15), ranks=4
    ),
    "collective-waiting": Case(
        lambda j: late(j, [3]), lambda j: late(j, [0, 1, 2, 3]), (29, 31), ranks=4
    ),
    "hints-not-effective": Case(lambda j: hint(j, 2), lambda j: hint(j, 8), (14, 16), ranks=4),
    "slow-target": Case(
        lambda j: targets(j, 50.0), lambda j: targets(j, 2.2), (47, 49), ranks=32, kind="lustre"
    ),
    "one-stripe": Case(
        lambda j: stripe(j, 1), lambda j: stripe(j, 8), (17, 18), ranks=8, kind="lustre"
    ),
    "unaligned-shared-writes": Case(
        lambda j: misalign(j, 100), lambda j: misalign(j, 0), (5, 15), ranks=4, kind="lustre"
    ),
    "tiny-collective-buffer": Case(
        lambda j: layers.tiny_buffer(j, 4096), lambda j: layers.tiny_buffer(j, 16 * MIB), (19, 20)
    ),
    "shared-file-pointer": Case(
        lambda j: layers.write_ordered(j, 8000), lambda j: layers.write_ordered(j, 10), (9, 10)
    ),
    "tiny-collective-calls": Case(
        lambda j: layers.tiny_calls(j, 8000, True),
        lambda j: layers.tiny_calls(j, 10, True),
        (9, 10),
    ),
    "tiny-independent-calls": Case(
        lambda j: layers.tiny_calls(j, 8000, False),
        lambda j: layers.tiny_calls(j, 10, False),
        (9, 10),
    ),
    "amplification": Case(
        lambda j: layers.amplify(j, 400 * MIB), lambda j: layers.amplify(j, 4 * MIB), (8.8, 9)
    ),
    "directory-storm": Case(
        lambda j: layers.ask_names(j, 5000), lambda j: layers.ask_names(j, 100), (9, 10)
    ),
    "backward-reads": Case(
        lambda j: layers.read_backwards(j, 0), lambda j: layers.read_backwards(j, 5000), (19, 20.5)
    ),
    "directory-listing": Case(
        lambda j: layers.list_directory(j, 200), lambda j: layers.list_directory(j, 2), (9, 10)
    ),
    "mapping-storm": Case(
        lambda j: layers.map_records(j, 100_000), lambda j: layers.map_records(j, 10), (9, 10)
    ),
    "queue-depth": Case(
        lambda j: layers.await_requests(j, 1), lambda j: layers.await_requests(j, 32), (7, 8)
    ),
    "serialized-ranks": Case(
        lambda j: layers.write_in_turn(j, turns=True),
        lambda j: layers.write_in_turn(j, turns=False),
        (14, 16),
        ranks=4,
    ),
    "process-storm": Case(
        lambda j: layers.start_programs(j, 2000, 0.002),
        lambda j: layers.start_programs(j, 10, 2.0),
        (4.5, 4.7),
    ),
    "mpi-library-time": Case(
        lambda j: layers.mpi_writes(j, 100, MIB, 20.0, nested_write_time=2.0, write_time=2.0),
        lambda j: layers.mpi_writes(j, 100, MIB, 20.0, nested_write_time=18.0, write_time=18.0),
        (17, 18),
    ),
    **{name: Case(*parts) for name, parts in layers.CASES.items()},
    "overlap": Case(lambda j: bursts(j, 8.0), lambda j: bursts(j, 0.2), (25, 40)),
}


def found(made: Job) -> dict[str, float]:
    return {finding.rule: finding.seconds for finding in analyze(made).findings}


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {rule.name for rule in RULES}


@pytest.mark.system
@pytest.mark.parametrize("name", CASES)
def test_rule_names_cause_and_seconds(name: str) -> None:
    case = CASES[name]
    made = job(case.ranks, kind=case.kind)
    case.bad(made)
    findings = analyze(made).findings
    assert [finding.rule for finding in findings][:1] == [name]
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
    "tiny-collective-calls": ["run.mpiio", "mpiio.romio_ds_write", "mpiio.pario_write_behind"],
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
