"""Measures MPI-IO of pario beside that of the MPIs, with their best hints.

    python bench/mpiio.py --library LIBPARIO [--quick] [--directory DIR]... [--ranks N,N]
        [--mebibytes N,N] [--pattern P]...

Beside every pattern of mpiio.c, its limit is measured in turn: one process that moves the same
bytes in 8 MiB pieces. Implementations take turns round by round. The table shows medians: of
seconds, of the ratio to the limit measured beside, and of pario's ratio to the best other
implementation in the same round.

`--map` measures many collective calls of each size and pattern on 1 to 16 ranks, and names the
cells in which another implementation is faster than pario.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from environment import describe_file_system
from measuring import make_parser, resolve_path
from recording import Recorder

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).with_name("mpiio.c")
AS_ROOT = ("--allow-run-as-root", "--oversubscribe")
BEST = (
    "cb_nodes=2;cb_buffer_size=4194304;"
    "romio_cb_write=enable;romio_cb_read=enable;romio_ds_write=disable"
)
NO_BUFFERS = "romio_cb_write=disable;romio_cb_read=disable"
PATTERNS = [
    *(f"interleaved:{piece}" for piece in (64, 256, 1024, 4096, 65536, 47008)),
    "blocks:64",
    "s3d",
    "btio",
    "contiguous",
]
#: A ratio that counts as equal.
EQUAL = 0.97
#: The map: sizes of a rank's part of a collective call.
SIZES = [512 << shift for shift in range(0, 16, 3)]
MAP = [f"{pattern}:{size}" for pattern in ("calls", "turns", "random") for size in SIZES]
QUICK = ["interleaved:64", "interleaved:1024", "interleaved:65536", "blocks:64", "btio"]


@dataclass(frozen=True)
class Implementation:
    """An implementation of MPI-IO: an MPI, options of its launcher, hints."""

    name: str
    folder: Path  # of the MPI's commands
    options: tuple[str, ...] = ()
    hints: str = ""
    pario: bool = False
    quick: bool = True

    def command(self, program: Path, ranks: int) -> list[str]:
        return [str(self.folder / "mpiexec"), *self.options, "-n", str(ranks), str(program)]


def list_implementations(mpich: Path, openmpi: Path) -> list[Implementation]:
    def ompi(*parameters: str) -> tuple[str, ...]:
        yielding = (*AS_ROOT, "--mca", "mpi_yield_when_idle", "1")
        return (*yielding, *(word for text in parameters for word in ("--mca", *text.split("="))))

    aggregators = "io_ompio_num_aggregators=2", "io_ompio_bytes_per_agg=4194304"
    return [
        Implementation("pario, MPICH 5", mpich, pario=True),
        Implementation("ROMIO, MPICH 5, hints", mpich, hints=BEST),
        Implementation("ROMIO, MPICH 5", mpich, quick=False),
        Implementation("ROMIO, MPICH 5, no buffers", mpich, hints=NO_BUFFERS, quick=False),
        Implementation("pario, Open MPI 5", openmpi, ompi(), pario=True),
        Implementation("ROMIO, Open MPI 5, hints", openmpi, ompi("io=romio341"), BEST),
        Implementation(
            "ROMIO, Open MPI 5, no buffers",
            openmpi,
            ompi("io=romio341"),
            NO_BUFFERS,
            quick=False,
        ),
        Implementation("OMPIO, parameters", openmpi, ompi("io=ompio", *aggregators)),
        Implementation("OMPIO", openmpi, ompi("io=ompio"), quick=False),
    ]


@dataclass(frozen=True)
class Sample:
    """A repetition: seconds, those of the limit beside, and system calls of all ranks."""

    pattern: str
    operation: str
    seconds: float
    limit: float
    calls: int


@dataclass
class Row:
    """The samples of one implementation on one pattern, by round."""

    rounds: dict[int, list[Sample]] = field(default_factory=lambda: defaultdict(list))

    @property
    def samples(self) -> list[Sample]:
        return [sample for samples in self.rounds.values() for sample in samples]

    def find_median(self, number: int) -> float:
        """Returns the median of the seconds of a round."""
        return statistics.median(sample.seconds for sample in self.rounds[number])


Key = tuple[str, int, int, str, str]  # directory, ranks, mebibytes, pattern, operation
Results = dict[Key, dict[str, Row]]


def run_patterns(
    one: Implementation,
    program: Path,
    place: str,
    ranks: int,
    size: int,
    arguments: argparse.Namespace,
) -> Iterator[Sample]:
    """Runs all patterns once; reports and skips those that fail."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PARIO_", "LD_PRELOAD"))
    }
    environment["MPIIO_HINTS"] = one.hints
    if one.pario:
        environment |= {"LD_PRELOAD": str(arguments.library), "PARIO_MPIIO": "1"}
    for pattern in arguments.pattern:
        title = f"{one.name}: {pattern}, {ranks} ranks"
        with tempfile.TemporaryDirectory(dir=place) as directory:
            words = [directory, str(size), str(arguments.repetitions), pattern]
            try:
                done = subprocess.run(
                    [*one.command(program, ranks), *words],
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=arguments.seconds,
                )
            except subprocess.TimeoutExpired:
                print(f"{title}: not finished in {arguments.seconds} s", file=sys.stderr)
                continue
        if done.returncode != 0:
            print(f"{title}: {(done.stderr or done.stdout).strip()[:300]}", file=sys.stderr)
            continue
        yield from parse_samples(done.stdout)


