"""Checks that files and functions stay small: at most 500 lines a file of the product, 700 lines
another one, 105 lines a function.

Functions of Python are checked here, those of C++ by clang-tidy.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT_LINES = 500  # of a file in src or python
FILE_LINES = 700
FUNCTION_LINES = 105


def list_tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def find_long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{place}: {node.name} has {lines} lines; at most {FUNCTION_LINES}"


def main() -> int:
    found = []
    for path in list_tracked("*.cpp", "*.hpp", "*.c", "*.h", "*.py", "*.S"):
        lines, name = len(path.read_text(encoding="utf-8").splitlines()), path.relative_to(ROOT)
        most = PRODUCT_LINES if name.parts[0] in ("src", "python") else FILE_LINES
        if lines > most:
            found.append(f"{name} has {lines} lines; at most {most}")
    for path in list_tracked("*.py"):
        found += find_long_functions(path)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
