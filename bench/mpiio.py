"""MPI-IO of pario beside that of the MPIs (with their best hints), and beside one process that moves the same bytes in 8 MiB pieces.

Usage: mpiio.py --library LIBPARIO [--quick] [--directory DIR]... [--ranks N,N] [--mebibytes N,N] [--pattern P]... [--json FILE]

Every pattern of mpiio.c takes turns with the limit within one process; implementations take turns round by round. Quoted are medians, of
seconds, of the ratio to the limit that was measured beside, and of pario's ratio to the best other in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).with_name("mpiio.c")
AS_ROOT = ("--allow-run-as-root", "--oversubscribe")
BEST = "cb_nodes=2;cb_buffer_size=4194304;romio_cb_write=enable;romio_cb_read=enable;romio_ds_write=disable"
PATTERNS = [
    *(f"interleaved:{piece}" for piece in (64, 256, 1024, 4096, 65536, 47008)),
    "blocks:64",
    "s3d",
    "btio",
    "contiguous",
]
QUICK = ["interleaved:64", "interleaved:1024", "interleaved:65536", "blocks:64", "btio"]


@dataclass(frozen=True)
class Implementation:
    """One MPI-IO: an MPI, options of its launcher, hints."""

    name: str
    folder: Path  # of the MPI's commands
    options: tuple[str, ...] = ()
    hints: str = ""
    pario: bool = False
    quick: bool = True

    def command(self, program: Path, ranks: int) -> list[str]:
        return [str(self.folder / "mpiexec"), *self.options, "-n", str(ranks), str(program)]


def implementations(mpich: Path, openmpi: Path) -> list[Implementation]:
    def ompi(*parameters: str) -> tuple[str, ...]:
        return (
            *AS_ROOT,
            "--mca",
            "mpi_yield_when_idle",
            "1",
            *(word for text in parameters for word in ("--mca", *text.split("="))),
        )

    aggregators = "io_ompio_num_aggregators=2", "io_ompio_bytes_per_agg=4194304"
    return [
        Implementation("pario, MPICH 5", mpich, pario=True),
        Implementation("ROMIO, MPICH 5, hints", mpich, hints=BEST),
        Implementation("ROMIO, MPICH 5", mpich, quick=False),
        Implementation("pario, Open MPI 5", openmpi, ompi(), pario=True),
        Implementation("ROMIO, Open MPI 5, hints", openmpi, ompi("io=romio341"), BEST),
        Implementation("OMPIO, parameters", openmpi, ompi("io=ompio", *aggregators)),
        Implementation("OMPIO", openmpi, ompi("io=ompio"), quick=False),
    ]


@dataclass
class Row:
    """The measurements of one implementation on one pattern: by round, each the repetitions of one run."""

    seconds: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    rounds: list[float] = field(default_factory=list)  # medians

    def of_limit(self) -> float:
        return statistics.median(
            limit / own for own, limit in zip(self.seconds, self.limits, strict=True)
        )


Key = tuple[str, int, int, str, str]  # directory, ranks, mebibytes, pattern, operation
Results = dict[Key, dict[str, Row]]


def run_once(
    one: Implementation,
    program: Path,
    place: str,
    ranks: int,
    size: int,
    arguments: argparse.Namespace,
) -> dict[tuple[str, str], Row]:
    """One run over all patterns; patterns that failed are said and left out."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PARIO_", "LD_PRELOAD"))
    }
    environment["MPIIO_HINTS"] = one.hints
    if one.pario:
        environment |= {"LD_PRELOAD": str(arguments.library), "PARIO_MPIIO": "1"}
    rows: dict[tuple[str, str], Row] = defaultdict(Row)
    for pattern in arguments.pattern:
        with tempfile.TemporaryDirectory(dir=place) as directory:
            command = [
                *one.command(program, ranks),
                directory,
                str(size),
                str(arguments.repetitions),
                pattern,
            ]
            try:
                done = subprocess.run(
                    command,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=arguments.seconds,
                )
            except subprocess.TimeoutExpired:
                print(
                    f"{one.name}: {pattern}, {ranks} ranks: not done in {arguments.seconds} s",
                    file=sys.stderr,
                )
                continue
        if done.returncode != 0:
            print(
                f"{one.name}: {pattern}, {ranks} ranks: {(done.stderr or done.stdout).strip()[:300]}",
                file=sys.stderr,
            )
            continue
        add(rows, done.stdout)
    return rows


def add(rows: dict[tuple[str, str], Row], output: str) -> None:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in output.splitlines():
        words = line.split()
        if len(words) != 5:
            continue
        pattern, operation, seconds, limit, calls = words
        row = rows[(pattern, operation)]
        row.seconds.append(float(seconds))
        row.limits.append(float(limit))
        row.calls.append(int(calls))
        found[(pattern, operation)].append(float(seconds))
    for key, seconds_of in found.items():
        rows[key].rounds.append(statistics.median(seconds_of))


