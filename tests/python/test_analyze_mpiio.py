"""The outcomes of hints and the figures of pario's own MPI-IO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.audit import _HARMLESS
from pario.see.analyze.model import Finding
from pario.see.tables.model import MPIIO, HintOutcome, Job
from tests.python.jobs import add_hint, add_record, file_row, make_job, set_layout

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
GUESS = "unknown hint cb_nods: did you mean cb_nodes?"


def job(hosts: int = 4) -> Job:
    made = make_job(4, 100.0, hosts=hosts)
    made.has = {"posix", "mpiio", "per_rank", "hints", "layout", "own_mpiio"}
    counts = {"opens": 1, "writes": 10, "bytes_written": GIB, "write_time": 20.0}
    add_record(made, range(4), "/scratch/c", "mpiio", collective_writes=10, **counts)
    add_record(made, range(4), "/scratch/c", nested_writes=10, nested_write_time=19.0, **counts)
    return made


def add_outcome(
    made: Job,
    key: str,
    requested: str,
    applied: str = "",
    effective: str = "",
    reason: str = "",
    path: str = "/scratch/c",
) -> None:
    made.audit.append(
        HintOutcome(file_row(made, path), path, key, requested, applied, effective, reason)
    )


def add_figures(made: Job, path: str = "/scratch/c", **figures: Any) -> None:
    row = np.zeros(1, MPIIO)
    row["path"] = row["file"] = file_row(made, path)
    for name, value in (
        {"opens": 1, "ranks": 4, "nodes": 4, "aggregators": 1, "stripe_count": 1} | figures
    ).items():
        row[name] = value
    made.mpiio = np.concatenate([made.mpiio, row])


def finding(made: Job) -> Finding | None:
    return next(
        (found for found in analyze(made).findings if found.rule == "hints-not-effective"), None
    )


@pytest.mark.parametrize(
    ("values", "state"),
    [
        (("8", "8", "8", ""), "in force"),
        (("8", "8", "4", "the file has 4 targets"), "not in force"),
        (
            ("8", "8", "8", "a file system of kind local has no stripes that can be set"),
            "not in force",
        ),
        (("4", "", "", GUESS), "not taken"),
        (("*:1", "", "", "known, but without a meaning here"), "without meaning"),
        (("8", "16", "16", "another setting of the same hint came later"), "overruled"),
    ],
)
def test_the_state_of_a_hint(values, state):
    made = job()
    add_outcome(made, "key", *values)
    (row,) = analyze(made).audit
    assert (row.state, row.reason, row.files) == (state, values[3], ("/scratch/c",))


def test_harmless_reasons_equal_the_librarys():
    source = "".join(
        (ROOT / "src" / name).read_text()
        for name in (
            "parallel/engine/audit.cpp",
            "layers/buffers/audit.cpp",
            "core/file/new_file.cpp",
        )
    )
    assert [text for text, _ in _HARMLESS if text not in source] == []


def test_rows_that_differ_only_in_their_file_are_joined_and_the_worst_come_first():
    made = job()
    for number in range(20):
        add_outcome(made, "cb_nodes", "4", "4", "4", path=f"/scratch/{number}")
        add_outcome(made, "cb_nods", "4", reason=GUESS, path=f"/scratch/{number}")
    rows = analyze(made).audit
    assert [(row.key, row.file_count, len(row.files)) for row in rows] == [
        ("cb_nods", 20, 10),
        ("cb_nodes", 20, 10),
    ]


def test_a_stripe_count_that_the_file_system_did_not_give_is_a_finding_with_its_reason():
    made = job()
    add_outcome(made, "striping_factor", "8", "8", "2", "existing file: its stripes are fixed")
    found = finding(made)
    assert found is not None
    assert found.evidence[0].text == "existing file: its stripes are fixed"
    assert 14 <= found.seconds <= 16


def test_the_audit_and_the_values_read_back_make_one_finding():
    made = job()
    add_outcome(made, "striping_factor", "8", "8", "2", "existing file: its stripes are fixed")
    add_hint(made, "/scratch/c", "striping_factor", "8", "requested")
    add_hint(made, "/scratch/c", "striping_factor", "2", "effective")
    assert [found.rule for found in analyze(made).findings].count("hints-not-effective") == 1


def test_a_misspelt_hint_is_a_finding_if_it_would_have_had_an_effect():
    made = job()
    add_figures(made)
    add_outcome(made, "cb_nods", "4", reason=GUESS)
    add_outcome(
        made, "striping_unit", "1M", "1048576", "65536", "existing file: its stripes are fixed"
    )
    add_outcome(
        made,
        "romio_ds_write",
        "perhaps",
        reason="romio_ds_write=perhaps: expected automatic, enable or disable",
    )
    found = finding(made)
    assert found is not None
    assert [evidence.text for evidence in found.evidence[:3]] == [
        GUESS,
        "striping_unit=1M: existing file: its stripes are fixed",
        "romio_ds_write=perhaps: expected automatic, enable or disable",
    ]
    assert "cb_nodes" in found.fixes[0].text


def test_a_misspelt_hint_without_effect_costs_nothing():
    one_node, no_stripes = job(), job()
    add_figures(one_node, nodes=1)
    add_outcome(one_node, "cb_nods", "4", reason=GUESS)
    add_figures(no_stripes)
    add_outcome(
        no_stripes,
        "striping_factr",
        "8",
        reason="unknown hint striping_factr: did you mean striping_factor?",
    )
    assert finding(one_node) is None
    assert finding(no_stripes) is None
    set_layout(no_stripes, "/scratch/c", 1 << 20, [0])
    assert finding(no_stripes) is not None


def test_an_impossible_value_has_no_known_cost():
    made = job()
    add_figures(made)
    add_outcome(
        made,
        "striping_factor",
        "99999999",
        reason="striping_factor=99999999: expected a number up to 65535",
    )
    assert finding(made) is None
    assert analyze(made).audit[0].state == "not taken"


def test_figures_of_a_file_and_its_rates():
    made = job()
    add_figures(
        made,
        bytes_written=8 * GIB,
        calls_most=4.0,
        system_writes=16,
        system_write_bytes=8 * GIB,
        file_most=2.0,
        wait_mean=0.5,
    )
    (row,) = analyze(made).mpiio
    assert (row.path, row.ranks) == ("/scratch/c", 4)
    assert (row.average_system_write, row.net, row.raw) == (GIB / 2, 2 * GIB, 4 * GIB)
    assert {phase.name: phase.mean for phase in row.phases}["wait"] == 0.5


def test_a_file_that_moved_nothing_has_no_rates():
    made = job()
    add_figures(made)
    (row,) = analyze(made).mpiio
    assert (row.average_system_write, row.net, row.raw) == (0, 0, 0)


def test_files_are_by_time_and_limited():
    made = job()
    for number in range(1200):
        add_figures(made, f"/scratch/{number}", calls_most=number)
    analysis = analyze(made)
    assert (len(analysis.mpiio), analysis.mpiio_total, analysis.mpiio[0].path) == (
        1000,
        1200,
        "/scratch/1199",
    )
