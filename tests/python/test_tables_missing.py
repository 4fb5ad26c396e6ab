"""A run with missing data is never called healthy: the first line names the missing part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pario.see.analyze import Analysis, analyze
from pario.see.tables import read
from tests.python.plog import ProcessLog, block, events, moment, ticks

HEALTHY = {"path": "/data/a", "writes": 3, "bytes_written": 3_000_000, "write_time": ticks(0.001)}
#: A fact of a process that is impossible, so that its log cannot be read.
DAMAGED = {"ticks_per_second": 2**63}
UNSEEN = {"note": "unfollowed", "program": "/bin/static", "reason": "though it is static"}


def rank(number: int, size: int, **fields: Any) -> ProcessLog:
    return ProcessLog(pid=1000 + number, rank=number, size=size, records=[HEALTHY], **fields)


def analyze_logs(directory: Path, *logs: ProcessLog) -> Analysis:
    for log in logs:
        log.write(directory)
    return analyze(read([directory]))


def check_incomplete(analysis: Analysis, *told: str) -> None:
    verdict = analysis.verdict
    assert verdict.sentence.startswith("Incomplete: ")
    assert verdict.bound == "unknown"
    assert "worth changing" not in verdict.sentence and "Hardly any" not in verdict.sentence
    assert verdict.grade == "unknown"
    for text in told:
        assert text in verdict.sentence.partition(". ")[0], verdict.sentence
    assert verdict.unseen


def test_an_unreadable_log_is_named_first(tmp_path: Path) -> None:
    analysis = analyze_logs(tmp_path, rank(0, 2), rank(1, 2, process=DAMAGED))
    check_incomplete(analysis, "1 of 2 process logs cannot be read", "rank 1 of 2 has no log")
    assert any("ticks_per_second" in message for message in analysis.messages)


def test_only_the_launchers_log_is_not_the_run(tmp_path: Path) -> None:
    launcher = ProcessLog(pid=10, records=[HEALTHY])
    ranks = [rank(number, 2, process=DAMAGED) for number in range(2)]
    check_incomplete(analyze_logs(tmp_path, launcher, *ranks), "2 of 3 process logs cannot be read")


def test_ranks_without_a_log_are_named_first(tmp_path: Path) -> None:
    analysis = analyze_logs(tmp_path, rank(0, 4), rank(2, 4))
    check_incomplete(analysis, "ranks 1, 3 of 4 have no log")


def test_a_damaged_log_is_named_first(tmp_path: Path) -> None:
    log = ProcessLog(records=[HEALTHY], chunks=[events(10)])
    path = log.write(tmp_path)
    data = path.read_bytes()
    payload = data.index(block(6, b"")[:6]) + 64  # within the chunk
    path.write_bytes(data[:payload] + b"\xff" * 8 + data[payload + 8 :])
    check_incomplete(analyze(read([tmp_path])), "1 of 1 process log is damaged")


def test_a_truncated_log_is_named_first(tmp_path: Path) -> None:
    path = ProcessLog(records=[HEALTHY], process={"records": 7}).write(tmp_path)
    check_incomplete(analyze(read([path])), "1 of 1 process log is damaged")


@pytest.mark.parametrize("rank_of_note", [0, -1])
def test_an_untraced_program_is_named_first(tmp_path: Path, rank_of_note: int) -> None:
    size = 1 if rank_of_note == 0 else 0
    log = ProcessLog(rank=rank_of_note, size=size, records=[HEALTHY], notes=[UNSEEN])
    check_incomplete(analyze_logs(tmp_path, log), "/bin/static was not followed")


def test_a_helper_of_the_launcher_is_no_part_of_the_run(tmp_path: Path) -> None:
    launcher = ProcessLog(pid=10, records=[HEALTHY], notes=[UNSEEN])
    verdict = analyze_logs(tmp_path, launcher, rank(0, 1)).verdict
    assert (verdict.unseen, verdict.bound) == ((), "compute")


def test_a_launcher_whose_command_has_no_log_is_named_first(tmp_path: Path) -> None:
    ProcessLog(host="a", pid=7, records=[HEALTHY]).write(tmp_path)
    for number, pid in ((0, 7), (1, 8)):
        described = {"command": ["app"], "launchers": 2, "host": "a", "pid": pid, "rank": number}
        (tmp_path / f"launcher.{number}.json").write_text(json.dumps(described))
    (tmp_path / "job.json").write_text(
        json.dumps({"command": ["app"], "launchers": 2, "host": "a", "pid": 7, "start": 1.7e9})
    )
    check_incomplete(analyze(read([tmp_path])), "launcher 1 of 2 has no log of its command")


def test_the_traced_part_is_still_judged(tmp_path: Path) -> None:
    slow = {"path": "/a", "writes": 100, "bytes_written": 10**9, "write_time": ticks(9.0)}
    slow |= {"first_write": moment(0.1), "last_write": moment(9.5)}
    log = ProcessLog(rank=0, size=2, records=[slow])
    verdict = analyze_logs(tmp_path, log).verdict
    assert verdict.bound == "io"
    assert verdict.sentence.startswith("Incomplete: rank 1 of 2 has no log. ")
    assert "I/O costs 9.00 s (90 %) of the 10.0 s" in verdict.sentence
