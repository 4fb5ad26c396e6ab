"""Two builds are measured in turn (bench/in_turn.py)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import in_turn

sys.path.pop(0)

#: A benchmark whose seconds are those of its clone; it appends a run to results/DAY/toy.csv.
TOY = """
import argparse
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--results", type=Path)
parser.add_argument("--most-load", type=float)
parser.add_argument("--library", type=Path)
arguments = parser.parse_args()
day = arguments.results / "2026-05-04-toy-2c"
day.mkdir(parents=True, exist_ok=True)
table = day / "toy.csv"
rows = table.read_text() if table.exists() else "run,started,commit,way,round,seconds\\n"
run = rows.count("\\n")
seconds = 2 if "after" in str(arguments.library) else 1
table.write_text(rows + f"{run},now,0,tracer,1,{seconds}\\n")
"""


def make_clone(folder: Path) -> Path:
    """A clone that has an interpreter."""
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    return folder


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Replaces the benchmarks by one that returns at once."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/toy.py").write_text(TOY)
    monkeypatch.setattr(in_turn, "HERE", tmp_path / "bench")
    monkeypatch.setattr(in_turn, "STEPS", (in_turn.Step("toy", "--library {library}"),))
    clones = [make_clone(tmp_path / side) for side in in_turn.SIDES]
    monkeypatch.setattr(sys, "argv", ["in_turn.py", *map(str, clones), "--rounds", "3"])


def test_sides_take_turns_and_the_first_of_a_round_is_the_last_of_the_one_before():
    order = [side for _, side in in_turn.plan(3)]
    assert order == ["before", "after", "after", "before", "before", "after"]


def test_the_table_pairs_the_rounds_of_both_builds(toy, capsys):
    in_turn.main()
    assert "| tracer | 1 | 2 | 2.000 | 2.000 - 2.000 | 3 |" in capsys.readouterr().out


def test_a_benchmark_that_fails_ends_the_comparison(toy, monkeypatch):
    (in_turn.HERE / "toy.py").write_text("raise SystemExit(3)")
    with pytest.raises(SystemExit, match=r"toy of .*before ended with status 3"):
        in_turn.main()
