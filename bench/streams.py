"""Measures two million small writes, buffered and not, beside large writes of the same bytes.

    python bench/streams.py --library LIBPARIO [--directory DIR] [--place directory|lab|ceph]...
        [--rounds N] [--streams SPECIFICATION] [--part CALLS]

The case of Cray's IOBUF: 2,083,634 writes of 512 bytes, beside writes of 64 MiB. Ways take turns
round by round and overwrite one file. The table shows medians of seconds and of the ratio to the
large writes of the same round, page faults of the whole process, and system writes, which strace
counts in a separate run if there are buffers. Without buffers only --part of the calls are made,
and their seconds are multiplied. Places: a directory, a lab where a request costs half a
millisecond, and a CephFS on this machine (root).
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from measuring import add_library_argument, find_median_ratio, make_parser
from places import local_ceph, mounted_lab
from recording import Recorder

SOURCE = Path(__file__).with_name("streams.c")
TOTAL, PIECE, LARGE = 2_083_634 * 512, 512, 64 << 20
LIMIT, BUFFERED = "64 MiB pieces", ", buffered"
FEW = 5_000  # unbuffered calls where each costs a request
HEADER = """\
| way | seconds | times the large pieces | times as fast as without | system writes | page faults |
|---|---|---|---|---|---|"""


def list_ways(streams: str) -> dict[str, tuple[str, int, str]]:
    """Returns the ways: how to write, bytes per call, PARIO_STREAMS."""
    return {
        LIMIT: ("write", LARGE, ""),
        "write of 512 B": ("write", PIECE, ""),
        f"write of 512 B{BUFFERED}": ("write", PIECE, f"*.dat:{streams}"),
        "stdio, a flush per 512 B": ("stdio", PIECE, ""),
        f"stdio, a flush per 512 B{BUFFERED}": ("stdio", PIECE, f"*.dat:{streams}:ignoreflush"),
    }


def make_environment(library: Path, streams: str) -> dict[str, str]:
    buffers = {"LD_PRELOAD": str(library), "PARIO_STREAMS": streams} if streams else {}
    return os.environ | buffers


def count_with_strace(command: list[str], env: dict[str, str]) -> int:
    preload = [f"-E{key}={env[key]}" for key in ("LD_PRELOAD", "PARIO_STREAMS") if key in env]
    counting = ["strace", "-f", "-c", "-e", "trace=write,pwrite64,pwritev", *preload, *command]
    done = subprocess.run(counting, capture_output=True, text=True, check=True)
    lines = (line for line in done.stderr.splitlines() if re.search(r" p?write(v|64)?$", line))
    return sum(int(line.split()[3]) for line in lines)


def count_system_writes(command: list[str], env: dict[str, str]) -> int | None:
    """Returns the system writes: without buffers one for each call, where strace is too slow."""
    if "PARIO_STREAMS" not in env:
        return TOTAL // int(command[3])
    if not shutil.which("strace"):
        return None
    return count_with_strace(command, env) - 1  # without the one that prints


@contextmanager
def create_lab(folder: Path) -> Iterator[Path]:
    """Creates a lab whose requests take half a millisecond each, and whose bytes take no time."""
    from pario.prove.lab.mount import Model

    with mounted_lab(folder / "lab", Model(rate=0, latency=500_000, in_flight=0)) as point:
        yield point


@contextmanager
def use_directory(folder: Path) -> Iterator[Path]:
    """Measures the file system of --directory."""
    yield folder


PLACES = {"directory": use_directory, "lab": create_lab, "ceph": local_ceph}


@dataclass
class Way:
    """One way of writing, and the results of its runs."""

    command: list[str]
    env: dict[str, str]
    part: float  # of the calls that are made
    seconds: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)

    def run(self) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        done = subprocess.run(
            self.command, env=self.env, capture_output=True, text=True, check=True
        )
        self.faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
        self.seconds.append(float(done.stdout) / self.part)


def prepare_ways(place: Path, arguments: argparse.Namespace, part: int) -> dict[str, Way]:
    """Compiles the program and writes the file that all ways overwrite."""
    program, file = place / "streams", place / "out.dat"
    subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
    file.write_bytes(b"\0" * TOTAL)
    ways = {}
    for name, (how, size, streams) in list_ways(arguments.streams).items():
        made = 1.0 if streams or size == LARGE else part * PIECE / TOTAL
        command = [str(program), str(file), how, str(size), f"{TOTAL * made:.0f}"]
        ways[name] = Way(command, make_environment(arguments.library, streams), made)
    return ways


def measure_place(
    name: str, place: Path, arguments: argparse.Namespace, part: int, recorder: Recorder
) -> None:
    """Measures all ways in turn, and prints the table."""
    ways = prepare_ways(place, arguments, part)
    case = {"place": name, "unbuffered_calls": part, "streams": arguments.streams}
    for number in range(1, arguments.rounds + 1):
        for title, way in ways.items():
            way.run()
            results = {"seconds": way.seconds[-1], "page_faults": way.faults[-1]}
            recorder.add(**case, way=title, round=number, **results, system_writes=None)
    multiplied = f"; unbuffered: {part:,} calls, seconds multiplied"
    suffix = "" if part == TOTAL // PIECE else multiplied
    print(f"\n{name}, load {os.getloadavg()[0]:.1f}{suffix}\n\n{HEADER}")
    for title, way in ways.items():
        writes = count_system_writes(way.command, way.env)
        counted = {"seconds": None, "page_faults": None, "system_writes": writes}
        recorder.add(**case, way=title, round=0, **counted)
        print(format_row(title, ways, writes), flush=True)


def format_row(title: str, ways: dict[str, Way], writes: int | None) -> str:
    way, plain = ways[title], ways.get(title.removesuffix(BUFFERED))
    median = statistics.median(way.seconds)
    ratio = find_median_ratio(way.seconds, ways[LIMIT].seconds)
    faster = plain is not None and plain is not way
    gain = f"{statistics.median(plain.seconds) / median:,.0f}" if faster else ""
    counts = ["" if writes is None else f"{writes:,}", f"{statistics.median(way.faults):,.0f}"]
    return f"| {' | '.join([title, f'{median:.3f}', f'{ratio:.2f}', gain, *counts])} |"


def main() -> None:
    parser = make_parser(__doc__)
    add_library_argument(parser)
    parser.add_argument("--directory", default=".", help="on the file system to measure")
    parser.add_argument(
        "--place",
        action="append",
        choices=PLACES,
        help="where (default: directory; several may be given)",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", default="size=64M:count=2")
    parser.add_argument(
        "--part",
        type=int,
        help=f"unbuffered calls (default: all in a directory, elsewhere {FEW:,})",
    )
    arguments = parser.parse_args()
    with Recorder("streams", arguments, directories=[arguments.directory]) as recorder:
        for name in arguments.place or ["directory"]:
            part = arguments.part or (TOTAL // PIECE if name == "directory" else FEW)
            with (
                tempfile.TemporaryDirectory(dir=arguments.directory) as folder,
                PLACES[name](Path(folder)) as place,
            ):
                measure_place(name, place, arguments, part, recorder)


if __name__ == "__main__":
    main()
