"""Compares recorded measurements: the medians before and after, and their ratio.

    python bench/compare.py BEFORE AFTER [--value COLUMN]

BEFORE and AFTER are CSV files of bench/results or directories with such files. PATH@RUN or
PATH@COMMIT selects a run by its number, or the runs of a commit: two versions that were measured
on one day are in one file.

Rows of equal case (all columns before `round`) are compared by their first result, or by --value.
The ratio is after/before: the median of the ratios of equal rounds, with the smallest and the
largest of them. If the rounds of both sides differ (marked ~), each measurement before is compared
with each one after.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recording import CASE_END, RUN_COLUMNS

HEADER = "| case | before | after | after/before | from - to | n |\n|---|---|---|---|---|---|"
#: Digits from which a selection can be a commit.
COMMIT_DIGITS = 7

Case = tuple[tuple[str, str], ...]  # columns and cells
Round = tuple[int, str]  # position of its run among the selected runs, number within the run


@dataclass
class Benchmark:
    """The results of one benchmark: per case the values of each round."""

    column: str  # of the values
    cases: dict[Case, dict[Round, list[float]]] = field(default_factory=dict)


def read_benchmarks(source: str, value: str | None) -> dict[str, Benchmark]:
    """Reads the CSV files that BEFORE or AFTER names, by benchmark.

    NAME-2.csv belongs to NAME; it has other columns, and counts if it has the same result.
    """
    text, _, selected = source.partition("@")
    path = Path(text)
    if not path.exists():
        raise SystemExit(f"{text} does not exist")
    found: dict[str, Benchmark] = {}
    for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
        add_rows(found, re.sub(r"-\d+$", "", file.stem), list(read_rows(file, selected)), value)
    return found


def read_rows(file: Path, selected: str) -> Iterator[dict[str, str]]:
    """Reads the rows of the selected runs."""
    with file.open(newline="", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if CASE_END not in row:
                raise SystemExit(f"{file} is not a file of bench/results: no column {CASE_END!r}")
            of_commit = len(selected) >= COMMIT_DIGITS and row["commit"].startswith(selected)
            if selected in ("", row["run"]) or of_commit:
                yield row


def add_rows(
    found: dict[str, Benchmark], name: str, rows: list[dict[str, str]], value: str | None
) -> None:
    """Adds the rows of one file to its benchmark."""
    if not rows:
        return
    columns = list(rows[0])
    end = columns.index(CASE_END)
    column = value or columns[end + 1]
    if column not in columns[end:]:
        return
    benchmark = found.setdefault(name, Benchmark(column))
    if benchmark.column != column:
        return
    runs = {run: position for position, run in enumerate(dict.fromkeys(row["run"] for row in rows))}
    for row in rows:
        if row[column]:
            case = tuple((key, row[key]) for key in columns[len(RUN_COLUMNS) : end])
            rounds = benchmark.cases.setdefault(case, {})
            rounds.setdefault((runs[row["run"]], row[CASE_END]), []).append(float(row[column]))


def find_ratios(
    before: dict[Round, list[float]], after: dict[Round, list[float]]
) -> tuple[bool, list[float]]:
    """Returns whether the rounds are equal, and the ratios by round or of all pairs."""
    own, other = (
        {key: statistics.median(values) for key, values in side.items()} for side in (before, after)
    )
    paired = own.keys() == other.keys()
    pairs = (
        [(own[key], other[key]) for key in own]
        if paired
        else [(one, two) for one in own.values() for two in other.values()]
    )
    return paired, [two / one for one, two in pairs if one]


def compare_case(
    case: Case, before: dict[Round, list[float]], after: dict[Round, list[float]]
) -> str:
    """Returns a row of the table."""
    values = [[value for values in side.values() for value in values] for side in (before, after)]
    medians = [f"{statistics.median(side):.4g}" for side in values]
    paired, ratios = find_ratios(before, after)
    cells = ["", ""]
    if ratios:
        mark = "" if paired else "~"
        cells = [f"{mark}{statistics.median(ratios):.3f}", f"{min(ratios):.3f} - {max(ratios):.3f}"]
    counts = "/".join(str(count) for count in dict.fromkeys(len(side) for side in values))
    return f"| {' | '.join([describe_case(case), *medians, *cells, counts])} |"


def describe_case(case: Case) -> str:
    """Returns the way alone and the other cells with their columns: pack, files=1000."""
    return ", ".join(cell if key == "way" else f"{key}={cell}" for key, cell in case if cell)


def compare(before: dict[str, Benchmark], after: dict[str, Benchmark]) -> Iterator[str]:
    """Returns the lines of all tables; cases of one side only are counted below them."""
    for name in sorted(before.keys() & after.keys()):
        own, other = before[name], after[name]
        if own.column != other.column:
            yield f"\n{name}: {own.column} before, {other.column} after: not compared"
            continue
        yield f"\n{name}, {own.column}\n"
        yield HEADER
        common = [case for case in own.cases if case in other.cases]
        yield from (compare_case(case, own.cases[case], other.cases[case]) for case in common)
        if alone := len(own.cases) + len(other.cases) - 2 * len(common):
            yield f"\nCases measured on one side only: {alone}."
    if alone_names := sorted(before.keys() ^ after.keys()):
        yield f"\nBenchmarks measured on one side only: {', '.join(alone_names)}."


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", metavar="BEFORE")
    parser.add_argument("after", metavar="AFTER")
    parser.add_argument("--value", metavar="COLUMN", help="compared result (default: the first)")
    arguments = parser.parse_args()
    sides = [read_benchmarks(side, arguments.value) for side in (arguments.before, arguments.after)]
    if not sides[0].keys() & sides[1].keys():
        raise SystemExit(f"{arguments.before} and {arguments.after} have no benchmark in common")
    print("\n".join(compare(*sides)).lstrip("\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
