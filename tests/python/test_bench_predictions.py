"""bench/predictions.py: the page of promises beside measured gains."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from predictions import RESULTS, list_settings, read_last_run, render  # noqa: E402


def row(program: str, way: str, seconds: float, promised: float, run: int = 1) -> dict[str, Any]:
    return {
        "run": run,
        "program": program,
        "rule": "small-writes",
        "promise": "measured",
        "way": way,
        "seconds": seconds,
        "promised_seconds": promised,
    }


def record(folder: Path, rows: list[dict[str, Any]], **runs: bool) -> None:
    """Writes rows of bench/fix.py; ``runs``: r1=True is a complete run 1."""
    folder.mkdir(exist_ok=True)
    with (folder / "fix.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    entries = [
        {"benchmark": "fix", "run": int(name[1:]), "complete": complete}
        for name, complete in runs.items()
    ]
    (folder / "env.json").write_text(json.dumps({"runs": entries}))


def ways(program: str, bad: float, fixed: float, promised: float, run: int = 1) -> list[Any]:
    return [row(program, "bad", bad, promised, run), row(program, "fixed", fixed, promised, run)]


def test_a_promise_is_compared_with_the_gain_of_the_settings(tmp_path: Path) -> None:
    rows = [*ways("a", 2.0, 1.0, 0.8), *ways("b", 2.0, 1.9, 5.0), *ways("c", 2.0, 1.0, 4.0)]
    record(tmp_path / "2026-01-01-m", rows, r1=True)
    page = " ".join(render(tmp_path).split())
    assert "Of 2 programs whose repair saves at least 10 %, 2 had a promise." in page
    assert "1 are within a factor of 1.5 of the gain, and 1 beyond a factor of 3" in page
    assert "| small-writes | 2 | 2.40 | 4.00 (c) |" in page
    assert "| a | small-writes | measured | 2.00 | 0.80 | 1.00 | 0.80 |" in page
    assert "Of the measured programs, 1 save less than 10 %" in page


def test_the_last_complete_run_counts(tmp_path: Path) -> None:
    rows = [*ways("old", 2.0, 1.0, 1.0, 1), *ways("new", 2.0, 1.0, 1.0, 2)]
    rows += ways("broken", 2.0, 1.0, 1.0, 3)
    record(tmp_path / "2026-01-01-m", rows, r1=True, r2=True, r3=False)
    folder, found = read_last_run(tmp_path, "fix")
    assert folder == "2026-01-01-m"
    assert [one.program for one in list_settings(found)] == ["new"]


def test_the_page_states_the_runs_of_the_program_with_fewest(tmp_path: Path) -> None:
    rows = [*ways("a", 2.0, 1.0, 0.8), *ways("a", 2.1, 1.0, 0.8), *ways("b", 2.0, 1.0, 0.9)]
    record(tmp_path / "2026-01-01-m", rows, r1=True)
    assert "Each program has 1 run or more." in " ".join(render(tmp_path).split())
    record(tmp_path / "2026-01-01-m", rows[:4], r1=True)
    assert "Each program has 2 runs or more." in " ".join(render(tmp_path).split())


def test_a_repair_without_a_promise_is_counted_as_such(tmp_path: Path) -> None:
    record(tmp_path / "2026-01-01-m", ways("a", 2.0, 1.0, 0.0), r1=True)
    assert "1 programs whose repair saves at least 10 %, 0 had a promise" in (
        " ".join(render(tmp_path).split())
    )


@pytest.mark.skipif(not (ROOT / "docs/predictions.md").exists(), reason="nothing is recorded yet")
def test_the_page_is_that_of_the_recorded_rows() -> None:
    assert (ROOT / "docs/predictions.md").read_text() == render(RESULTS)
