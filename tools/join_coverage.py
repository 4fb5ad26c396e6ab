"""Joins the coverage of C++ (gcovr) and Python (coverage.py) into one file, and prints it.

tools/join_coverage.py DIRECTORY NAME reads NAME-cpp.json and NAME-python.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> int:
    directory, name = Path(sys.argv[1]), sys.argv[2]
    cpp = json.loads((directory / f"{name}-cpp.json").read_text())
    python = json.loads((directory / f"{name}-python.json").read_text())["totals"]
    joined = {
        "cpp": {"lines": cpp["line_total"], "covered": cpp["line_covered"]},
        "python": {"lines": python["num_statements"], "covered": python["covered_lines"]},
    }
    (directory / f"{name}.json").write_text(json.dumps(joined, indent=1) + "\n")
    for language, count in joined.items():
        share = 100 * count["covered"] / count["lines"]
        print(f"{name}: {language} {share:.1f} % of {count['lines']:,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
