"""Measures shuffles of files larger than memory, beside copies and other tools.

    python bench/records.py --directory DIR [--size 1G] [--memory 128M] [--record 100] [--index]
        [--rounds 3] [--with NAMES]
    python bench/records.py --directory DIR --case small|large|long
    python bench/records.py --directory DIR --break-even

The case long has 4G of lines of 100 KB in 100M of memory, with an index. --break-even measures
gathering and buckets by record length, and prints the choice of the plan.

All commands run in a memory cgroup of that size, which counts the page cache, too (version 1,
root); the heading says if none can be created. Ways take turns round by round. The output shows
medians of seconds and of the ratio to the copies (past the page cache) of the same round, and the
peak memory of the group. `fio` is the lower limit of gathering: it reads the whole input at random
in pieces of a record while it writes as much in order. DuckDB runs in the interpreter that
--duckdb names (python -m venv V; V/bin/pip install duckdb). Missing tools are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring import find_median_ratio, make_parser
from recording import Recorder

GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT = 3600  # seconds of a command


def parse_size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def make_input(path: Path, size: int, record: int) -> None:
    """Writes numbered lines of half to one and a half of the record length."""
    block = random.Random(2).randbytes(1 << 20).translate(
        bytes(97 + value % 26 for value in range(256))
    ) * (1 + (record >> 18))
    chance = random.Random(1)
    with path.open("wb") as out:
        number = 0
        while out.tell() < size:
            parts = []
            for _ in range(max(1, (4 << 20) // record)):
                length, at = (
                    chance.randrange(record // 2, record + record // 2),
                    chance.randrange(1 << 19),
                )
                filler = block[at : at + max(0, length - 11)]
                parts.append(b"%010d" % number + filler + b"\n")
                number += 1
            out.write(b"".join(parts))


@contextlib.contextmanager
def create_group(memory: int) -> Iterator[Path | None]:
    """Creates a cgroup for one command; None if that fails."""
    path = GROUPS / f"pario-bench-{os.getpid()}"
    try:
        path.mkdir()
        (path / "memory.limit_in_bytes").write_text(str(memory))
    except OSError:
        yield None
        return
    try:
        yield path
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.05)


@dataclass(frozen=True)
class Run:
    """A run: its seconds, the peak memory of its group (0: no group), and its error, if any."""

    seconds: float
    peak: int
    state: str


def run_command(command: list[str], memory: int) -> Run:
    """Runs a command in a memory cgroup."""
    with create_group(memory) as inside:
        enter = f'echo $$ > {inside}/cgroup.procs; exec "$@"' if inside else 'exec "$@"'
        words, state = ["bash", "-c", enter, "bash", *command], ""
        start = time.monotonic()
        try:
            done = subprocess.run(
                words, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False
            )
            if done.returncode != 0:
                lines = done.stderr.splitlines()
                state = f"failed: {lines[-1][-80:] if lines else done.returncode}"
        except subprocess.TimeoutExpired:
            state = f"ended after {LIMIT} s"
        seconds = time.monotonic() - start
        peak = int((inside / "memory.max_usage_in_bytes").read_text()) if inside else 0
    return Run(seconds, peak, state)


def record_run(
    recorder: Recorder, arguments: argparse.Namespace, record: int, way: str, number: int, run: Run
) -> None:
    recorder.add(
        input_bytes=parse_size(arguments.size),
        memory_bytes=parse_size(arguments.memory),
        record_bytes=record,
        index=arguments.index,
        way=way,
        round=number,
        seconds=run.seconds,
        peak_bytes=run.peak or None,
        error=run.state or None,
    )


#: Size, memory, bytes of a record, with an index.
CASES = {
    "small": ("1G", "128M", 100, False),
    "large": ("4G", "512M", 100, False),
    "long": ("4G", "100M", 100_000, True),
}
LENGTHS = (1_000, 4_000, 16_000, 64_000, 256_000)


def make_shuffle(source: Path, out: Path, memory: str, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pario", "records", "shuffle", str(source), "-o", str(out)]
    return [*command, "--memory", memory, "--seed", "7", *options]


def list_ways(source: Path, directory: Path, memory: str, record: int) -> dict[str, list[str]]:
    """Returns the copies, two for short records, and the shuffle."""
    out, twice = directory / "out", directory / "copy"
    flags = "bs=4M iflag=direct oflag=direct status=none conv=fsync"
    copy = f"dd if={source} of={out} {flags}"
    long = record >= 50_000
    copies = copy if long else f"{copy} && dd if={out} of={twice} {flags}"
    return {
        "one copy" if long else "two copies": ["bash", "-c", copies],
        "pario": make_shuffle(source, out, memory),
    }


def make_awk(source: Path, directory: Path, memory: int) -> list[str]:
    number = "awk 'BEGIN{srand(7)}{print rand() \"\\t\" $0}'"
    sort = f"sort -S {memory}K -T {directory} | cut -f2- > {directory / 'out'}"
    pipe = f"{number} {source} | {sort}"
    return ["bash", "-c", f"set -o pipefail; export LC_ALL=C; {pipe}"]


def make_duckdb(python: str, source: Path, directory: Path, memory: int) -> list[str]:
    sql = (
        f"SET memory_limit='{memory}KiB'; SET threads=1; "
        f"SET temp_directory='{directory}/duckdb'; SET preserve_insertion_order=false;"
        f"COPY (SELECT * FROM read_csv('{source}', header=false, quote='', escape='',"
        f" auto_detect=false, buffer_size=4194304, delim='\x01', columns={{'l': 'VARCHAR'}})"
        f" ORDER BY random()) TO '{directory / 'out'}'"
        " (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01');"
    )
    return [python, "-c", f'import duckdb; duckdb.execute(r"""{sql}""")']


def make_fio(source: Path, directory: Path, record: int) -> list[str]:
    block, size = -(-record // 4096) * 4096, source.stat().st_size
    words = ["fio", "--direct=1", "--ioengine=libaio", f"--size={size}", "--minimal"]
    words += ["--output=/dev/null", "--name=read", f"--filename={source}", "--rw=randread"]
    words += [f"--bs={block}", "--iodepth=16", "--name=write", f"--filename={directory / 'out'}"]
    return [*words, "--rw=write", "--bs=1m", "--iodepth=4", "--end_fsync=1"]


def list_rivals(
    source: Path, directory: Path, memory: str, arguments: argparse.Namespace
) -> dict[str, list[str]]:
    """Returns the named other tools that are installed."""
    out = directory / "out"
    half = parse_size(memory) // 2048  # KiB: half, because the tools exceed their limit
    commands = {
        "awk": ("awk, sort, cut", make_awk(source, directory, half)),
        "shuf": ("shuf", ["shuf", str(source), "-o", str(out)]),
        "duckdb": ("DuckDB", make_duckdb(arguments.duckdb, source, directory, half)),
        "fio": ("floor (fio)", make_fio(source, directory, arguments.record)),
        "fused": ("pario --fused", make_shuffle(source, out, memory, "--fused")),
        "lz4": ("pario --compress", make_shuffle(source, out, memory, "--compress", "lz4")),
    }
    found = {}
    for name in filter(None, arguments.rivals.split(",")):
        title, command = commands[name]
        installed = shutil.which(command[0]) is not None
        if name == "duckdb" and installed:
            trial = [command[0], "-c", "import duckdb"]
            installed = subprocess.run(trial, capture_output=True, check=False).returncode == 0
        if installed:
            found[title] = command
        else:
            print(f"skipped: {name} is not installed")
    return found


def measure_ways(
    table: dict[str, list[str]], arguments: argparse.Namespace, recorder: Recorder
) -> None:
    """Runs all ways in turn, and prints their figures."""
    runs: dict[str, list[Run]] = {name: [] for name in table}
    for number in range(1, arguments.rounds + 1):
        for name, command in table.items():
            runs[name].append(run_command(command, parse_size(arguments.memory)))
            record_run(recorder, arguments, arguments.record, name, number, runs[name][-1])
            (arguments.directory / "copy").unlink(missing_ok=True)
    limited = any(run.peak for found in runs.values() for run in found)
    counted = "with the page cache" if limited else "not limited: no cgroup could be created"
    print(
        f"{arguments.size} in records of {arguments.record} B, memory {arguments.memory} "
        f"({counted}), load {os.getloadavg()[0]:.1f}"
    )
    base = [run.seconds for run in next(iter(runs.values()))]
    for name, found in runs.items():
        seconds = [run.seconds for run in found]
        peak = max(run.peak for run in found) / 1e6
        state = next((run.state for run in found if run.state), "")
        print(
            f"{name:>16}: {statistics.median(seconds):7.2f} s  "
            f"{find_median_ratio(seconds, base):5.2f}  {peak:6.0f} MB  {state}"
        )


def index_records(source: Path) -> None:
    command = [sys.executable, "-m", "pario", "records", "index", str(source)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def measure_break_even(arguments: argparse.Namespace, recorder: Recorder) -> None:
    """Measures gathering and buckets by record length, with an index; prints the plan's choice."""
    source, out = arguments.directory / "input.txt", arguments.directory / "out"
    print(f"{arguments.size}, memory {arguments.memory}: seconds by length of records")
    arguments.index = True
    for record in LENGTHS:
        make_input(source, parse_size(arguments.size), record)
        index_records(source)
        seconds: dict[str, list[float]] = {"gather": [], "buckets": []}
        failed = []
        for number in range(1, arguments.rounds + 1):
            for way, times in seconds.items():
                command = make_shuffle(source, out, arguments.memory, "--way", way)
                run = run_command(command, parse_size(arguments.memory))
                record_run(recorder, arguments, record, way, number, run)
                times.append(run.seconds)
                failed += [f"{way} {run.state}"] if run.state else []
        explain = make_shuffle(source, out, arguments.memory, "--explain")
        plan = subprocess.run(explain, capture_output=True, text=True, check=True).stdout
        gather, buckets = map(statistics.median, seconds.values())
        print(
            f"{record:8} B: gather {gather:6.2f}, buckets {buckets:6.2f}; "
            f"{plan.splitlines()[0]} {'; '.join(failed)}"
        )


