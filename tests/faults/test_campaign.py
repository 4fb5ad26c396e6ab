"""The campaigns find broken promises; in a sample of them pario's operations keep theirs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults.scenarios import SCENARIOS
from tests.faults.tracing import TracerError, load_tracer
from tests.support.commands import run_command
from tests.support.results_file import BROKEN, Result, read_results

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def tracer() -> None:
    try:
        load_tracer()
    except TracerError as error:
        pytest.skip(str(error))


def run_campaign(
    module: str, campaign: str, results: Path, *options: str
) -> tuple[int, list[Result]]:
    command = [sys.executable, "-m", f"tests.faults.{module}", campaign, *options]
    done = run_command([*command, f"--results={results}"], cwd=ROOT)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, list(read_results(results).latest.values())


def find_violations(results: list[Result]) -> dict[str, str]:
    return {result.test: result.reason for result in results if not result.good}


@pytest.mark.system
def test_a_careful_writer_keeps_its_promise_at_every_call(tmp_path):
    status, results = run_campaign("examples", "faults", tmp_path / "results", "--scenario=aside")
    assert (status, find_violations(results)) == (0, {})
    counts = {result.test: dict(result.counts) for result in results}
    assert counts["faults::aside[write,ENOSPC]"] == {"runs": 1, "reported": 1}
    assert counts["faults::aside[write,short]"] == {"runs": 1, "absorbed": 1}
    assert counts["faults::aside[rename,kill]"] == {"runs": 1, "killed": 1}


@pytest.mark.system
def test_faults_expose_a_writer_in_place(tmp_path):
    status, results = run_campaign(
        "examples", "faults", tmp_path / "results", "--scenario=in-place"
    )
    found = find_violations(results)
    assert status == BROKEN
    assert found["faults::in-place[write,ENOSPC+]"] == "failed, and the file holds ''"
    assert found["faults::in-place[write,kill]"] == "failed, and the file holds ''"
    assert "faults::in-place[open,EIO]" not in found


@pytest.mark.system
def test_crashes_expose_the_writer_in_place_alone(tmp_path):
    status, results = run_campaign("examples", "crashes", tmp_path / "results")
    assert status == BROKEN
    assert list(find_violations(results)) == ["crashes::in-place"]
    assert all(result.counts["runs"] > 3 for result in results)


@pytest.mark.system
def test_a_campaign_goes_on_where_it_was_left(tmp_path):
    results = tmp_path / "results"
    run_campaign("examples", "crashes", results, "--scenario=aside")
    size = results.stat().st_size
    assert run_campaign("examples", "crashes", results, "--scenario=aside")[0] == 0
    assert results.stat().st_size == size


@pytest.mark.system
def test_a_sample_of_faults_breaks_no_promise(tmp_path):
    status, results = run_campaign("campaign", "faults", tmp_path / "results", "--sample=2")
    assert (status, find_violations(results)) == (0, {})
    assert sum(result.counts["runs"] for result in results) == 2 * len(SCENARIOS)


@pytest.mark.system
@pytest.mark.parametrize(
    "scenario",
    [
        "checkpoint",
        "pack",
        "stage-out",
        "settings",
    ],
)
def test_a_sample_of_crashes_breaks_no_promise(tmp_path, scenario):
    options = (f"--scenario={scenario}", "--sample=20")
    status, results = run_campaign("campaign", "crashes", tmp_path / "results", *options)
    assert (status, find_violations(results)) == (0, {})
