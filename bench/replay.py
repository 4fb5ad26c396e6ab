"""Compares replays with the runs that they repeat, in seconds of I/O.

    python bench/replay.py --dir DIRECTORY [--runs 3] [--scale FACTOR] [--think]
        [program[=scale] ...]

The bad programs (tests/diagnosis) and their replays take turns on one file system; the table in
Markdown shows medians of the rank with most I/O. --think replays the pauses between calls, too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from measuring import make_parser  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.diagnosis import corpus  # noqa: E402
from tests.diagnosis.corpus import Program, Tracing  # noqa: E402

from pario.prove.replay import Fidelity, fidelity, perform, script_of  # noqa: E402
from pario.prove.replay.perform import Manner  # noqa: E402
from pario.see.tables import read  # noqa: E402

#: A measured time of a comparison, and its way in the results, whose column "run" is a number.
WAYS = {"run": "the program", "replay": "replay"}
HEADER = """\
| program | calls | run, s | replay, s | replay / run | calls and bytes |
|---|---|---|---|---|---|"""


def run_and_replay(
    program: Program, built: Path, place: Path, scale: float, think: bool
) -> tuple[Fidelity, int]:
    """Runs a program and replays it; returns the comparison and the number of calls."""
    with tempfile.TemporaryDirectory(dir=place) as work, tempfile.TemporaryDirectory() as log:
        library = corpus.library()
        assert library is not None
        corpus.prepare(program, built, Path(work), scale)
        tracing = Tracing(library, Path(log))
        corpus.run(program, built, Path(work), scale=scale, tracing=tracing)
        job = read([Path(log)])
    script = script_of(job)
    mpiexec = (str(corpus.mpiexec()),) if script.ranks else ()
    replay = perform(script, place, Manner(pauses=think, mpiexec=mpiexec))
    return fidelity(job, script, replay), script.calls


def measure_program(
    program: Program, scale: float, built: Path, arguments: argparse.Namespace, recorder: Recorder
) -> str:
    """Measures a program; returns its row."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    exact, calls = True, 0
    for number in range(1, arguments.runs + 1):
        found, calls = run_and_replay(program, built, arguments.dir, scale, arguments.think)
        exact = exact and found.exact
        for way, times in seconds.items():
            times.append(getattr(found, f"{way}_seconds"))
            recorder.add(
                program=program.name,
                scale=scale,
                think=arguments.think,
                way=WAYS[way],
                round=number,
                seconds=times[-1],
                calls=calls,
                exact=found.exact,
            )
    run, replay = map(statistics.median, seconds.values())
    cells = [program.name, f"{calls:,}", f"{run:.2f}", f"{replay:.2f}", f"{replay / run:.2f}"]
    return f"| {' | '.join(cells)} | {'the same' if exact else 'differ'} |"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--think", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    table = {program.name: program for program in corpus.counted_programs() if not program.healthy}
    words = [word.partition("=") for word in arguments.programs or table]
    if unknown := {name for name, _, _ in words} - table.keys():
        parser.error(f"no such program: {', '.join(sorted(unknown))}; one of {', '.join(table)}")
    launcher = corpus.mpiexec()
    used = launcher and any(table[name].ranks for name, _, _ in words)
    with (
        Recorder(
            "replay",
            arguments,
            directories=[arguments.dir],
            launchers=[launcher] if launcher and used else [],
        ) as recorder,
        tempfile.TemporaryDirectory() as built,
    ):
        corpus.build(Path(built), *table)
        print(HEADER, flush=True)
        for name, _, text in words:
            scale = float(text or arguments.scale)
            row = measure_program(table[name], scale, Path(built), arguments, recorder)
            print(row, flush=True)


if __name__ == "__main__":
    main()
