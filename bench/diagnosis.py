"""Scores diagnoses of the labelled corpus (tests/diagnosis): programs with one known I/O problem.

Each program and its repaired twin run in turn, untraced; the difference of their seconds is the
gain of the repair. Then both run under pario. A diagnosis is right if the first finding names the
problem, its seconds if they are within a factor of two of the gain; a twin is silent if no finding
exceeds 2 % of its run and the verdict is a plain "healthy". Prints a table in Markdown, of medians,
and a summary.

    python bench/diagnosis.py [--runs 3] [--dir DIRECTORY] [--errors FILE] [program ...]

Peers judge the same programs (bench/peers.py):

    --drishti COMMAND --darshan LIBRARY    Drishti on Darshan logs
    --dftracer VENV                        dftracer's analyzer on traces of dftracer
    --wisio VENV                           WisIO on traces of dftracer
    --peers-only                           do not run pario; recorded as the benchmark "peers"

Peers promise no seconds: with --peers-only, other load (--most-load) does not falsify their scores.
A peer that is not installed is skipped by name. A peer that fails on a program makes no statement
("none" in the table): the reason is printed, and the summary counts such programs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import peers  # noqa: E402
from measuring import make_parser  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.diagnosis import corpus  # noqa: E402
from tests.diagnosis.corpus import Program  # noqa: E402
from tests.diagnosis.judging import Diagnosis, diagnose  # noqa: E402
from tests.support.waiting import LateError  # noqa: E402

#: A gain below this share of the program's time is too small to compare seconds with.
SMALL_GAIN = 0.05
FACTOR = 2.0
PARIO = "pario"
HEADER = """\
| program | tool | expected | first finding | right | gain, s | promised, s | promised/gain \
| twin |
|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Place:
    """Directories of a measurement, and how often and how large programs run there."""

    built: Path
    work: Path
    library: Path
    runs: int
    scale: float


@dataclass
class Judgement:
    """The diagnoses of one program by one tool, over all runs."""

    program: Program
    tool: str
    bad: list[Diagnosis] = field(default_factory=list)
    twin: list[Diagnosis] = field(default_factory=list)
    gain: float = 0.0  # seconds
    plain: float = 0.0  # seconds of the program without a tool

    @property
    def right(self) -> bool:
        """True if most runs have the right first finding (healthy programs: none)."""
        runs = self.bad or self.twin
        good = sum(
            one.healthy if self.program.healthy else one.is_right(self.program) for one in runs
        )
        return 2 * good > len(runs)

    @property
    def wrongly_healthy(self) -> bool:
        """True if any run of the program with a problem is called healthy."""
        return not self.program.healthy and any(one.healthy for one in self.bad)

    @property
    def twin_silent(self) -> bool:
        """True if most runs of the twin are called healthy."""
        return 2 * sum(one.healthy for one in self.twin) > len(self.twin)

    @property
    def without_statement(self) -> bool:
        """True if the tool made no statement about any run."""
        return all(one.first == "none" for one in [*self.bad, *self.twin])

    @property
    def promised(self) -> float:
        """Median of the promised seconds."""
        return statistics.median(one.promise(self.program) for one in self.bad or self.twin)

    @property
    def judges_seconds(self) -> bool:
        """True if the gain is large enough, and the tool promises seconds at all."""
        return self.gain > SMALL_GAIN * self.plain and self.tool == PARIO

    @property
    def seconds_right(self) -> bool:
        """True if the promise is within a factor of two of the gain."""
        return self.gain / FACTOR <= self.promised <= self.gain * FACTOR

    def row(self) -> str:
        """Returns the row of the table."""
        first = Counter(one.first for one in self.bad or self.twin).most_common(1)[0][0]
        expected = " or ".join(self.program.rules) or "healthy"
        cells = [self.program.name, self.tool, expected, first, "yes" if self.right else "NO"]
        if self.program.healthy:
            return f"| {' | '.join([*cells, '', '', '', ''])} |"
        seconds = ["", "", ""]
        if self.plain:
            ratio = self.promised / self.gain if self.gain > 0 else float("nan")
            seconds = [f"{self.gain:.2f}", f"{self.promised:.2f}", f"{ratio:.2f}"]
        cells += seconds
        twin = Counter(one.first for one in self.twin).most_common(1)[0][0]
        return f"| {' | '.join([*cells, twin])} |"


def measure_plain(place: Place, program: Program, *, repaired: bool) -> float:
    """Returns the seconds of one run without a tool."""
    corpus.prepare(program, place.built, place.work, place.scale)
    return corpus.run(
        program, place.built, place.work, repaired=repaired, scale=place.scale
    ).seconds


