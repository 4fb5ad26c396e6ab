"""Extreme numbers in a log are read with their meaning, or reported as damage."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pario.see.analyze import analyze
from pario.see.report import json as report_json
from pario.see.tables import Job, read
from tests.python.plog import FUNCTIONS, PROCESS_FIELDS, RECORD_FIELDS, ProcessLog, events

EDGES = [0, 1, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62 - 1, 2**62, 2**63 - 1, 2**63]
EDGES += [2**64 - 2**31, 2**64 - 2, 2**64 - 1]
#: The fields that relate the ticks of a log to time, without which the log cannot be read.
CLOCK = {"ticks_per_second", "anchor0_ticks", "anchor0_mono_ns", "start_mono_ns"}
CLOCK |= {"start_realtime_ns"}
COUNTERS = [name for name, unit in RECORD_FIELDS if unit in ("count", "bytes")]
FEW = settings(max_examples=60)
edges = st.sampled_from(EDGES)


def read_log(directory: Path, log: ProcessLog) -> Job:
    """Reads one log, which must be analyzed and rendered for any content."""
    for path in directory.glob("*.plog"):
        path.unlink()
    log.write(directory)
    job = read([directory])
    report_json.render(analyze(job))
    return job


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    ("written", "status"),
    [
        *((0, 0), (1, 1), (255, 255), (256, 0)),
        *((2**64 - 1, 255), (2**64 - 2**31, 0), (2**32 - 1, 255)),
    ],
)
def test_an_exit_status_equals_that_seen_by_the_parent(
    tmp_path: Path, kind: int, written: int, status: int
) -> None:
    job = read_log(tmp_path, ProcessLog(process={"end_kind": kind, "end_code": written}))
    assert (job.processes["end_kind"][0], job.processes["end_code"][0]) == (kind, status)


@pytest.mark.system
@FEW
@given(name=st.sampled_from(sorted({name for name, _ in PROCESS_FIELDS} - CLOCK)), value=edges)
def test_a_fact_of_the_process_never_hides_its_log(tmp_path: Path, name: str, value: int) -> None:
    record = {"path": "/a", "writes": 3, "bytes_written": 30}
    job = read_log(tmp_path, ProcessLog(records=[record], process={name: value}))
    (row,) = job.records
    assert (row["writes"], row["bytes_written"]) == (3, 30)
    if value >= 2**63 and name != "end_code":
        assert any(f"{name} is {value}" in text for text in job.messages)


@pytest.mark.system
@FEW
@given(values=st.dictionaries(st.sampled_from(COUNTERS), edges, min_size=1, max_size=4))
def test_a_counter_is_its_value_or_named_as_damage(tmp_path: Path, values: dict[str, int]) -> None:
    values = {name: value for name, value in values.items() if name != "folded"}
    (row,) = (job := read_log(tmp_path, ProcessLog(records=[{"path": "/a", **values}]))).records
    for name, value in values.items():
        assert counter(row, name) in (value if value < 2**63 else 0, None), name
    damaged = [name for name, value in values.items() if value >= 2**63]
    for name in damaged:
        if counter(row, name) is None:
            continue
        alike = re.sub(r"\d", r"\\d", name)  # messages that differ only in numbers are joined
        assert any(re.search(rf"\b{alike}:", text) for text in job.messages), job.messages


def counter(row: Any, name: str) -> int | None:
    """Returns a counter of a row; None if the table model leaves it out."""
    sizes = re.fullmatch(r"(read|write)_size_(\d)", name)
    if sizes:
        return int(row[f"{sizes[1]}_sizes"][int(sizes[2])])
    return int(row[name]) if name in row.dtype.names else None


@pytest.mark.system
@FEW
@given(counters=st.lists(edges, min_size=5, max_size=5))
def test_a_function_has_its_calls_or_is_named_as_damage(
    tmp_path: Path, counters: list[int]
) -> None:
    rows = [(0, 0, 0, 0, 0)] * len(FUNCTIONS)
    rows[2] = (counters[0] or 1, *counters[1:])
    job = read_log(tmp_path, ProcessLog(functions=rows))
    (row,) = job.functions
    for name, at in (("calls", 0), ("bytes", 2), ("failed", 4)):
        assert row[name] == (rows[2][at] if rows[2][at] < 2**63 else 0)
    if max(rows[2][at] for at in (0, 2, 4)) >= 2**63:
        assert any("counters of write" in text for text in job.messages), job.messages


@pytest.mark.system
@FEW
@given(
    offset=edges,
    length=edges.filter(lambda value: value < 2**63),
    count=st.sampled_from([1, 2, 2**31, 2**32 - 1]),
    span=st.sampled_from([0, 2**32 - 1]),
    flags=st.sampled_from([0, 1, 63, 255]),
)
def test_an_event_keeps_its_numbers(
    tmp_path: Path, offset: int, length: int, count: int, span: int, flags: int
) -> None:
    chunk = events(1, count=count, span=span, flags=flags)
    chunk["offset"], chunk["length"] = np.uint64(offset), np.uint64(length)
    (row,) = read_log(tmp_path, ProcessLog(records=[{"path": "/a"}], chunks=[chunk])).events
    # the largest u64 means unknown, which is -1 here
    signed = struct.unpack("<q", struct.pack("<Q", offset))[0]
    assert (row["offset"], row["length"]) == (signed, length)
    assert (row["count"], row["flags"]) == (count, flags)
