"""The table of suites (suites.toml): programs, numbers of ranks, and arguments."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mpi.conftest import MPIS


@dataclass(frozen=True)
class Program:
    """One run of one program of a suite."""

    suite: str
    name: str
    ranks: int
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} -n {self.ranks}"


@dataclass(frozen=True)
class Suite:
    """Test programs of other projects."""

    name: str
    source: str
    folder: str
    recipe: str
    expect: str
    mpis: tuple[str, ...]
    quick: tuple[str, ...]
    quick_mpis: tuple[str, ...]
    polling: tuple[str, ...]
    programs: tuple[Program, ...]


def _program(suite: str, line: str) -> Program:
    name, ranks, *arguments = line.split()
    return Program(suite, name, int(ranks), tuple(arguments))


@cache
def suites() -> dict[str, Suite]:
    table = tomllib.loads(Path(__file__).with_name("suites.toml").read_text())
    return {
        name: Suite(
            name,
            row["source"],
            row["folder"],
            row["recipe"],
            row["expect"],
            tuple(row.get("mpis", MPIS)),
            tuple(row["quick"]),
            tuple(row.get("quick_mpis", row.get("mpis", MPIS))),
            tuple(row.get("polling", ())),
            tuple(_program(name, line) for line in row["programs"]),
        )
        for name, row in table.items()
    }
