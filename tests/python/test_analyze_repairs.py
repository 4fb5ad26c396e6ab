"""The evidence that rules require before they propose a repair."""

from __future__ import annotations

import pytest

from pario.see.analyze import analyze
from pario.see.tables.model import HintOutcome
from tests.python.jobs import add_record
from tests.python.rule_cases import CASES, VARIANTS, job
from tests.python.test_analyze_rules import settings_of


@pytest.mark.parametrize(
    ("size", "seconds", "kept"),
    [(1 << 20, 5.0, True), (1 << 30, 5000.0, False), (100 << 20, 2.0, False)],
)
def test_a_file_is_kept_whole_where_it_is_small_and_reads_are_slower_than_memory(
    size: int, seconds: float, kept: bool
) -> None:
    made = job(wall=10 * seconds)
    add_record(
        made,
        0,
        "/scratch/table",
        opens=100,
        reads=10_000,
        bytes_read=100 * size,
        read_time=seconds,
        end_read=size,
    )
    (found,) = (finding for finding in analyze(made).findings if finding.rule == "re-read")
    assert [(one.key, one.value) for one in found.settings] == ([("whole", "1M")] if kept else [])


@pytest.mark.parametrize(
    ("opens", "streams", "keys"),
    [(1, 0, ["size", "prefetch"]), (0, 1, ["size", "prefetch"]), (0, 0, [])],
)
def test_files_that_a_process_inherits_have_no_buffers(
    opens: int, streams: int, keys: list[str]
) -> None:
    made = job()
    CASES["small-reads"].bad(made)
    made.records["opens"] = opens
    add_record(made, 0, "/scratch/f", "stdio", opens=streams)
    (found,) = (one for one in analyze(made).findings if one.rule == "small-reads")
    assert [one.key for one in found.settings] == keys
    assert ("inherited the open file" in found.why_not) == (not keys)


@pytest.mark.parametrize(
    ("facts", "reason", "keys"),
    [
        ({"open_time": 20.0}, "", ["handles", "lazyclose"]),
        ({"open_time": 2.0, "write_time": 8.0}, "in other calls", []),
        ({"open_time": 20.0, "failed_opens": 120_000}, "leaves nothing to keep", []),
    ],
)
def test_handles_are_kept_where_opens_take_most_of_the_time(
    facts: dict[str, float], reason: str, keys: list[str]
) -> None:
    made = job()
    counts = {"opens": 100_000, "writes": 100_000, "bytes_written": 20 * 100_000}
    add_record(made, 0, "/scratch/log", **counts, **facts)
    (found,) = (one for one in analyze(made).findings if one.rule == "open-close-loop")
    assert [one.key for one in found.settings] == keys
    assert reason in found.why_not and bool(reason) == bool(found.why_not)


@pytest.mark.parametrize(("large", "value"), [(False, ["100M"]), (True, [])])
def test_reads_out_of_order_are_served_from_a_copy_of_the_file(
    large: bool, value: list[str]
) -> None:
    made = job()
    VARIANTS["small-reads (out of order)"].bad(made)
    made.records["size_at_open"][0] = large << 30
    (found,) = (one for one in analyze(made).findings if one.rule == "small-reads")
    assert [one.value for one in found.settings] == value
    advice = "".join(fix.text for fix in found.fixes)
    assert "Sort the records" in advice
    assert "once per buffer" not in advice
    assert ("mmap" in advice) == bool(value)


@pytest.mark.parametrize("effective", ["yes", "no"])
@pytest.mark.parametrize("rule", ["small-writes", "small-reads", "stdio-buffer"])
def test_no_buffers_are_proposed_for_a_file_that_had_them(rule: str, effective: str) -> None:
    assert settings_of(rule)
    made = job(CASES[rule].ranks, kind=CASES[rule].kind)
    CASES[rule].bad(made)
    made.audit += [
        HintOutcome(file, made.path(file), "buffers", "*", "yes", effective, "", "streams")
        for file in range(len(made.files))
    ]
    (found,) = (one for one in analyze(made).findings if one.rule == rule)
    assert found.settings == ()
    assert found.why_not == "the run had the settings for it already"
    assert [fix.kind for fix in found.fixes] == ["code"]
    assert "pario buffers the file already" in found.fixes[0].text
