"""csv_rows.py FILE LINES: a csv writer over a line-buffered file."""

import csv
import sys
from pathlib import Path

with Path(sys.argv[1]).open("w", newline="", buffering=1) as out:
    rows = csv.writer(out)
    for i in range(int(sys.argv[2])):
        rows.writerow(["line", i, 0.5 * i])
