"""Properties of any log: its analysis ends, splits sum to the wall time, and findings save no more
than the time that was spent."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.see.analyze import analyze
from pario.see.tables.model import EVENT_KINDS, LAYERS, Job
from tests.python.jobs import (
    ALL_KNOWN,
    add_events,
    add_filesystem,
    add_function,
    add_hint,
    add_record,
    make_job,
    set_layout,
)

COUNTS = (
    "opens closes reads writes seeks stats syncs flushes maps zero_reads bytes_read bytes_written"
    " bytes_mapped end_read end_written nested_reads nested_writes unaligned_writes sync_writes"
    " buffer_size formatted_calls sampled_writes sampled_numbers collective_writes"
    " collective_reads block_size"
).split()
TIMES = (
    "open_time close_time read_time write_time seek_time stat_time sync_time flush_time"
    " nested_read_time nested_write_time".split()
)


@st.composite
def any_job(draw: st.DrawFn) -> Job:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ranks, wall = draw(st.integers(1, 6)), draw(st.sampled_from([0.01, 1.0, 1000.0]))
    has = draw(st.sets(st.sampled_from(sorted(ALL_KNOWN))))
    job = make_job(ranks, wall, mpi=draw(st.booleans()), has=has)
    job.format = draw(st.sampled_from(["pario", "darshan"]))
    add_filesystem(job, "/net", "lustre", network=True)
    for _ in range(draw(st.integers(0, 8))):
        _add_random_record(job, random, ranks, wall)
    for _ in range(draw(st.integers(0, 8)) if "events" in has else 0):
        _add_random_events(job, random, ranks, wall)
    add_function(
        job,
        range(ranks),
        "MPI_Allreduce",
        "collective",
        calls=3,
        seconds=random.random(ranks) * wall,
        bytes=100,
    )
    add_hint(job, "/net/f0", "cb_nodes", "4", "requested")
    return job


def _add_random_record(job: Job, random: np.random.Generator, ranks: int, wall: float) -> None:
    scale = 10 ** random.uniform(0, 8, len(COUNTS))
    counters = {
        name: int(random.random() * most) * (random.random() < 0.7)
        for name, most in zip(COUNTS, scale, strict=True)
    }
    seconds = {name: random.random() * wall * (random.random() < 0.7) for name in TIMES}
    path = f"{random.choice(['/net', '/local', '/proc'])}/f{random.integers(3)}"
    process = int(random.integers(-1, ranks))
    layer = str(random.choice(LAYERS))
    moments = {"first_write": random.random() * wall, "last_write": random.random() * wall}
    add_record(
        job,
        process,
        path,
        layer,
        **counters,
        **seconds,
        **moments,
        ranks=ranks if process < 0 else 1,
    )
    if random.random() < 0.5:
        set_layout(job, path, 1 << 20, range(random.integers(1, 5)))


def _add_random_events(job: Job, random: np.random.Generator, ranks: int, wall: float) -> None:
    number = int(random.integers(1, 20))
    where = {
        "start": random.random(number) * wall,
        "duration": random.random(number) * wall,
        "offset": random.integers(-1, 10, number),
    }
    kind = str(random.choice(EVENT_KINDS))
    flags, layer = int(random.integers(32)), str(random.choice(LAYERS))
    names = {"communicate": random.choice(["MPI_Barrier", "MPI_Recv", "MPI_Send"])}
    add_events(
        job,
        random.integers(0, ranks, number),
        f"/net/f{random.integers(3)}",
        kind,
        **where,
        length=100,
        flags=flags,
        function=names.get(kind),
    )
    if kind != "communicate":
        job.events["layer"][job.events["layer"] == 0] = LAYERS.index(layer)


@pytest.mark.system
@settings(max_examples=150)
@given(any_job())
def test_any_job_is_analysed_within_its_bounds(job: Job) -> None:
    analysis = analyze(job)
    for split in (analysis.verdict.critical, analysis.verdict.slowest, analysis.verdict.mean):
        assert split.wall == pytest.approx(job.wall, rel=1e-6)
        assert min(split.compute, split.communication, split.waiting, split.io) >= -1e-9
    assert sum(finding.seconds for finding in analysis.findings) <= job.wall * (1 + 1e-9)
    assert all(finding.seconds >= 0.01 * job.wall for finding in analysis.findings)
    json.dumps(dataclasses.asdict(analysis), allow_nan=False)


def make_large_job(events: int) -> Job:
    """A thousand ranks, each with so many events."""
    job = make_job(1000, 100.0)
    add_filesystem(job, "/net", "lustre", network=True)
    for rank in range(0, 1000, 100):
        ranks = range(rank, rank + 100)
        facts = {"writes": 100, "bytes_written": 100 << 20, "end_written": 100 << 20}
        add_record(job, ranks, f"/net/f{rank}", write_time=5.0, **facts)
        where = {"start": 1.0, "duration": 5.0, "length": 100 << 20, "offset": 0}
        add_events(job, ranks, f"/net/f{rank}", "write", **where)
    many = np.repeat(job.events, events)
    many["start"] += np.tile(np.arange(events) * 0.4, len(job.events))
    many["duration"], many["end"] = 0.05, many["start"] + 0.05
    job.events = many[np.argsort(many["start"], kind="stable")]
    return job


def count_lines(job: Job) -> int:
    """Returns the number of lines of Python that an analysis runs."""
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        analyze(job)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.system
def test_ten_times_the_events_take_few_more_lines_of_python() -> None:
    """No loop is over rows."""
    assert count_lines(make_large_job(200)) < 3 * count_lines(make_large_job(20))


def test_findings_never_save_more_io_than_the_slowest_rank_has() -> None:
    """Shared files that are slow on different ranks are slow at the same time."""
    job = make_job(64, wall=1000.0, has={"posix"})
    for file in range(32):
        add_record(
            job,
            -1,
            f"/scratch/{file}",
            writes=1_000_000,
            bytes_written=10**7,
            write_time=64 * 20.0,
            slowest_rank=file,
            slowest_rank_time=26.0,
            fastest_rank=63,
            fastest_rank_time=1.0,
            ranks=64,
        )
    analysis = analyze(job)
    gain = sum(finding.seconds for finding in analysis.findings)
    assert 0 < gain <= analysis.verdict.critical.io <= 1000.0