def measure_shuffle(arguments: argparse.Namespace, recorder: Recorder) -> None:
    """Measures one size of input."""
    directory, source = arguments.directory, arguments.directory / "input.txt"
    make_input(source, parse_size(arguments.size), arguments.record)
    if arguments.index:
        index_records(source)
    table = list_ways(source, directory, arguments.memory, arguments.record)
    table |= list_rivals(source, directory, arguments.memory, arguments)
    measure_ways(table, arguments, recorder)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--directory",
        type=Path,
        required=True,
        help="on the file system to measure; needs four times the size",
    )
    parser.add_argument(
        "--case", choices=CASES, help="instead of --size, --memory, --record and --index"
    )
    parser.add_argument("--size", default="1G")
    parser.add_argument("--memory", default="128M")
    parser.add_argument("--record", type=int, default=100, help="mean bytes of a record")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--with",
        dest="rivals",
        default="",
        metavar="NAMES",
        help="other ways: awk, shuf, duckdb, fio, fused, lz4",
    )
    parser.add_argument(
        "--duckdb", default=sys.executable, metavar="PYTHON", help="an interpreter with DuckDB"
    )
    parser.add_argument("--index", action="store_true", help="index the input first")
    parser.add_argument(
        "--break-even", action="store_true", help="gathering and buckets, by record length"
    )
    arguments = parser.parse_args()
    if arguments.case:
        arguments.size, arguments.memory, arguments.record, arguments.index = CASES[arguments.case]
    with Recorder("records", arguments, directories=[arguments.directory]) as recorder:
        (measure_break_even if arguments.break_even else measure_shuffle)(arguments, recorder)


if __name__ == "__main__":
    main()
