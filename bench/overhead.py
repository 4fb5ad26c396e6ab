"""Measures the seconds that tracing adds to one I/O call, by kind of call (overhead.c).

    python bench/overhead.py --library LIBPARIO [--beside LIBPARIO] [--rounds N] [--calls N]
        [--directory DIR]

Runs without the library, with counters and with events take turns; the table shows medians. With
--beside another version of the library takes its turns, too: the difference between two versions
shows on a busy machine as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from measuring import add_library_argument, make_parser, resolve_path
from recording import Recorder

SOURCE = Path(__file__).with_name("overhead.c")
MODES: dict[str, dict[str, str]] = {"counters": {"PARIO_TRACE_EVENTS_LIMIT": "0"}, "events": {}}
BARE = ("bare", "")

Way = tuple[str, str]  # a mode, and the option that names the library
Costs = dict[str, float]  # nanoseconds per call, by kind of call


def compile_program(folder: Path) -> Path:
    """Builds the program overhead.c."""
    program = folder / "overhead"
    subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
    return program


def run_program(program: Path, way: Way, arguments: argparse.Namespace) -> Costs:
    """Runs the program once."""
    mode, version = way
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(dir=arguments.directory) as logs:
        if version:
            library = str(getattr(arguments, version))
            environment |= {"LD_PRELOAD": library, "PARIO_TRACE_DIR": logs, **MODES[mode]}
        command = [program, arguments.directory, str(arguments.calls)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {kind: float(nanoseconds) for kind, nanoseconds in lines}


def measure_ways(
    program: Path, arguments: argparse.Namespace, recorder: Recorder
) -> dict[Way, list[Costs]]:
    """Runs each mode under each library, all in turn."""
    versions = [version for version in ("library", "beside") if getattr(arguments, version)]
    ways = [BARE, *((mode, version) for version in versions for mode in MODES)]
    runs: dict[Way, list[Costs]] = {way: [] for way in ways}
    for number in range(1, arguments.rounds + 1):
        for way in ways:
            runs[way].append(run_program(program, way, arguments))
            for kind, nanoseconds in runs[way][-1].items():
                recorder.add(
                    call=kind,
                    calls=arguments.calls,
                    way=way[0],
                    version=way[1],
                    round=number,
                    nanoseconds_per_call=nanoseconds,
                )
    return runs


def print_table(runs: dict[Way, list[Costs]]) -> None:
    """Prints medians: of the bare calls, and of the difference to them, round by round."""
    others = {way: costs for way, costs in runs.items() if way != BARE}
    bare = runs[BARE]
    print(f"{'call':12}{'bare ns':>10}" + "".join(f"{mode + ' +':>12}" for mode, _ in others))
    for kind in bare[0]:
        line = f"{kind:12}{statistics.median(run[kind] for run in bare):10.1f}"
        for costs in others.values():
            added = (run[kind] - alone[kind] for run, alone in zip(costs, bare, strict=True))
            line += f"{statistics.median(added):12.1f}"
        print(line)


def main() -> None:
    """Measures and prints."""
    parser = make_parser(__doc__)
    add_library_argument(parser)
    parser.add_argument(
        "--beside", type=resolve_path, help="another libpario.so: the last two columns"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument(
        "--directory", type=Path, default=Path("/dev/shm"), help="of the file and the logs"
    )
    arguments = parser.parse_args()
    with (
        Recorder("overhead", arguments, directories=[arguments.directory]) as recorder,
        tempfile.TemporaryDirectory() as folder,
    ):
        print_table(measure_ways(compile_program(Path(folder)), arguments, recorder))


if __name__ == "__main__":
    main()
