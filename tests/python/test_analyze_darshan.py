"""The logs in the darshan package: all of them are analyzed, and known ones give known results."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.see.analyze import Analysis, analyze
from pario.see.tables import read

darshan = pytest.importorskip("darshan")
LOGS = sorted(
    {path.name: path for path in Path(darshan.__file__).parent.rglob("*.darshan")}.values()
)


def analysis(name: str) -> Analysis:
    return analyze(read([next(path for path in LOGS if path.name == name)]))


@pytest.mark.system
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem[:30])
def test_every_log_is_analysed(path: Path) -> None:
    result = analyze(read([path]))
    assert result.verdict.sentence
    assert result.functions
    assert sum(finding.seconds for finding in result.findings) <= result.job.wall


@pytest.mark.system
def test_overloaded_target_is_named_with_its_seconds() -> None:
    (finding,) = analysis("sample-badost.darshan").findings
    assert finding.rule == "slow-target"
    assert finding.title.startswith("OST 14 is slow: 85 files")
    assert finding.seconds == pytest.approx(767, abs=5)
    assert 1507 in finding.ranks


def test_job_on_healthy_targets_has_no_finding() -> None:
    assert analysis("sample-goodost.darshan").findings == ()


@pytest.mark.system
def test_waiting_for_the_partner_of_a_named_pipe_is_not_io() -> None:
    assert analysis("dxt.darshan").verdict.critical.io < 1