def parse_samples(output: str) -> Iterator[Sample]:
    """Parses the lines that mpiio.c prints."""
    for words in (line.split() for line in output.splitlines()):
        if len(words) == 5:
            yield Sample(words[0], words[1], float(words[2]), float(words[3]), int(words[4]))


def measure(
    selected: list[Implementation],
    programs: dict[Path, Path],
    arguments: argparse.Namespace,
    recorder: Recorder,
) -> Results:
    """Measures all implementations in turn, at every place, number of ranks and size."""
    results: Results = defaultdict(dict)
    for place in arguments.directory:
        file_system = describe_file_system(Path(place))["type"]
        for ranks in arguments.ranks:
            for size in arguments.mebibytes:
                for number in range(1, arguments.rounds + 1):
                    for one in selected:
                        program = programs[one.folder]
                        for sample in run_patterns(one, program, place, ranks, size, arguments):
                            key = (place, ranks, size, sample.pattern, sample.operation)
                            row = results[key].setdefault(one.name, Row())
                            row.rounds[number].append(sample)
                            recorder.add(
                                file_system=file_system,
                                ranks=ranks,
                                mebibytes=size,
                                pattern=sample.pattern,
                                operation=sample.operation,
                                way=one.name,
                                round=number,
                                seconds=sample.seconds,
                                limit_seconds=sample.limit,
                                system_calls=sample.calls,
                            )
    return results


def compare_with_best(rows: dict[str, Row], name: str) -> float | None:
    """Returns the seconds of the fastest other, divided by the own ones; the median over rounds."""
    others = [row for other, row in rows.items() if not other.startswith("pario")]
    own = rows[name]
    ratios = [
        min(row.find_median(number) for row in others) / own.find_median(number)
        for number in own.rounds
        if others and all(number in row.rounds for row in others)
    ]
    return statistics.median(ratios) if ratios else None


def format_table(results: Results) -> Iterator[str]:
    """Returns the table in Markdown."""
    columns = (
        "directory|ranks|MiB|pattern||MPI-IO|MB/s|of the limit|times the best other|system calls"
    )
    yield f"| {columns.replace('|', ' | ')} |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for (place, ranks, size, pattern, operation), rows in results.items():
        for name, row in rows.items():
            seconds = statistics.median(sample.seconds for sample in row.samples)
            share = statistics.median(sample.limit / sample.seconds for sample in row.samples)
            best = compare_with_best(rows, name) if name.startswith("pario") else None
            whole = operation in ("both", "floor")
            cells = [
                place,
                ranks,
                size,
                pattern,
                operation,
                name,
                f"{size * 1.048576 / seconds:.0f}",
            ]
            cells += [f"{1 / share:.2f} x one" if whole else f"{share:.2f}"]
            calls = statistics.median(sample.calls for sample in row.samples)
            cells += [f"{best:.2f}" if best else "", f"{calls:.0f}"]
            yield f"| {' | '.join(map(str, cells))} |"


