"""Appends each line to a compressed file as a member of its own."""

import gzip

from work import compute, repaired, size

if repaired:
    with gzip.open("lines.gz", "wt", compresslevel=1) as file:
        for number in range(size):
            file.write(f"line {number}\n")
else:
    for number in range(size):
        with gzip.open("lines.gz", "at", compresslevel=1) as file:
            file.write(f"line {number}\n")
compute()
with gzip.open("lines.gz", "rt") as file:
    print(sum(1 for _ in file), "lines")
