"""Shuffles of files larger than memory, beside copies past the page cache and what else people use.

    python bench/records.py --directory DIR [--size 1G] [--memory 128M] [--record 100] [--index] [--rounds 3] [--with NAMES]
    python bench/records.py --directory DIR --case long        # 4G of lines of 100 KB in 100M, with an index; also: small, large
    python bench/records.py --directory DIR --break-even       # both ways by record length, and which one is chosen

All run in a memory cgroup of that size where one can be made (version 1, root), which counts the page cache, too; the heading says when
not. Ways take turns round by round; quoted are medians of seconds and of the ratio to the copies of the same round, and the most memory
that the group had. `fio` is the floor of gathering: the whole input read at random in pieces of a record while as much is written in
order. DuckDB is asked of the interpreter that --duckdb names (python -m venv V; V/bin/pip install duckdb). What is not here is skipped.
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
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup/memory")


def size_of(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def make_input(path: Path, size: int, record: int) -> None:
    """Lines of that length on average (half to one and a half), each with its number."""
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
def group(memory: int) -> Iterator[Path | None]:
    """A cgroup for one command; nothing where it cannot be made."""
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


def run(command: list[str], memory: int, seconds: float) -> tuple[float, int, str]:
    """Seconds, most memory, and what became of it."""
    with group(memory) as inside:
        enter = f'echo $$ > {inside}/cgroup.procs; exec "$@"' if inside else 'exec "$@"'
        start = time.monotonic()
        try:
            done = subprocess.run(
                ["bash", "-c", enter, "bash", *command],
                stderr=subprocess.PIPE,
                text=True,
                timeout=seconds,
                check=False,
            )
            state = (
                ""
                if done.returncode == 0
                else f"failed: {done.stderr.strip()[-80:] or done.returncode}"
            )
        except subprocess.TimeoutExpired:
            state = f"ended after {seconds:.0f} s"
        took = time.monotonic() - start
        most = int((inside / "memory.max_usage_in_bytes").read_text()) if inside else 0
    return took, most, state


#: Size, memory, bytes of a record, with an index.
CASES = {
    "small": ("1G", "128M", 100, False),
    "large": ("4G", "512M", 100, False),
    "long": ("4G", "100M", 100_000, True),
}
LENGTHS = (1_000, 4_000, 16_000, 64_000, 256_000)


def shuffle(source: Path, out: Path, memory: str, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pario", "records", "shuffle", str(source), "-o", str(out)]
    return [*command, "--memory", memory, "--seed", "7", *options]


def ways(source: Path, directory: Path, memory: str, record: int) -> dict[str, list[str]]:
    out, twice = directory / "out", directory / "copy"
    copy = f"dd if={source} of={out} bs=4M iflag=direct oflag=direct status=none conv=fsync"
    copies = (
        copy
        if record >= 50_000
        else f"{copy} && dd if={out} of={twice} bs=4M iflag=direct oflag=direct status=none conv=fsync"
    )
    return {
        "one copy" if record >= 50_000 else "two copies": ["bash", "-c", copies],
        "pario": shuffle(source, out, memory),
    }


def rivals(
    source: Path, directory: Path, memory: str, arguments: argparse.Namespace
) -> dict[str, list[str]]:
    """Those asked for that are here."""
    out, half = directory / "out", size_of(memory) // 2048  # KiB: they use more than they are told
    awk = f"awk 'BEGIN{{srand(7)}}{{print rand() \"\\t\" $0}}' {source} | sort -S {half}K -T {directory} | cut -f2- > {out}"
    sql = (
        f"SET memory_limit='{half}KiB'; SET threads=1; SET temp_directory='{directory}/duckdb'; SET preserve_insertion_order=false;"
        f"COPY (SELECT * FROM read_csv('{source}', header=false, quote='', escape='', auto_detect=false,"
        f" buffer_size=4194304, delim='\x01', columns={{'l': 'VARCHAR'}})"
        f" ORDER BY random()) TO '{out}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01');"
    )
    floor = [
        "fio",
        "--direct=1",
        "--ioengine=libaio",
        f"--size={source.stat().st_size}",
        "--minimal",
        "--output=/dev/null",
    ]
    floor += [
        "--name=read",
        f"--filename={source}",
        "--rw=randread",
        f"--bs={-(-arguments.record // 4096) * 4096}",
        "--iodepth=16",
    ]
    floor += [
        "--name=write",
        f"--filename={out}",
        "--rw=write",
        "--bs=1m",
        "--iodepth=4",
        "--end_fsync=1",
    ]
    commands = {
        "awk": ("awk, sort, cut", ["bash", "-c", f"set -o pipefail; export LC_ALL=C; {awk}"]),
        "shuf": ("shuf", ["shuf", str(source), "-o", str(out)]),
        "duckdb": (
            "DuckDB",
            [arguments.duckdb, "-c", f'import duckdb; duckdb.execute(r"""{sql}""")'],
        ),
        "fio": ("floor (fio)", floor),
        "fused": ("pario --fused", shuffle(source, out, memory, "--fused")),
        "lz4": ("pario --compress", shuffle(source, out, memory, "--compress", "lz4")),
    }
    found = {}
    for name in filter(None, arguments.rivals.split(",")):
        title, command = commands[name]
        here = shutil.which(command[0]) is not None
        if name == "duckdb":
            here = (
                here
                and subprocess.run(
                    [command[0], "-c", "import duckdb"], capture_output=True, check=False
                ).returncode
                == 0
            )
        if here:
            found[title] = command
        else:
            print(f"skipped: {name} is not here")
    return found


def measure(table: dict[str, list[str]], arguments: argparse.Namespace) -> None:
    """All ways in turns, and what they came to."""
    seconds: dict[str, list[float]] = {name: [] for name in table}
    most, states = dict.fromkeys(table, 0), dict.fromkeys(table, "")
    for _ in range(arguments.rounds):
        for name, command in table.items():
            took, memory, state = run(command, size_of(arguments.memory), 3600)
            seconds[name].append(took)
            most[name], states[name] = max(most[name], memory), state or states[name]
            (arguments.directory / "copy").unlink(missing_ok=True)
    base = next(iter(table))
    counted = (
        "with the page cache"
        if GROUPS.exists() and any(most.values())
        else "not limited: no cgroup could be made"
    )
    print(
        f"{arguments.size} in records of {arguments.record} B, memory {arguments.memory} ({counted}), load {os.getloadavg()[0]:.1f}"
    )
    for name, times in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(times, seconds[base], strict=True))
        print(
            f"{name:>16}: {statistics.median(times):7.2f} s  {ratio:5.2f}  {most[name] / 1e6:6.0f} MB  {states[name]}"
        )


def index(source: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pario", "records", "index", str(source)],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def break_even(arguments: argparse.Namespace) -> None:
    """Both ways by the length of records, indexed, and whether the plan chose the faster."""
    source, out = arguments.directory / "input.txt", arguments.directory / "out"
    print(f"{arguments.size}, memory {arguments.memory}: seconds by length of records")
    for record in LENGTHS:
        make_input(source, size_of(arguments.size), record)
        index(source)
        seconds: dict[str, list[float]] = {"gather": [], "buckets": []}
        failed = []
        for _ in range(arguments.rounds):
            for way, times in seconds.items():
                took, _, state = run(
                    shuffle(source, out, arguments.memory, "--way", way),
                    size_of(arguments.memory),
                    3600,
                )
                times.append(took)
                failed += [f"{way} {state}"] if state else []
        plan = subprocess.run(
            shuffle(source, out, arguments.memory, "--explain"),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        gather, buckets = (statistics.median(times) for times in seconds.values())
        print(
            f"{record:8} B: gather {gather:6.2f}, buckets {buckets:6.2f}; {plan.splitlines()[0]} {'; '.join(failed)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory",
        type=Path,
        required=True,
        help="on the file system to measure; four times the size is needed",
    )
    parser.add_argument(
        "--case", choices=CASES, help="instead of --size, --memory, --record and --index"
    )
    parser.add_argument("--size", default="1G")
    parser.add_argument("--memory", default="128M")
    parser.add_argument("--record", type=int, default=100, help="bytes of a record, on average")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--with",
        dest="rivals",
        default="",
        metavar="NAMES",
        help="also these: awk, shuf, duckdb, fio, fused, lz4",
    )
    parser.add_argument(
        "--duckdb", default=sys.executable, metavar="PYTHON", help="an interpreter that has DuckDB"
    )
    parser.add_argument("--index", action="store_true", help="the input has an index")
    parser.add_argument(
        "--break-even", action="store_true", help="gathering against buckets, by record length"
    )
    arguments = parser.parse_args()
    if arguments.case:
        arguments.size, arguments.memory, arguments.record, arguments.index = CASES[arguments.case]
    if arguments.break_even:
        break_even(arguments)
        return
    source = arguments.directory / "input.txt"
    make_input(source, size_of(arguments.size), arguments.record)
    if arguments.index:
        index(source)
    table = ways(source, arguments.directory, arguments.memory, arguments.record)
    measure(table | rivals(source, arguments.directory, arguments.memory, arguments), arguments)


if __name__ == "__main__":
    main()
