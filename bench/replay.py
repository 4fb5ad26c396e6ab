"""How near replays come to the runs that they repeat: seconds in I/O of bad programs and of an HDF5 program, on one file system.

Runs and replays take turns; medians. Prints a table in Markdown.

    python bench/replay.py --dir DIRECTORY [--runs 3] [--scale FACTOR] [program[=scale] ...]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from tests.badio import programs  # noqa: E402
from tests.badio.programs import Program, Tracing  # noqa: E402

from pario.replay import Fidelity, fidelity, perform, script_of  # noqa: E402
from pario.replay.perform import Manner  # noqa: E402
from pario.tables import read  # noqa: E402

HEADER = "| program | calls | run, s | replay, s | replay / run | calls and bytes |\n|---|---|---|---|---|---|"


def once(
    program: Program, built: Path, place: Path, scale: float, think: bool
) -> tuple[Fidelity, int]:
    """One run and its replay."""
    with tempfile.TemporaryDirectory(dir=place) as work, tempfile.TemporaryDirectory() as log:
        library = programs.library()
        assert library is not None
        programs.prepare(program, built, Path(work), scale)
        programs.run(program, built, Path(work), scale=scale, tracing=Tracing(library, Path(log)))
        job = read([Path(log)])
    script = script_of(job)
    mpiexec = (str(programs.mpiexec()),) if script.ranks else ()
    return fidelity(
        job, script, perform(script, place, Manner(pauses=think, mpiexec=mpiexec))
    ), script.calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--think", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    table = {program.name: program for program in programs.table() if not program.healthy}
    built = Path(tempfile.mkdtemp())
    programs.build(built)
    print(HEADER, flush=True)
    for word in arguments.programs or table:
        name, _, scale = word.partition("=")
        found = [
            once(
                table[name], built, arguments.dir, float(scale or arguments.scale), arguments.think
            )
            for _ in range(arguments.runs)
        ]
        run, replay = (
            statistics.median(getattr(one, side) for one, _ in found)
            for side in ("run_seconds", "replay_seconds")
        )
        same = "the same" if all(one.exact for one, _ in found) else "differ"
        print(
            f"| {name} | {found[0][1]:,} | {run:.2f} | {replay:.2f} | {replay / run:.2f} | {same} |",
            flush=True,
        )
    shutil.rmtree(built)


if __name__ == "__main__":
    main()
