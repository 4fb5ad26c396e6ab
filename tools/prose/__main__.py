"""Checks the language of the tree; limits.toml holds one limit for each rule.

Options: ``--list RULE`` prints the findings of a rule, ``--update`` lowers the limits to the
measured numbers. A limit never rises, and holds for the whole tree.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.prose import rules
from tools.prose.history import find_bad_subjects
from tools.prose.rules import Finding, Source

ROOT = Path(__file__).parents[2]
LIMITS = Path(__file__).parent / "limits.toml"
DIALECT = Path(__file__).parent / "dialect.toml"
#: Generated files, data of tests, and texts of others.
EXCLUDED = ("tests/fuzz/corpus/", "tests/python/fixtures/", "tests/python/golden/", "LICENSE")
SUFFIXES = frozenset(
    ".py .pyi .cpp .hpp .c .h .def .md .sh .toml .cmake .txt .f90 .mk .js .css".split()
)
NAMES = frozenset({"Makefile", "run"})

Rule = Callable[[Sequence[Source]], list[Finding]]


def make_rules(root: Path) -> dict[str, Rule]:
    dialect = rules.load_dialect(DIALECT)
    return {
        "long-lines": lambda sources: list(rules.find_long_lines(sources)),
        "what": lambda sources: list(rules.find_what(sources)),
        "clause-subjects": lambda sources: list(rules.find_clause_subjects(sources)),
        "dialect": lambda sources: list(rules.find_dialect(sources, dialect)),
        "participle-names": lambda sources: list(rules.find_participle_names(sources)),
        "empty-docstrings": lambda sources: list(rules.find_empty_docstrings(sources)),
        "commit-subjects": lambda sources: list(find_bad_subjects(root)),
    }


def read_sources(root: Path) -> list[Source]:
    """Read the tracked text files under ``root``."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True
    )
    sources = []
    for name in listed.stdout.splitlines():
        path = root / name
        known = path.suffix in SUFFIXES or path.name in NAMES
        if known and not name.startswith(EXCLUDED) and path.is_file():
            sources.append(Source(name, path.read_text(encoding="utf-8")))
    return sources


def measure(name: str, findings: Sequence[Finding], sources: Sequence[Source]) -> float:
    """Return the number that is compared with the limit: for "what", uses per 1,000 words."""
    if name != "what":
        return len(findings)
    return math.ceil(len(findings) * 10_000 / max(rules.count_words(sources), 1)) / 10


def compare(measured: dict[str, float], limits: dict[str, float]) -> list[str]:
    """List the rules whose limit is exceeded; a rule without a limit has the limit 0."""
    return [
        f"{name}: {number:g}, at most {limits.get(name, 0):g} (python -m tools.prose --list {name})"
        for name, number in measured.items()
        if number > limits.get(name, 0)
    ]


def lower(limits: dict[str, float], measured: dict[str, float]) -> dict[str, float]:
    """Return the limits, lowered to the measured numbers where those are smaller."""
    return {name: min(number, limits.get(name, number)) for name, number in measured.items()}


def read_limits(path: Path) -> dict[str, float]:
    return tomllib.loads(path.read_text(encoding="utf-8"))["limits"] if path.exists() else {}


def write_limits(path: Path, limits: dict[str, float]) -> None:
    rows = "".join(f"{name} = {number:g}\n" for name, number in limits.items())
    path.write_text(
        "# The limits of the language check, for the whole tree; `python -m tools.prose --update`\n"
        "# lowers them. The pronoun is counted per 1,000 words; its target is 1.\n"
        f"[limits]\n{rows}",
        encoding="utf-8",
    )


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, limits: Path = LIMITS) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__)
    table = make_rules(root)
    parser.add_argument("--list", choices=table, metavar="RULE", help="print the findings")
    parser.add_argument("--update", action="store_true", help="lower the limits")
    options = parser.parse_args(arguments)
    sources = read_sources(root)
    if options.list:
        print(*table[options.list](sources), sep="\n")
        return 0
    measured = {name: measure(name, rule(sources), sources) for name, rule in table.items()}
    if options.update:
        write_limits(limits, lower(read_limits(limits), measured))
    problems = compare(measured, read_limits(limits))
    for name, number in measured.items():
        print(f"{name:18} {number:g}")
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
