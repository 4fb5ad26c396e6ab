"""Campaigns run several series at a time, and leave out the results that they have."""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.campaigns import Series, add_options, run_campaign, run_series
from tests.support.results_file import BROKEN, Result, read_results
from tests.support.waiting import wait_until


def make_series(name: str, outcomes: str, known: Collection[str]) -> Iterator[Result]:
    for number, outcome in enumerate(outcomes.split()):
        test = f"{name}::{number}"
        if test not in known:
            yield Result(test, outcome, counts={"runs": 3})


def run(place: Path, series: list[Series], *options: str) -> int:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return run_campaign(parser.parse_args([f"--results={place}", *options]), series)


def test_results_that_are_good_here_or_in_a_part_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both: list[Series] = [
        partial(make_series, "a", "passed failed"),
        partial(make_series, "b", "passed xfailed"),
    ]
    part, whole = tmp_path / "part", tmp_path / "whole"
    assert run(part, both[:1]) == BROKEN
    assert capsys.readouterr().out == "a::0: runs 3\na::1: runs 3\n"
    assert run(whole, both, f"--part={part}", "--jobs=2") == BROKEN
    assert sorted(read_results(whole).latest) == ["a::1", "b::0", "b::1"]
    assert run(whole, both[1:]) == 0
    assert {row.test: row.outcome for row in read_results(part).latest.values()} == {
        "a::0": "passed",
        "a::1": "failed",
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_so_many_series_run_at_a_time(jobs: int, tmp_path: Path) -> None:
    def meet(name: str, _: Collection[str]) -> Iterator[Result]:
        (tmp_path / name).touch()
        if jobs == 2:
            wait_until(lambda: len([*tmp_path.iterdir()]) == 2, "the other series")
        yield Result(name, "passed", counts={"seen": len([*tmp_path.iterdir()])})

    results = [*run_series([partial(meet, "a"), partial(meet, "b")], (), jobs)]
    assert sorted(result.test for result in results) == ["a", "b"]
    assert [result.counts["seen"] for result in results] == ([1, 2] if jobs == 1 else [2, 2])


@pytest.mark.parametrize("killed", [False, True])
def test_a_series_that_fails_is_an_error_when_the_others_have_ended(killed: bool) -> None:
    def fail(_: Collection[str]) -> Iterator[Result]:
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("why")
        yield

    def work(_: Collection[str]) -> Iterator[Result]:
        yield Result("good", "passed")

    results = run_series([fail, work], (), 1)
    assert next(results).test == "good"
    with pytest.raises(RuntimeError, match="a series has failed"):
        next(results)
