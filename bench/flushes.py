"""Programs in several languages that flush every line, as they are and with buffers.

    python bench/flushes.py --library LIBPARIO [--directory DIR] [--lines 20000] [--rounds 3]

Ways take turns round by round; quoted are medians of seconds of the whole process. fflush is only left out where a setting says so
(ignoreflush); the others flush by write(2), which the buffers take.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = Path(__file__).with_name("flushes")
COMPILERS = {".c": "cc", ".cpp": "c++", ".f90": "gfortran"}
NAMES = {
    "records.f90": "gfortran, formatted, `flush`",
    "endl.cpp": "C++, `std::endl`",
    "print_lines.py": "Python, `print(..., flush=True)`",
    "csv_rows.py": "Python, `csv` over a line-buffered file",
    "fflush.c": "C, `fprintf` and `fflush` (`ignoreflush`)",
}


def command(source: str, folder: Path) -> list[str]:
    path = SOURCES / source
    if path.suffix == ".py":
        return [sys.executable, str(path)]
    program = folder / path.stem
    subprocess.run([COMPILERS[path.suffix], "-O2", "-o", program, path], check=True, cwd=folder)
    return [str(program)]


def timed(words: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(words, env=os.environ | environment, check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so"
    )
    parser.add_argument("--directory", default=".", help="on the file system to measure")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    buffered = {"LD_PRELOAD": str(chosen.library), "PARIO_STREAMS": "*.txt:size=1M:ignoreflush"}
    print("| program | as it is, s | buffered, s | times as fast | equal |\n|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(dir=chosen.directory) as work,
        tempfile.TemporaryDirectory() as folder,
    ):
        for source, name in NAMES.items():
            start, files = (
                command(source, Path(folder)),
                [Path(work, f"{way}.txt") for way in ("plain", "buffered")],
            )
            seconds: list[list[float]] = [[], []]
            for _ in range(chosen.rounds):
                for way, environment in enumerate(({}, buffered)):
                    seconds[way].append(
                        timed([*start, str(files[way]), str(chosen.lines)], environment)
                    )
            plain, fast = map(statistics.median, seconds)
            equal = "yes" if files[0].read_bytes() == files[1].read_bytes() else "NO"
            print(
                f"| {name} | {plain:.3f} | {fast:.3f} | {plain / fast:.1f} | {equal} |", flush=True
            )


if __name__ == "__main__":
    main()
