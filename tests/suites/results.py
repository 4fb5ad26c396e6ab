"""What became of the programs: kept per MPI and kind of MPI-IO, so that a run can go on where it was left and a table be made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.mpi.conftest import MPIS
from tests.suites.runs import Result
from tests.suites.sources import SUITES
from tests.suites.table import Program, Suite, suites

KINDS = {"pario": "pario's MPI-IO", "own": "the MPI's own MPI-IO"}


class Results:
    """Verdicts under one MPI, with its own MPI-IO or with pario's."""

    def __init__(self, mpi: str, kind: str) -> None:
        self._path = SUITES / "results" / f"{mpi}-{kind}.json"

    def _rows(self) -> dict[str, list[str]]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}

    def add(self, result: Result) -> None:
        rows = self._rows() | {_key(result.program): [result.verdict, result.why]}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._path.with_suffix(".new")
        whole.write_text(json.dumps(rows, indent=1))
        whole.replace(self._path)

    def of(self, program: Program) -> Result | None:
        row = self._rows().get(_key(program))
        return Result(program, row[0], row[1]) if row else None


def _key(program: Program) -> str:
    return f"{program.suite} {program}"


def closing_line(suite: Suite, mpi: str, results: Iterable[Result]) -> str:
    """One line for a suite under an MPI: 27 of 29 passed; failed: a -n 4, b -n 2."""
    verdicts: dict[str, list[Result]] = {"passed": [], "failed": [], "skipped": []}
    for result in results:
        verdicts[result.verdict].append(result)
    line = f"{suite.name} on {mpi}: {len(verdicts['passed'])} of {len(verdicts['passed']) + len(verdicts['failed'])} passed"
    if verdicts["failed"]:
        line += "; failed: " + ", ".join(str(result.program) for result in verdicts["failed"])
    if verdicts["skipped"]:
        line += f"; {len(verdicts['skipped'])} skipped: " + ", ".join(sorted({result.why for result in verdicts["skipped"]}))
    return line


def table(kind: str) -> Iterator[str]:
    """A table in Markdown: a row per suite, a column per MPI, passed/run; what failed and was skipped below it."""
    mpis = [mpi for mpi in MPIS if (SUITES / "results" / f"{mpi}-{kind}.json").exists()]
    kept = {mpi: Results(mpi, kind) for mpi in mpis}
    yield f"| {KINDS[kind]} | {' | '.join(mpis)} |"
    yield "|---" * (len(mpis) + 1) + "|"
    remaining: dict[str, list[str]] = {}
    for suite in suites().values():
        cells = []
        for mpi in mpis:
            results = [result for program in suite.programs if (result := kept[mpi].of(program))]
            run = [result for result in results if result.verdict != "skipped"]
            cells.append(f"{sum(result.verdict == 'passed' for result in run)}/{len(run)}" if run else "-")
            for one in (one for one in results if one.verdict != "passed"):
                remaining.setdefault(f"{suite.name} on {mpi}, {one.verdict}: {one.why}", []).append(str(one.program))
        yield f"| {suite.name} ({len(suite.programs)}) | {' | '.join(cells)} |"
    yield ""
    for why, programs in remaining.items():
        yield f"- {why} ({', '.join(programs[:4])}{f' and {len(programs) - 4} others' if len(programs) > 4 else ''})"


def kind_of(library: Path | None) -> str:
    return "pario" if library else "own"
