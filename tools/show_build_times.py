"""Prints how the seconds of a build are divided: by module, and the slowest files.

    tools/show_build_times.py BUILD_DIRECTORY [--files N]

Reads ninja's log. Seconds are summed over the compilers that ran at the same time; each file counts
with its latest build.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path


def read_log(text: str) -> dict[str, float]:
    """Seconds by output file. Lines: start and end in milliseconds, time stamp, output, hash."""
    seconds = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 5:
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def module_of(output: str) -> str:
    """Module or test executable that an output belongs to."""
    target = re.search(r"CMakeFiles/(?:pario_)?([^/]+)\.dir/", output)
    return target.group(1) if target else "links and other steps"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("build", type=Path)
    parser.add_argument("--files", type=int, default=10, metavar="N", help="slowest files to list")
    arguments = parser.parse_args()
    log = arguments.build / ".ninja_log"
    if not log.exists():
        print(f"{log}: no such file; expected a build directory of ninja", file=sys.stderr)
        return 2
    seconds = read_log(log.read_text())
    modules: Counter[str] = Counter()
    for output, cost in seconds.items():
        modules[module_of(output)] += cost
    print(f"{sum(seconds.values()):.0f} compiler seconds in {len(seconds)} steps")
    for module, cost in modules.most_common():
        print(f"{cost:8.1f} s  {module}")
    print("slowest files:")
    for output, cost in sorted(seconds.items(), key=lambda item: -item[1])[: arguments.files]:
        print(f"{cost:8.1f} s  {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
