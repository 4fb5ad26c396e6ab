"""Opens the CSV file for each row that it appends."""

import csv
from pathlib import Path

from work import compute, repaired, size


def rows() -> list[list[object]]:
    return [[number, number * 3, "done"] for number in range(size)]


if repaired:
    with Path("table.csv").open("a", newline="") as file:
        csv.writer(file).writerows(rows())
else:
    for row in rows():
        with Path("table.csv").open("a", newline="") as file:
            csv.writer(file).writerow(row)
compute()
print(size, "rows")
