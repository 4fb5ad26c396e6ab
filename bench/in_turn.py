"""Compares two builds of pario in turn: checkpoints, MPI-IO, tracer and shuffles.

    python bench/in_turn.py BEFORE AFTER [--rounds 3] [--only NAME]... [--directory DIR]
        [--results DIR]

BEFORE and AFTER are clones in which `make build` and the set-up for tests have run. The benchmarks
are those of this clone, with the interpreter and the library of each of the two. A round measures
both; the first of a round is the last of the round before. The table is that of compare.py. Three
rounds take about nine minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import compare
from recording import LOAD_LIMIT

HERE = Path(__file__).parent
SIDES = ("before", "after")


@dataclass(frozen=True)
class Step:
    """A benchmark and its options; ``{library}``, ``{bin}`` and ``{directory}`` are filled in."""

    name: str
    words: str

    def command(self, clone: Path, directory: Path, results: Path) -> list[str]:
        """Returns the command that measures a clone."""
        places = {
            "library": clone / "build/dev/src/libpario.so",
            "bin": clone / ".venv/bin",
            "directory": directory,
        }
        words = [word.replace("+", " ").format(**places) for word in self.words.split()]
        own = ["--results", str(results), "--most-load", "1000"]
        return [str(clone / ".venv/bin/python"), str(HERE / f"{self.name}.py"), *words, *own]


STEPS = (
    Step(
        "checkpoint",
        "--ranks 2 --megabytes 64 --runs 3 --files 1 --no-sync --directory {directory}"
        " --launcher {bin}/mpiexec+-n+{{ranks}}",
    ),
    Step(
        "mpiio",
        "--library {library} --mpich {bin} --only pario --ranks 2 --mebibytes 64 --rounds 2"
        " --repetitions 2 --directory /dev/shm --quick",
    ),
    Step("overhead", "--library {library} --rounds 2"),
    Step("records", "--directory {directory} --size 256M --memory 64M --rounds 1"),
)


def measure(step: Step, clone: Path, directory: Path, results: Path) -> None:
    """Measures one clone; an error ends this program."""
    path = f"{clone / '.venv/bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        step.command(clone, directory, results),
        env={**os.environ, "PATH": path},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{step.name} of {clone} ended with status {done.returncode}")


def plan(rounds: int) -> Iterator[tuple[int, str]]:
    """Yields the rounds and the sides in the order of their measurements."""
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            yield number, side


def main() -> None:
    """Measures both clones and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("--rounds", type=int, default=3)
    names = [step.name for step in STEPS]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--results", type=Path, help="of the raw measurements (default: removed)")
    arguments = parser.parse_args()
    if (load := os.getloadavg()[0]) > LOAD_LIMIT:
        print(f"the load average is {load:.2f}: the figures are noisy", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="pario-in-turn-") as folder:
        results = (arguments.results or Path(folder)).absolute()
        clones = {side: getattr(arguments, side).absolute() for side in SIDES}
        for number, side in plan(arguments.rounds):
            for step in STEPS:
                if not arguments.only or step.name in arguments.only:
                    print(f"round {number + 1}, {side}: {step.name}", file=sys.stderr)
                    measure(step, clones[side], arguments.directory.absolute(), results / side)
        sides = [find_benchmarks(results / side) for side in SIDES]
        print("\n".join(compare.compare(*sides)))


def find_benchmarks(folder: Path) -> dict[str, compare.Benchmark]:
    """Reads the measurements of a side, which lie in a folder for the day and the machine."""
    found: dict[str, compare.Benchmark] = {}
    for recorded in sorted(folder.iterdir()):
        found |= compare.read_benchmarks(str(recorded), None)
    return found


if __name__ == "__main__":
    main()
