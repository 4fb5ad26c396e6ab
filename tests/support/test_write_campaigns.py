"""The table of campaigns."""

from __future__ import annotations

from tests.support.results_file import Result
from tools.write_campaigns import count_groups, write_table


def test_counts_are_added_up_by_scenario_and_tests_without_counts_are_left_out():
    results = [
        Result("faults::pack[write,EIO]", "passed", counts={"runs": 3, "reported": 3}),
        Result("faults::pack[open,kill]", "passed", counts={"runs": 2, "killed": 2}),
        Result("tests/a.py::test_x", "passed"),
        Result("tests/a.py::test_kills[1]", "passed", counts={"kills": 1200}),
    ]
    assert list(write_table(count_groups(results))) == [
        "| campaign | runs | reported | killed | violated | kills |",
        "|:--|--:|--:|--:|--:|--:|",
        "| faults::pack | 5 | 3 | 2 |  |  |",
        "| tests/a.py::test_kills |  |  |  |  | 1,200 |",
        "| all | 5 | 3 | 2 |  | 1,200 |",
    ]
