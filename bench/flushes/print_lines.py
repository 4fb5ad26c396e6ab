"""print_lines.py FILE LINES: a line at a time, each flushed by print."""

import sys
from pathlib import Path

with Path(sys.argv[1]).open("w") as out:
    for i in range(int(sys.argv[2])):
        print("line", i, 0.5 * i, file=out, flush=True)