def format_slow_cells(results: Results) -> Iterator[str]:
    """Returns a line for each cell in which another implementation is faster than pario.

    Cells with more ranks than cores say so.
    """
    for (place, ranks, size, pattern, operation), rows in results.items():
        crowded = " (more ranks than cores)" if ranks > (os.cpu_count() or 1) else ""
        for name in rows:
            best = compare_with_best(rows, name) if name.startswith("pario") else None
            if best is not None and best < EQUAL:
                yield (
                    f"{name} is slower ({best:.2f}): {pattern}, {operation}, {ranks} ranks, "
                    f"{size} MiB, {place}{crowded}"
                )


def parse_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def add_implementation_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that bench/hosts.py has, too."""
    parser.add_argument("--mpich", type=Path, default=ROOT / ".venv/bin")
    parser.add_argument("--openmpi", type=Path, default=ROOT / ".venv-ompi/bin")
    parser.add_argument(
        "--only", action="append", default=[], help="implementations whose names contain this"
    )
    parser.add_argument("--seconds", type=float, default=300, help="limit of a run")


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--library",
        type=resolve_path,
        help="libpario.so; without it only the other implementations are measured",
    )
    add_implementation_arguments(parser)
    parser.add_argument(
        "--directory", action="append", help="on the file system to measure; may be repeated"
    )
    parser.add_argument("--ranks", type=parse_numbers, help="2,4,8")
    parser.add_argument("--mebibytes", type=parse_numbers, help="128,1024")
    parser.add_argument(
        "--pattern",
        action="append",
        help="as in mpiio.c; may be repeated; overlap:BYTES measures overlap",
    )
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--quick", action="store_true", help="a useful part in about three minutes")
    parser.add_argument("--map", action="store_true", help="ranks x bytes per call x pattern")
    arguments = parser.parse_args()
    quick = arguments.quick
    if arguments.map:
        arguments.ranks = arguments.ranks or [1, 2, 4, 8, 16]
        arguments.mebibytes = arguments.mebibytes or [256]
        arguments.pattern = arguments.pattern or MAP
        arguments.rounds = arguments.rounds or 7
        arguments.repetitions = arguments.repetitions or 1
    places = [tempfile.gettempdir(), "/dev/shm"]
    arguments.directory = arguments.directory or places[: 1 if quick else 2]
    arguments.ranks = arguments.ranks or ([2] if quick else [2, 4, 8])
    arguments.mebibytes = arguments.mebibytes or ([128] if quick else [128, 1024])
    arguments.pattern = arguments.pattern or (QUICK if quick else PATTERNS)
    arguments.rounds = arguments.rounds or (2 if quick else 5)
    arguments.repetitions = arguments.repetitions or 3
    return arguments


def select_implementations(arguments: argparse.Namespace) -> list[Implementation]:
    """Returns the implementations that are installed and asked for."""
    return [
        one
        for one in list_implementations(arguments.mpich, arguments.openmpi)
        if (arguments.library or not one.pario)
        and (one.folder / "mpiexec").exists()
        and (one.quick or not arguments.quick)
        and (not arguments.only or any(word in one.name for word in arguments.only))
    ]


def main() -> None:
    """Measures and prints."""
    arguments = parse_arguments()
    selected = select_implementations(arguments)
    folders = list(dict.fromkeys(one.folder for one in selected))
    launchers = [folder / "mpiexec" for folder in folders]
    with (
        Recorder(
            "calls" if arguments.map else "mpiio",
            arguments,
            directories=arguments.directory,
            launchers=launchers,
        ) as recorder,
        tempfile.TemporaryDirectory() as folder,
    ):
        programs = {}
        for commands in folders:
            programs[commands] = Path(folder) / f"mpiio-{len(programs)}"
            compiler = [commands / "mpicc", "-O2", "-o", programs[commands], SOURCE]
            subprocess.run(compiler, check=True)
        results = measure(selected, programs, arguments, recorder)
    print("\n".join(format_table(results)))
    if arguments.map:
        print("\n".join(format_slow_cells(results)))


if __name__ == "__main__":
    main()
