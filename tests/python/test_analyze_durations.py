"""Findings that depend on the duration of single calls, and on the time between calls."""

from __future__ import annotations

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.tables.model import Job
from tests.python import layer_jobs as layers
from tests.python.jobs import add_events, add_filesystem, add_record, make_job

KIB, MIB = 1 << 10, 1 << 20


def job(wall: float = 10.0) -> Job:
    made = make_job(1, wall)
    made.processes["cpu_user"] = wall
    add_filesystem(made, "/scratch", "ext4", 4096)
    return made


def found(made: Job) -> dict[str, float]:
    return {finding.rule: finding.seconds for finding in analyze(made).findings}


def open_often(made: Job, opens: int, held: float, size: int) -> None:
    """Opens a file, reads all of it at once and closes it after ``held`` seconds, again and
    again."""
    starts = np.arange(opens) * made.wall / opens
    path, call = "/scratch/settings", 1e-5
    add_record(
        *(made, 0, path),
        **{"opens": opens, "closes": opens, "reads": opens, "bytes_read": opens * size},
        **{"open_time": opens * call, "close_time": opens * call, "read_time": opens * call},
        end_read=size,
    )
    add_events(made, 0, path, "open", start=starts, duration=call)
    add_events(made, 0, path, "read", start=starts + 2 * call, duration=call, offset=0, length=size)
    add_events(made, 0, path, "close", start=starts + call + held, duration=call)


def test_parsing_a_small_file_at_each_open_belongs_to_the_opens() -> None:
    made = job()
    open_often(made, 1000, held=4e-3, size=3000)
    assert found(made) == {"open-close-loop": pytest.approx(4.0, rel=0.02)}


def rewrite_index(made: Job, rounds: int) -> None:
    """Reads an index for 4 ms while it is open, and writes it anew for 3 ms, as dbm.dumb does; the
    first open fails, because there is none."""
    starts, call = np.arange(rounds) * made.wall / rounds, 1e-5
    own = (made, 0, "/scratch/db.dir")
    moved = {"bytes_read": rounds * 3000, "bytes_written": rounds * 5000}
    opened = {"opens": 2 * rounds, "failed_opens": 1, "open_time": 2 * rounds * call}
    add_record(*own, reads=rounds, writes=rounds, end_read=3000, **moved, **opened)
    add_events(*own, "open", start=np.zeros(1), duration=call, flags=1)
    for begin, held, kind in ((call, 4e-3, "read"), (5e-3, 3e-3, "write")):
        add_events(*own, "open", start=starts + begin, duration=call)
        add_events(*own, kind, start=starts + begin + 2 * call, duration=0.0, length=3000)
        add_events(*own, "close", start=starts + begin + call + held, duration=call)


def test_parsing_a_file_that_is_written_in_other_opens_belongs_to_the_opens() -> None:
    made = job()
    rewrite_index(made, 1000)
    assert found(made)["open-close-loop"] == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize(
    ("opens", "held", "size"),
    [(50, 4e-3, 3000), (200, 0.045, 3000), (1000, 4e-3, 64 * MIB)],
    ids=["few opens", "long computation", "large file"],
)
def test_computation_while_a_file_is_open_is_not_parsing(
    opens: int, held: float, size: int
) -> None:
    made = job()
    open_often(made, opens, held, size)
    assert "open-close-loop" not in found(made)


def read_in_order(made: Job, each: float) -> None:
    """Reads 40 MiB in order in 4 KiB pieces; every 64th read takes the time that others save."""
    count, path = 10_000, "/scratch/scan"
    seconds = np.full(count, each)
    seconds[::64] += 3.0 / count * 64 - 64 * each
    seconds = np.maximum(seconds, each)
    total = {"bytes_read": count * 4096, "end_read": count * 4096, "consecutive_reads": count - 1}
    add_record(made, 0, path, opens=1, reads=count, read_time=float(seconds.sum()), **total)
    offsets = np.arange(count) * 4096
    starts = offsets / 4096 * 9e-4
    add_events(
        *(made, 0, path, "read"), start=starts, duration=seconds, offset=offsets, length=4096
    )


def test_reads_in_order_that_wait_are_not_read_ahead() -> None:
    made = job()
    read_in_order(made, 3e-4)
    assert found(made)["small-reads"] == pytest.approx(3.0, rel=0.1)


def test_reads_in_order_that_the_device_limits_save_the_calls_alone() -> None:
    made = job()
    read_in_order(made, 2e-6)
    assert found(made).get("small-reads", 0.0) <= 10_000 * 5e-6


def test_reads_of_a_deep_queue_are_neither_small_nor_backward() -> None:
    made = job()
    layers.await_requests(made, 32)
    assert found(made) == {}


def write_numbers(made: Job, size: int) -> None:
    """Writes 36 MB of digits in calls of ``size`` bytes."""
    calls = 36_000_000 // size
    digits = {"sampled_writes": calls, "sampled_numbers": calls, "sampled_text": calls}
    moved = {"writes": calls, "bytes_written": calls * size, "write_time": 0.06}
    add_record(made, 0, "/scratch/matrix.txt", opens=1, **moved, **digits)


def test_conversion_of_numbers_before_the_write_calls_counts() -> None:
    made = job()
    write_numbers(made, 8 * KIB)
    assert found(made)["text-output"] == pytest.approx(1.0, rel=0.05)


def test_large_writes_of_digits_may_hold_text_made_before() -> None:
    made = job()
    write_numbers(made, 4 * MIB)
    assert found(made).get("text-output", 0.0) <= 0.06


@pytest.mark.parametrize("queued, seconds", [(0.0, 0.1), (10.0, 5.1)], ids=["device", "processor"])
def test_few_long_writes_wait_for_the_device_unless_they_wait_for_a_processor(
    queued: float, seconds: float
) -> None:
    made, each = job(), np.full(10_000, 1e-5)
    each[::100] = 50e-3
    made.processes["run_queue_delay"] = int(queued * 1e9)
    counts = {"writes": len(each), "bytes_written": 8 * len(each), "write_time": each.sum()}
    add_record(made, 0, "/scratch/f", opens=1, **counts)
    start = np.cumsum(each) - each
    add_events(made, 0, "/scratch/f", "write", start=start, duration=each, length=8)
    assert found(made)["small-writes"] == pytest.approx(seconds, abs=0.05)
