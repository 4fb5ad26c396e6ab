"""Writes the counts of campaigns (faults, crashes, fuzzers, kills) of result files as a table.

usage: python -m tools.write_campaigns RESULTS... >> PAGE

A result file of `make test-all`, or of one of its steps alone; a line of a later file replaces
that of an earlier one. docs/campaigns.md has such a table.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.support.results_file import Result, ResultsError, read_results
from tests.support.run_header import parse_commit

#: Counts in the order of the columns; a test without them takes no part.
_COLUMNS = ("runs", "absorbed", "reported", "killed", "whole", "violated", "inputs", "kills")
_GROUP = re.compile(r"[\[,].*")


def count_groups(results: Iterable[Result]) -> dict[str, Counter[str]]:
    """The counts by campaign and scenario, such as `faults::pack`."""
    groups: dict[str, Counter[str]] = {}
    for result in results:
        if counts := {key: n for key, n in result.counts.items() if key in _COLUMNS}:
            name = _GROUP.sub("", result.test)
            groups.setdefault(name, Counter()).update(counts)
    return groups


def write_table(groups: dict[str, Counter[str]]) -> Iterator[str]:
    """The table in Markdown; columns without counts are left out."""
    total: Counter[str] = sum(groups.values(), Counter())
    columns = [column for column in _COLUMNS if total[column] or column == "violated"]
    yield f"| campaign | {' | '.join(columns)} |"
    yield f"|:--|{'--:|' * len(columns)}"
    for name, counts in (*groups.items(), ("all", total)):
        cells = (f"{counts[column]:,}" if counts[column] else "" for column in columns)
        yield f"| {name} | {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    latest: dict[str, Result] = {}
    for name in arguments:
        try:
            results = read_results(Path(name))
        except (OSError, ResultsError) as error:
            print(f"write_campaigns: {error}", file=sys.stderr)
            return 2
        print(f"<!-- {Path(name).name}: commit {parse_commit(results.header)} -->")
        latest |= results.latest
    print("\n".join(write_table(count_groups(latest.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
