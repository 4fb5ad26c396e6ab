"""What tracing adds to one I/O call: runs overhead.c with and without the library, in turn, and prints medians.

Usage: overhead.py --library LIBPARIO [--beside LIBPARIO] [--rounds N] [--calls N] [--directory DIR]

With --beside another version of the library takes its turns, too: what differs between the two is told also by a busy machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("overhead.c")
MODES: dict[str, dict[str, str] | None] = {
    "bare": None,
    "counters": {"PARIO_TRACE_EVENTS_LIMIT": "0"},
    "events": {},
}


def compile_victim(folder: Path) -> Path:
    """Builds overhead.c."""
    victim = folder / "overhead"
    subprocess.run(["cc", "-O2", "-o", victim, SOURCE], check=True)
    return victim


def measure(
    victim: Path, directory: Path, calls: int, settings: dict[str, str] | None, library: Path
) -> dict[str, float]:
    """One run: nanoseconds per call by kind."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(dir=directory) as logs:
        if settings is not None:
            environment |= {"LD_PRELOAD": str(library), "PARIO_TRACE_DIR": logs, **settings}
        command = [victim, directory, str(calls)]
        output = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


Column = tuple[str, Path | None]  # a mode, under a library


def collect(victim: Path, arguments: argparse.Namespace) -> dict[Column, list[dict[str, float]]]:
    """Runs of each mode under each library, all taking turns."""
    libraries = [library for library in (arguments.library, arguments.beside) if library]
    columns: list[Column] = [
        ("bare", None),
        *((mode, library) for library in libraries for mode in MODES if mode != "bare"),
    ]
    runs: dict[Column, list[dict[str, float]]] = {column: [] for column in columns}
    for _ in range(arguments.rounds):
        for mode, library in columns:
            runs[mode, library].append(
                measure(
                    victim,
                    arguments.directory,
                    arguments.calls,
                    MODES[mode],
                    library or arguments.library,
                )
            )
    return runs


def print_table(runs: dict[Column, list[dict[str, float]]]) -> None:
    """Medians: of the bare calls, and of what each mode adds to them round by round."""
    bare, *others = runs.values()
    print(
        f"{'call':12}{'bare ns':>10}"
        + "".join(f"{mode + ' +':>12}" for mode, library in runs if library)
    )
    for kind in bare[0]:
        added = [
            statistics.median(
                run[kind] - alone[kind] for run, alone in zip(other, bare, strict=True)
            )
            for other in others
        ]
        print(
            f"{kind:12}{statistics.median(run[kind] for run in bare):10.1f}"
            + "".join(f"{value:12.1f}" for value in added)
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so"
    )
    parser.add_argument(
        "--beside",
        type=lambda path: Path(path).resolve(),
        help="another libpario.so: the last two columns",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument(
        "--directory", type=Path, default=Path("/dev/shm"), help="where the file and the logs go"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_table(collect(compile_victim(Path(folder)), arguments))


if __name__ == "__main__":
    main()