def collect(
    chosen: list[Implementation], programs: dict[Path, Path], arguments: argparse.Namespace
) -> Results:
    results: Results = defaultdict(dict)
    for place in arguments.directory:
        for ranks in arguments.ranks:
            for size in arguments.mebibytes:
                for _ in range(arguments.rounds):
                    for one in chosen:
                        for (pattern, operation), row in run_once(
                            one, programs[one.folder], place, ranks, size, arguments
                        ).items():
                            total = results[(place, ranks, size, pattern, operation)].setdefault(
                                one.name, Row()
                            )
                            for name in ("seconds", "limits", "calls", "rounds"):
                                getattr(total, name).extend(getattr(row, name))
    return results


def against_best(rows: dict[str, Row], name: str) -> float | None:
    """The median, over the rounds, of the fastest other's seconds divided by this one's."""
    others = [row.rounds for other, row in rows.items() if not other.startswith("pario")]
    if name not in rows or not others:
        return None
    pairs = zip(rows[name].rounds, *others, strict=False)
    ratios = [min(rest) / own for own, *rest in pairs]
    return statistics.median(ratios) if ratios else None


def table(results: Results) -> str:
    """Markdown, as docs/benchmarks.md has it."""
    lines = [
        "| directory | ranks | MiB | pattern | | MPI-IO | MB/s | of the limit | times the best other | system calls |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (place, ranks, size, pattern, operation), rows in results.items():
        for name, row in rows.items():
            speed = size * 1.048576 / statistics.median(row.seconds)
            best = against_best(rows, name) if name.startswith("pario") else None
            share = (
                f"{row.of_limit():.2f}"
                if operation not in ("both", "floor")
                else f"{1 / row.of_limit():.2f} x one"
            )
            cells = [place, ranks, size, pattern, operation, name, f"{speed:.0f}", share]
            cells += [f"{best:.2f}" if best else "", f"{statistics.median(row.calls):.0f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def as_json(results: Results) -> list[dict[str, object]]:
    names = ("directory", "ranks", "mebibytes", "pattern", "operation")
    return [
        {
            **dict(zip(names, key, strict=True)),
            "name": name,
            "seconds": row.seconds,
            "limit": row.limits,
            "calls": row.calls,
        }
        for key, rows in results.items()
        for name, row in rows.items()
    ]


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library",
        type=lambda path: Path(path).resolve(),
        help="libpario.so; without it only the others are measured",
    )
    parser.add_argument("--mpich", type=Path, default=ROOT / ".venv/bin")
    parser.add_argument("--openmpi", type=Path, default=ROOT / ".venv-ompi/bin")
    parser.add_argument(
        "--directory", action="append", help="on the file system to measure; may be repeated"
    )
    parser.add_argument("--ranks", type=numbers, help="2,4,8")
    parser.add_argument("--mebibytes", type=numbers, help="128,1024")
    parser.add_argument(
        "--pattern",
        action="append",
        help="as in mpiio.c; may be repeated; overlap:BYTES measures overlap",
    )
    parser.add_argument(
        "--only", action="append", default=[], help="implementations whose names contain this"
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--seconds", type=float, default=300, help="after which a run is given up")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="a useful part in about three minutes")
    arguments = parser.parse_args()
    quick = arguments.quick
    arguments.directory = (
        arguments.directory or [tempfile.gettempdir(), "/dev/shm"][: 1 if quick else 2]
    )
    arguments.ranks = arguments.ranks or ([2] if quick else [2, 4, 8])
    arguments.mebibytes = arguments.mebibytes or ([128] if quick else [128, 1024])
    arguments.pattern = arguments.pattern or (QUICK if quick else PATTERNS)
    arguments.rounds = arguments.rounds or (2 if quick else 5)
    arguments.repetitions = arguments.repetitions or 3
    return arguments


def main() -> None:
    """Measures and prints."""
    arguments = parse()
    chosen = [
        one
        for one in implementations(arguments.mpich, arguments.openmpi)
        if (arguments.library or not one.pario) and (one.folder / "mpiexec").exists()
    ]
    chosen = [one for one in chosen if one.quick or not arguments.quick]
    if arguments.only:
        chosen = [one for one in chosen if any(word in one.name for word in arguments.only)]
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for commands in {one.folder for one in chosen}:
            programs[commands] = Path(folder) / f"mpiio-{len(programs)}"
            subprocess.run(
                [commands / "mpicc", "-O2", "-o", programs[commands], SOURCE], check=True
            )
        results = collect(chosen, programs, arguments)
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(results), indent=1))


if __name__ == "__main__":
    main()
