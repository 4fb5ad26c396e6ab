"""Every row of the tables of counters (src/core/trace) reaches the tables of a job."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pario.see.tables.own
from pario import _native
from pario.see.tables import read
from pario.see.tables.model import COUNTERS, PROCESS, PROCESS_FACTS, RECORD, SIZE_BINS, SIZE_NAMES
from tests.python import plog
from tests.python.plog import RATE, ProcessLog, moment

READER = "\n".join(path.read_text() for path in Path(pario.see.tables.own.__path__[0]).glob("*.py"))


def test_the_tables_have_a_row_for_each_field_of_a_log():
    assert [row.name for row in COUNTERS] == [name for name, _ in plog.RECORD_FIELDS]
    assert [row.name for row in PROCESS_FACTS] == [name for name, _ in plog.PROCESS_FIELDS]
    assert [name for name, _, _ in _native.op_table()] == plog.OPS


@pytest.mark.parametrize("row", COUNTERS, ids=lambda row: row.name)
def test_a_counter_reaches_the_table_of_records(row, tmp_path):
    if row.use == "unread":
        return
    if row.use == "key":
        assert f'"{row.name}"' in READER
        return
    ProcessLog(records=[{"path": "/a", "opens": 1, row.name: 7 * RATE}]).write(tmp_path)
    (record,) = read([tmp_path]).records
    if row.use == "size":
        direction, _, size_class = row.name.split("_")
        assert record[f"{direction}_sizes"][int(size_class)] == 7 * RATE
    else:
        expected = {"ticks": 7.0, "time": 6.0}.get(row.unit, 7 * RATE)
        assert record[row.name] == pytest.approx(expected)


@pytest.mark.parametrize("row", PROCESS_FACTS, ids=lambda row: row.name)
def test_a_fact_of_a_process_reaches_the_table_of_processes(row, tmp_path):
    if row.use == "unread":
        return
    if row.use == "key":
        assert re.search(rf'"{row.name}"', READER)
        return
    value = moment(7) if row.unit == "time" else 7
    ProcessLog(process={row.name: value}).write(tmp_path)
    (process,) = read([tmp_path]).processes
    expected = 6 if row.use == "optional" else 7 / RATE if row.unit == "ticks" else 7
    assert process[row.name] == pytest.approx(expected)


def test_a_killed_process_keeps_the_counters_of_the_kernel(tmp_path):
    ProcessLog(end=None, process={"storage_read": 5, "max_rss": 6}).write(tmp_path)
    (process,) = read([tmp_path]).processes
    assert (process["storage_read"], process["max_rss"]) == (4, 6)


def test_counters_that_the_kernel_does_not_have_are_unknown(tmp_path):
    ProcessLog(process={"run_queue_delay": 1}).write(tmp_path)
    (process,) = read([tmp_path]).processes
    assert (process["block_io_delay"], process["run_queue_delay"]) == (-1, 0)


def test_fields_of_a_newer_log_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(plog, "RECORD_FIELDS", [*plog.RECORD_FIELDS, ["teleports", "count"]])
    ProcessLog(records=[{"path": "/a", "opens": 1, "teleports": 3}]).write(tmp_path)
    job = read([tmp_path])
    assert [message for message in job.messages if "teleports" in message] == [
        "written by pario 0.1.0, with fields that this version does not know and leaves out:"
        " teleports"
    ]


def test_a_log_without_a_newer_counter_is_read(tmp_path, monkeypatch):
    older = [field for field in plog.RECORD_FIELDS if field[0] != "wasted_bytes"]
    monkeypatch.setattr(plog, "RECORD_FIELDS", older)
    monkeypatch.setattr(
        plog, "PROCESS_FIELDS", [field for field in plog.PROCESS_FIELDS if field[0] != "max_rss"]
    )
    ProcessLog(records=[{"path": "/a", "opens": 1}]).write(tmp_path)
    job = read([tmp_path])
    assert job.records["opens"] == 1
    assert job.records["wasted_bytes"] == 0


def test_size_classes_follow_the_table():
    assert SIZE_NAMES[:3] == ("0-100", "100-1K", "1K-10K")
    assert SIZE_NAMES[-1] == "1G+"
    assert len(SIZE_NAMES) == len(SIZE_BINS) + 1 == RECORD["read_sizes"].shape[0]
    assert np.all(np.diff(SIZE_BINS) > 0)


def test_columns_have_one_type_per_unit():
    types = {
        row.name: RECORD[row.name].kind for row in COUNTERS if row.name in (RECORD.names or ())
    } | {
        row.name: PROCESS[row.name].kind
        for row in PROCESS_FACTS
        if row.name in (PROCESS.names or ())
    }
    floats = {name for name, kind in types.items() if kind == "f"}
    in_seconds = {
        row.name for row in (*COUNTERS, *PROCESS_FACTS) if row.unit in ("ticks", "time")
    } & types.keys()
    assert floats == in_seconds