def run_pario(place: Place, program: Program, *, repaired: bool) -> Diagnosis:
    """Returns pario's diagnosis of one run."""
    corpus.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        tracer = [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--"]
        corpus.run(
            program, place.built, place.work, repaired=repaired, scale=place.scale, prefix=tracer
        )
        return diagnose(log)


def run_peer(peer: peers.Peer, place: Place, program: Program, *, repaired: bool) -> Diagnosis:
    """Returns a peer's diagnosis of one run; none if the program fails under the peer."""
    corpus.prepare(program, place.built, place.work, place.scale)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = corpus.run(
                program,
                place.built,
                place.work,
                repaired=repaired,
                scale=place.scale,
                variables=peer.variables(Path(folder), program),
            )
        except (AssertionError, LateError) as error:
            reason = f"{program.name} failed under it: {str(error).splitlines()[0]}"
            return peers.give_no_statement(peer.name, reason, 0.0)
        return peer.diagnose(Path(folder), done.seconds)


def measure_program(
    place: Place, program: Program, tools: Sequence[peers.Peer | None], recorder: Recorder
) -> Iterator[Judgement]:
    """Runs a program and its twin under each tool (None: pario, after plain runs), in rounds: the
    speed of a device changes within minutes, and a promise is that of its round. Yields a judgement
    per tool."""
    ways = [True] if program.healthy else [False, True]
    judged = [(tool, Judgement(program, tool.name if tool else PARIO)) for tool in tools]
    plain: dict[bool, list[float]] = {False: [], True: []}
    for number in range(1, place.runs + 1):
        for repaired in ways if None in tools else ():
            plain[repaired].append(measure_plain(place, program, repaired=repaired))
        for tool, judgement in judged:
            for repaired in ways:
                run = (
                    run_peer(tool, place, program, repaired=repaired)
                    if tool
                    else run_pario(place, program, repaired=repaired)
                )
                (judgement.twin if repaired else judgement.bad).append(run)
                recorder.add(
                    program=program.name,
                    language=program.language,
                    ranks=program.ranks,
                    tool=judgement.tool,
                    way="repaired" if repaired else "bad",
                    scale=place.scale,
                    round=number,
                    plain_seconds=plain[repaired][-1] if plain[repaired] else None,
                    first_finding=run.first,
                    right=run.healthy if repaired else run.is_right(program),
                    healthy=run.healthy,
                    promised_seconds=run.promise(program),
                )
    medians = [statistics.median(plain[way] or [0.0]) for way in (False, True)]
    for _, judgement in judged:
        judgement.gain, judgement.plain = medians[0] - medians[1], medians[0]
        yield judgement


def summarize(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Returns the lines of the summary, one for each tool."""
    for tool in dict.fromkeys(judgement.tool for judgement in judgements):
        bad = [one for one in judgements if one.tool == tool and not one.program.healthy]
        healthy = [one for one in judgements if one.tool == tool and one.program.healthy]
        timed = [one for one in bad if one.judges_seconds and one.right]
        silent = sum(one.twin_silent for one in [*bad, *healthy])
        mute = sum(one.without_statement for one in [*bad, *healthy])
        yield (
            f"{tool}: first finding right {sum(one.right for one in bad)} of {len(bad)};"
            f" wrongly healthy {sum(one.wrongly_healthy for one in bad)};"
            f" seconds within a factor of two {sum(one.seconds_right for one in timed)}"
            f" of {len(timed)} right ones with a gain;"
            f" twins and healthy programs silent {silent} of {len(bad) + len(healthy)};"
            f" no statement about {mute}"
        )


def list_errors(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Returns a line for each wrong diagnosis of pario: name, expected and obtained."""
    for one in judgements:
        if one.tool != PARIO:
            continue
        expected = " or ".join(one.program.rules) or "healthy"
        sentence = (one.bad or one.twin)[0].sentence
        found = Counter(run.first for run in one.bad or one.twin).most_common(1)[0][0]
        if not one.right:
            yield f"{one.program.name} -> expected {expected}; got {found} ({sentence})"
        elif not one.program.healthy and one.judges_seconds and not one.seconds_right:
            yield (
                f"{one.program.name} -> seconds: the repair gains {one.gain:.2f} s, promised"
                f" {one.promised:.2f} s"
            )
        if not one.program.healthy and not one.twin_silent:
            first = one.twin[0]
            found = f"{first.first} ({first.sentence})"
            yield f"{one.program.name} twin -> expected healthy; got {found}"


def select_programs(names: Sequence[str]) -> Iterator[Program]:
    """Returns the named programs (default: all) that this machine can run; names the others."""
    for program in corpus.select(names) if names else corpus.table():
        if missing := corpus.find_missing(program):
            print(f"skipped {program.name}: it needs {missing}", file=sys.stderr)
        else:
            yield program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that benchmarks of the corpus share."""
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


@contextmanager
def open_place(
    name: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[Place, list[Program], Recorder, argparse.Namespace]]:
    """Parses the command line, starts recording and builds the programs."""
    add_arguments(parser)
    parser.set_defaults(benchmark=name)
    options = parser.parse_args()
    library = corpus.library()
    if library is None:
        parser.error("pario's library is not installed; set PARIO_LIBRARY to a build's libpario.so")
    try:
        selected = list(select_programs(options.programs))
    except KeyError as error:
        parser.error(error.args[0])
    launcher = corpus.mpiexec()
    launchers = [launcher] if launcher and any(program.ranks for program in selected) else []
    with (
        Recorder(
            options.benchmark, options, directories=[options.dir], launchers=launchers
        ) as recorder,
        tempfile.TemporaryDirectory() as built,
        tempfile.TemporaryDirectory(dir=options.dir) as work,
    ):
        runs = Path(work).resolve() / "work"
        runs.mkdir()
        place = Place(Path(built), runs, library, options.runs, options.scale)
        corpus.build(place.built, *(program.name for program in selected))
        yield place, selected, recorder, options


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--errors", type=Path, help="write pario's wrong diagnoses to this file")
    peers.add_arguments(parser)
    parser.add_argument(
        "--peers-only",
        dest="benchmark",
        action="store_const",
        const="peers",
        help="do not run pario; recorded as the benchmark 'peers'",
    )
    with open_place("diagnosis", parser) as (place, selected, recorder, options):
        found = list(peers.find(options))
        tools = found if options.benchmark == "peers" else [None, *found]
        judgements: list[Judgement] = []
        print(HEADER)
        for program in selected:
            for judgement in measure_program(place, program, tools, recorder):
                print(judgement.row(), flush=True)
                judgements.append(judgement)
            corpus.clear(place.work)
    print("\n" + "\n".join(summarize(judgements)))
    if options.errors:
        options.errors.write_text("".join(f"{line}\n" for line in list_errors(judgements)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
