"""What the findings promise against what the repairs save, for the bad programs of tests/badio.

Per pair, alternately and untraced: the bad program and its repaired twin; their difference is what the repair saves. Then the bad
program and the twin under pario's library: the first finding and its seconds. Prints a table in Markdown.

    python bench/badio.py [--runs 5] [--dir DIRECTORY] [program ...]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]


from tests.badio import programs  # noqa: E402
from tests.badio.programs import Program, Tracing  # noqa: E402

from pario.analyze import analyze  # noqa: E402
from pario.analyze.model import Finding  # noqa: E402
from pario.tables import read  # noqa: E402


@dataclass(frozen=True)
class Place:
    built: Path
    work: Path
    library: Path
    runs: int
    scale: float


@dataclass(frozen=True)
class Row:
    program: Program
    bad: float  # seconds of the run, medians
    repaired: float
    findings: list[list[Finding]]  # of the bad program, one list per traced run
    twin_worst: float  # share of the run of the worst finding of any traced run of the twin

    @property
    def saved(self) -> float:
        return self.bad - self.repaired

    def markdown(self) -> str:
        tops = [found[0] for found in self.findings if found]
        right = sum(top.rule == self.program.rule for top in tops)
        named = sorted({top.rule for top in tops}) or ["none"]
        promised = statistics.median(
            [found[0].seconds if found else 0.0 for found in self.findings]
        )
        ratio = f"{promised / self.saved:.2f}" if self.saved > 0 else "-"
        cells = [
            self.program.name,
            ", ".join(named),
            f"{right}/{len(self.findings)}",
            f"{self.bad:.2f}",
            f"{self.repaired:.2f}",
        ]
        cells += [f"{self.saved:.2f}", f"{promised:.2f}", ratio, f"{100 * self.twin_worst:.1f} %"]
        return f"| {' | '.join(cells)} |"


HEADER = """\
| program | first finding | right | bad, s | repaired, s | saved, s | promised, s | promised/saved | worst of twin |
|---|---|---|---|---|---|---|---|---|"""


def timed(place: Place, program: Program, *, repaired: bool) -> float:
    programs.prepare(program, place.built, place.work, place.scale)
    return programs.run(
        program, place.built, place.work, repaired=repaired, scale=place.scale
    ).seconds


def traced(place: Place, program: Program, *, repaired: bool) -> tuple[float, list[Finding]]:
    programs.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as log:
        tracing = Tracing(place.library, Path(log))
        run = programs.run(
            program, place.built, place.work, repaired=repaired, scale=place.scale, tracing=tracing
        )
        return run.seconds, list(analyze(read([Path(log)])).findings)


def share(run: tuple[float, list[Finding]]) -> float:
    seconds, found = run
    return found[0].seconds / seconds if found else 0.0


def measure(place: Place, program: Program) -> Row:
    pairs = [
        (timed(place, program, repaired=False), timed(place, program, repaired=True))
        for _ in range(place.runs)
    ]
    findings = [traced(place, program, repaired=False)[1] for _ in range(place.runs)]
    twins = [share(traced(place, program, repaired=True)) for _ in range(place.runs)]
    return Row(
        program,
        statistics.median(bad for bad, _ in pairs),
        statistics.median(twin for _, twin in pairs),
        findings,
        max(twins),
    )


def healthy(place: Place, program: Program) -> str:
    runs = [traced(place, program, repaired=False) for _ in range(place.runs)]
    worst = max(share(run) for run in runs)
    named = sorted({found[0].rule for _, found in runs if found}) or ["none"]
    seconds = statistics.median(seconds for seconds, _ in runs)
    return (
        f"| {program.name} | {', '.join(named)} | | {seconds:.2f} | | | | | {100 * worst:.1f} % |"
    )


def chosen(names: list[str]) -> Iterator[Program]:
    for program in programs.table():
        if (not names or program.name in names) and (programs.mpiexec() or not program.ranks):
            yield program


@contextmanager
def parse(description: str | None) -> Iterator[tuple[Place, list[str]]]:
    """The command line: where the programs are built and work, and the names of those that are wanted."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of each kind; the table shows medians (default 3)"
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path(),
        help="where the programs work: the file system that is measured (default .)",
    )
    parser.add_argument(
        "--scale", type=float, default=1, help="of what the programs do (default 1)"
    )
    parser.add_argument("programs", nargs="*", help="names of programs (default: all)")
    options = parser.parse_args()
    library = programs.library()
    if library is None:
        parser.error("pario's library is not installed; set PARIO_LIBRARY to a build's libpario.so")
    with (
        tempfile.TemporaryDirectory() as built,
        tempfile.TemporaryDirectory(dir=options.dir) as work,
    ):
        place = Place(Path(built), Path(work), library, options.runs, options.scale)
        programs.build(place.built)
        yield place, options.programs


def main() -> int:
    with parse(__doc__) as (place, names):
        print(HEADER)
        for program in chosen(names):
            print(
                healthy(place, program) if program.healthy else measure(place, program).markdown(),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
