"""What tracing adds to one I/O call: runs overhead.c with and without the library, in turn, and prints medians.

Usage: overhead.py --library LIBPARIO [--rounds N] [--calls N] [--directory DIR]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("overhead.c")
MODES: dict[str, dict[str, str] | None] = {"bare": None, "counters": {"PARIO_TRACE_EVENTS_LIMIT": "0"}, "events": {}}


def compile_victim(folder: Path) -> Path:
    """Builds overhead.c."""
    victim = folder / "overhead"
    subprocess.run(["cc", "-O2", "-o", victim, SOURCE], check=True)
    return victim


def measure(victim: Path, directory: Path, calls: int, settings: dict[str, str] | None, library: Path) -> dict[str, float]:
    """One run: nanoseconds per call by kind."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory(dir=directory) as logs:
        if settings is not None:
            environment |= {"LD_PRELOAD": str(library), "PARIO_TRACE_DIR": logs, **settings}
        command = [victim, directory, str(calls)]
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


def collect(victim: Path, arguments: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Runs of each mode, the modes taking turns."""
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    for _ in range(arguments.rounds):
        for mode, settings in MODES.items():
            runs[mode].append(measure(victim, arguments.directory, arguments.calls, settings, arguments.library))
    return runs


def print_table(runs: dict[str, list[dict[str, float]]]) -> None:
    """Medians: of the bare calls, and of what each mode adds to them round by round."""
    print(f"{'call':12}{'bare ns':>10}{'counters +':>12}{'events +':>12}")
    for kind in runs["bare"][0]:
        bare = statistics.median(run[kind] for run in runs["bare"])
        added = {
            mode: statistics.median(run[kind] - other[kind] for run, other in zip(runs[mode], runs["bare"], strict=True)) for mode in MODES
        }
        print(f"{kind:12}{bare:10.1f}{added['counters']:12.1f}{added['events']:12.1f}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"), help="where the file and the logs go")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_table(collect(compile_victim(Path(folder)), arguments))


if __name__ == "__main__":
    main()
