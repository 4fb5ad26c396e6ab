"""Measures programs in several languages that flush every line, with and without buffers.

    python bench/flushes.py --library LIBPARIO [--directory DIR] [--lines 20000] [--rounds 3]

Ways take turns round by round; the table shows medians of seconds of the whole process. fflush is
left out only with the setting ignoreflush; the other programs flush by write(2), which the buffers
take.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from measuring import add_library_argument, make_parser, time_call
from recording import Recorder

SOURCES = Path(__file__).with_name("flushes")
COMPILERS = {".c": "cc", ".cpp": "c++", ".f90": "gfortran"}
NAMES = {
    "records.f90": "gfortran, formatted, `flush`",
    "endl.cpp": "C++, `std::endl`",
    "print_lines.py": "Python, `print(..., flush=True)`",
    "csv_rows.py": "Python, `csv` over a line-buffered file",
    "fflush.c": "C, `fprintf` and `fflush` (`ignoreflush`)",
}


def make_command(source: str, folder: Path) -> list[str]:
    """Compiles a program if it must be, and returns the command that runs it."""
    path = SOURCES / source
    if path.suffix == ".py":
        return [sys.executable, str(path)]
    program = folder / path.stem
    command = [COMPILERS[path.suffix], "-O2", "-o", program, path]
    subprocess.run(command, check=True, cwd=folder)
    return [str(program)]


def run_program(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(words, env=os.environ | environment, check=True)


def main() -> None:
    parser = make_parser(__doc__)
    add_library_argument(parser)
    parser.add_argument("--directory", default=".", help="on the file system to measure")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    buffers = {
        "LD_PRELOAD": str(arguments.library),
        "PARIO_STREAMS": "*.txt:size=1M:ignoreflush",
    }
    with (
        Recorder("flushes", arguments, directories=[arguments.directory]) as recorder,
        tempfile.TemporaryDirectory(dir=arguments.directory) as work,
        tempfile.TemporaryDirectory() as folder,
    ):
        print(
            "| program | as it is, s | buffered, s | times as fast | equal |\n|---|---|---|---|---|"
        )
        for source, name in NAMES.items():
            start = make_command(source, Path(folder))
            files = {way: Path(work, f"{way}.txt") for way in ("plain", "buffered")}
            seconds: dict[str, list[float]] = {way: [] for way in files}
            for number in range(1, arguments.rounds + 1):
                for way, file in files.items():
                    words = [*start, str(file), str(arguments.lines)]
                    environment = buffers if way == "buffered" else {}
                    seconds[way].append(time_call(partial(run_program, words, environment)))
                    recorder.add(
                        program=source,
                        lines=arguments.lines,
                        way=way,
                        round=number,
                        seconds=seconds[way][-1],
                    )
            plain, fast = map(statistics.median, seconds.values())
            contents = {file.read_bytes() for file in files.values()}
            equal = "yes" if len(contents) == 1 else "NO"
            print(
                f"| {name} | {plain:.3f} | {fast:.3f} | {plain / fast:.1f} | {equal} |", flush=True
            )


if __name__ == "__main__":
    main()
