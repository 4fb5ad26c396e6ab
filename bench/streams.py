"""Two million small writes, buffered and not, beside one process that writes the same bytes in 64 MiB pieces.

    python bench/streams.py --library LIBPARIO [--directory DIR] [--place directory|lab|ceph]... [--rounds N] [--streams SPECIFICATION]
                            [--part CALLS]

The case of Cray's IOBUF: 2,083,634 writes of 512 bytes. Ways take turns round by round, the file is there before and is written over;
quoted are medians of seconds and of the ratio to the large pieces of the same round, and system writes as strace counts them in a run of
its own where buffers are at work. Without buffers only --part of the calls are made, and their seconds are multiplied. Places: a
directory, a lab where a request costs half a millisecond, and a CephFS on this machine (needs root). Page faults are of the whole process.
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

SOURCE = Path(__file__).with_name("streams.c")
TOTAL, PIECE, LARGE = 2_083_634 * 512, 512, 64 << 20
LIMIT, BUFFERED = "64 MiB pieces", ", buffered"
FEW = 5_000  # calls that are made where each takes a request
CEPH = Path(__file__).parents[1] / "tests" / "filesystems" / "ceph.sh"


def ways(streams: str) -> dict[str, tuple[str, int, str]]:
    """Way of writing, bytes per call, buffers."""
    return {
        LIMIT: ("write", LARGE, ""),
        "write of 512 B": ("write", PIECE, ""),
        f"write of 512 B{BUFFERED}": ("write", PIECE, f"*.dat:{streams}"),
        "stdio, a flush per 512 B": ("stdio", PIECE, ""),
        f"stdio, a flush per 512 B{BUFFERED}": ("stdio", PIECE, f"*.dat:{streams}:ignoreflush"),
    }


def environment(library: Path, streams: str) -> dict[str, str]:
    return os.environ | ({"LD_PRELOAD": str(library), "PARIO_STREAMS": streams} if streams else {})


def system_writes(command: list[str], env: dict[str, str]) -> int:
    preload = [f"-E{key}={env[key]}" for key in ("LD_PRELOAD", "PARIO_STREAMS") if key in env]
    done = subprocess.run(
        ["strace", "-f", "-c", "-e", "trace=write,pwrite64,pwritev", *preload, *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(
        int(line.split()[3])
        for line in done.stderr.splitlines()
        if re.search(r" p?write(v|64)?$", line)
    )


def writes(command: list[str], env: dict[str, str]) -> str:
    """Without buffers each call is one, and strace would take minutes."""
    if "PARIO_STREAMS" not in env:
        return f"{TOTAL // int(command[3]):,}"
    return (
        f"{system_writes(command, env) - 1:,}" if shutil.which("strace") else ""
    )  # without the one that prints


@contextmanager
def on_lab(folder: Path) -> Iterator[Path]:
    """A lab whose requests take half a millisecond each, and whose bytes take no time."""
    from pario.lab.mount import Model, down, up

    point = up(folder / "lab", Model(rate=0, latency=500_000, in_flight=0)).point
    try:
        yield point
    finally:
        down(point, force=True)


@contextmanager
def on_ceph(folder: Path) -> Iterator[Path]:
    """A CephFS on this machine, in memory."""
    try:
        subprocess.run([CEPH, "up", folder, "127.0.0.1", "4"], check=True)
        subprocess.run([CEPH, "mount", folder, folder / "mount"], check=True)
        yield folder / "mount"
    finally:
        subprocess.run([CEPH, "down", folder], check=True)


@contextmanager
def in_directory(folder: Path) -> Iterator[Path]:
    """The file system of --directory."""
    yield folder


PLACES = {"directory": in_directory, "lab": on_lab, "ceph": on_ceph}


@dataclass
class Run:
    """One way, and what came of its runs."""

    command: list[str]
    env: dict[str, str]
    part: float  # of the calls that are made
    seconds: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)

    def once(self) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        done = subprocess.run(
            self.command, env=self.env, capture_output=True, text=True, check=True
        )
        self.faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
        self.seconds.append(float(done.stdout) / self.part)


def measure(place: Path, chosen: argparse.Namespace, part: int) -> dict[str, Run]:
    program, file = place / "streams", place / "out.dat"
    subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
    file.write_bytes(b"\0" * TOTAL)
    runs = {}
    for name, (how, size, streams) in ways(chosen.streams).items():
        made = 1.0 if streams or size == LARGE else part * PIECE / TOTAL
        runs[name] = Run(
            [str(program), str(file), how, str(size), f"{TOTAL * made:.0f}"],
            environment(chosen.library, streams),
            made,
        )
    for _ in range(chosen.rounds):
        for run in runs.values():
            run.once()
    return runs


def show(name: str, runs: dict[str, Run], part: int) -> None:
    multiplied = (
        ""
        if part == TOTAL // PIECE
        else f"; without buffers {part:,} calls were made and their seconds multiplied"
    )
    print(f"\n{name}, load {os.getloadavg()[0]:.1f}{multiplied}\n")
    print(
        "| way | seconds | times the large pieces | times as fast as without | system writes | page faults |\n|---|---|---|---|---|---|"
    )
    for way, run in runs.items():
        median = statistics.median(run.seconds)
        ratio = statistics.median(
            own / limit for own, limit in zip(run.seconds, runs[LIMIT].seconds, strict=True)
        )
        plain = runs.get(way.removesuffix(BUFFERED))
        gain = (
            f"{statistics.median(plain.seconds) / median:,.0f}"
            if plain is not None and plain is not run
            else ""
        )
        faults = statistics.median(run.faults)
        print(
            f"| {way} | {median:.3f} | {ratio:.2f} | {gain} | {writes(run.command, run.env)} | {faults:,.0f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so"
    )
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
        help=f"calls that are made where nothing is buffered (default: all; elsewhere {FEW:,})",
    )
    chosen = parser.parse_args()
    for name in chosen.place or ["directory"]:
        part = chosen.part or (TOTAL // PIECE if name == "directory" else FEW)
        with (
            tempfile.TemporaryDirectory(dir=chosen.directory) as folder,
            PLACES[name](Path(folder)) as place,
        ):
            show(name, measure(place, chosen, part), part)


if __name__ == "__main__":
    main()
