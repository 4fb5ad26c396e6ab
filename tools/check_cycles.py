"""Checks that no files of a Python package import each other, directly or through other files.

Imports inside of functions and under TYPE_CHECKING count, too: they hide a cycle, they do not
remove it. import-linter checks the layers of packages; this check covers files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("python/pario", "tools")


def list_modules(package: Path) -> dict[str, Path]:
    """List the modules under the folder of a package by their full names."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


def list_imports(source: str, modules: Mapping[str, object]) -> set[str]:
    """List those of ``modules`` that a source imports anywhere.

    ``from a import b`` imports module ``a.b`` if there is one, otherwise ``a``.
    """
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = names & modules.keys()
            imported |= inner if inner == names else inner | {node.module}
    return imported & modules.keys()


def find_cycles(edges: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield one cycle of modules at a time; an edge of each is removed to find the next."""
    remaining = {name: set(targets) for name, targets in edges.items()}
    while True:
        try:
            TopologicalSorter(remaining).prepare()
            return
        except CycleError as error:
            # The sorter lists each module behind one that imports it.
            cycle: list[str] = error.args[1][::-1]
            yield " -> ".join(cycle)
            remaining[cycle[0]].discard(cycle[1])


def find_problems(package: Path) -> list[str]:
    modules = list_modules(package)
    sources = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    edges = {name: list_imports(text, modules) - {name} for name, text in sources.items()}
    return [f"cycle of imports: {cycle}" for cycle in find_cycles(edges)]


def main() -> int:
    problems = [problem for package in PACKAGES for problem in find_problems(ROOT / package)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
