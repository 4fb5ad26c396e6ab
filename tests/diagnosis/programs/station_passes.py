"""Parses the same table of stations for each of them."""

from pathlib import Path

from work import compute, repaired, size


def read_table():
    with Path("stations.txt").open() as file:
        rows = [line.split() for line in file]
    return [(int(row[0]), int(row[-1])) for row in rows]


table = read_table() if repaired else []
total = 0
for station in range(size):
    rows = table if repaired else read_table()
    total += sum(number for number, place in rows[:: size + 1] if place > station)
compute()
print(size, "stations, sum", total)
