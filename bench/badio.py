"""Compares promised with real savings for the bad programs of tests/badio.

Each bad program and its repaired twin run in turn, untraced; the difference of their seconds is
the saving of the repair. Then both run under pario's library: the first finding of the bad program
names a rule and the seconds that a repair would save. Prints a table in Markdown, of medians.

    python bench/badio.py [--runs 5] [--dir DIRECTORY] [program ...]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]


from measuring import make_parser  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.badio import programs  # noqa: E402
from tests.badio.programs import Program, Tracing  # noqa: E402

from pario.see.analyze import analyze  # noqa: E402
from pario.see.analyze.model import Finding  # noqa: E402
from pario.see.tables import read  # noqa: E402


@dataclass(frozen=True)
class Place:
    """Directories of a measurement, and how often and how large programs run there."""

    built: Path
    work: Path
    library: Path
    runs: int
    scale: float


@dataclass(frozen=True)
class Run:
    """A run: its seconds and, if it was traced, its findings, the most expensive one first."""

    seconds: float
    findings: list[Finding] = field(default_factory=list)

    @property
    def promised_seconds(self) -> float:
        return self.findings[0].seconds if self.findings else 0.0

    @property
    def rule(self) -> str:
        return self.findings[0].rule if self.findings else "none"


HEADER = """\
| program | first finding | right | bad, s | repaired, s | saved, s | promised, s \
| promised/saved | worst of twin |
|---|---|---|---|---|---|---|---|---|"""


def run_program(place: Place, program: Program, *, repaired: bool, traced: bool) -> Run:
    """Runs a bad program or its twin once, after preparing its input."""
    programs.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as log:
        tracing = Tracing(place.library, Path(log)) if traced else None
        run = programs.run(
            program,
            place.built,
            place.work,
            repaired=repaired,
            scale=place.scale,
            tracing=tracing,
        )
        return Run(run.seconds, list(analyze(read([Path(log)])).findings) if traced else [])


def measure_ways(
    place: Place, program: Program, ways: list[str], recorder: Recorder
) -> dict[str, list[Run]]:
    """Runs ways in turn: "bad" or "repaired", each also "traced"."""
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for number in range(1, place.runs + 1):
        for way in ways:
            traced = "traced" in way
            run = run_program(place, program, repaired="repaired" in way, traced=traced)
            runs[way].append(run)
            recorder.add(
                program=program.name,
                scale=place.scale,
                way=way,
                round=number,
                seconds=run.seconds,
                promised_seconds=run.promised_seconds if traced else None,
                first_finding=run.rule if traced else None,
            )
    return runs


def find_median_seconds(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def describe_findings(runs: list[Run]) -> str:
    """Returns the rules of the first findings."""
    return ", ".join(sorted({run.rule for run in runs if run.findings}) or ["none"])


def describe_worst(runs: list[Run]) -> str:
    """Returns the largest share of a run that its first finding promises."""
    return f"{100 * max(run.promised_seconds / run.seconds for run in runs):.1f} %"


def measure_bad(place: Place, program: Program, recorder: Recorder) -> str:
    """Measures a bad program; returns its row."""
    runs = measure_ways(place, program, ["bad", "repaired"], recorder)
    runs |= measure_ways(place, program, ["bad, traced"], recorder)
    runs |= measure_ways(place, program, ["repaired, traced"], recorder)
    bad, repaired = (find_median_seconds(runs[way]) for way in ("bad", "repaired"))
    traced, saved = runs["bad, traced"], bad - repaired
    right = sum(run.rule == program.rule for run in traced)
    promised = statistics.median(run.promised_seconds for run in traced)
    cells = [program.name, describe_findings(traced), f"{right}/{len(traced)}"]
    cells += [f"{seconds:.2f}" for seconds in (bad, repaired, saved, promised)]
    cells += [f"{promised / saved:.2f}" if saved > 0 else "-"]
    return f"| {' | '.join([*cells, describe_worst(runs['repaired, traced'])])} |"


def measure_healthy(place: Place, program: Program, recorder: Recorder) -> str:
    """Measures a healthy program; returns its row."""
    runs = measure_ways(place, program, ["healthy, traced"], recorder)["healthy, traced"]
    cells = [program.name, describe_findings(runs), "", f"{find_median_seconds(runs):.2f}"]
    return f"| {' | '.join([*cells, '', '', '', '', describe_worst(runs)])} |"


def select_programs(names: list[str]) -> Iterator[Program]:
    """Returns the named programs (default: all) that this machine can run."""
    for program in programs.table():
        if (not names or program.name in names) and (programs.mpiexec() or not program.ranks):
            yield program


@contextmanager
def open_place(
    name: str, description: str | None
) -> Iterator[tuple[Place, list[Program], Recorder]]:
    """Parses the command line, starts recording and builds the programs."""
    parser = make_parser(description)
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of each kind; the table shows medians (default 3)"
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path(),
        help="working directory of the programs: the measured file system (default .)",
    )
    parser.add_argument("--scale", type=float, default=1, help="of the programs' work (default 1)")
    parser.add_argument("programs", nargs="*", help="names of programs (default: all)")
    options = parser.parse_args()
    library = programs.library()
    if library is None:
        parser.error("pario's library is not installed; set PARIO_LIBRARY to a build's libpario.so")
    selected = list(select_programs(options.programs))
    launcher = programs.mpiexec()
    launchers = [launcher] if launcher and any(program.ranks for program in selected) else []
    with (
        Recorder(name, options, directories=[options.dir], launchers=launchers) as recorder,
        tempfile.TemporaryDirectory() as built,
        tempfile.TemporaryDirectory(dir=options.dir) as work,
    ):
        place = Place(Path(built), Path(work), library, options.runs, options.scale)
        programs.build(place.built)
        yield place, selected, recorder


def main() -> int:
    with open_place("badio", __doc__) as (place, selected, recorder):
        print(HEADER)
        for program in selected:
            measure = measure_healthy if program.healthy else measure_bad
            print(measure(place, program, recorder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
