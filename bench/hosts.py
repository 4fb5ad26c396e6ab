"""Measures collective MPI-IO between pretended hosts with slow links (root).

    python bench/hosts.py --library LIBPARIO [--hosts N] [--each RANKS] [--mebibytes N]
        [--megabytes N] [--pattern interleaved:BYTES]...

The hosts are those of tests/hosts, the program is mpiio.c. In a pattern in which every host has an
equal part of every window, a share of (hosts - 1) / hosts of the bytes must go to another host
once, and every link carries an equal part of them each way: the limit of the column "of the link".
The last column is the bytes sent over all links in all calls of a run, divided by those that must
be sent.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import mpiio  # noqa: E402
from measuring import add_library_argument, make_parser  # noqa: E402
from places import HOSTS  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.hosts.conftest import AGENT  # noqa: E402

EXPORTED = ("LD_PRELOAD", "PARIO_MPIIO", "MPIIO_HINTS")


@dataclass(frozen=True)
class OnHosts(mpiio.Implementation):
    """An implementation whose ranks are on hosts."""

    hosts: tuple[str, ...] = ()

    def command(self, program: Path, ranks: int) -> list[str]:
        each, launcher = str(ranks // len(self.hosts)), str(self.folder / "mpiexec")
        if not self.options:
            where = ["-launcher", "ssh", "-launcher-exec", AGENT]
            where += ["-hosts", ",".join(self.hosts), "-ppn", each]
        else:
            slots = ",".join(f"{host}:{each}" for host in self.hosts)
            where = [*self.options, "--mca", "plm_ssh_agent", AGENT, "--host", slots]
            where += ["--map-by", "slot", *(word for name in EXPORTED for word in ("-x", name))]
        return [launcher, *where, "-n", str(ranks), str(program)]


@contextmanager
def create_slow_hosts(count: int, megabytes: int) -> Iterator[tuple[str, ...]]:
    """Creates hosts whose links carry so many megabytes per second."""
    command = [HOSTS, "up", "bench", str(count)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    try:
        subprocess.run([HOSTS, "rate", "bench", f"{8 * megabytes}mbit"], check=True)
        yield tuple(made.stdout.split())
    finally:
        subprocess.run([HOSTS, "down", "bench"], check=True)


def count_sent_bytes(hosts: tuple[str, ...]) -> int:
    """Returns the bytes that have left the hosts."""
    counters = (Path(f"/sys/class/net/v{host}/statistics/rx_bytes") for host in hosts)
    return sum(int(counter.read_text()) for counter in counters)


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    add_library_argument(parser)
    mpiio.add_implementation_arguments(parser)
    parser.add_argument(
        "--directory",
        default=tempfile.gettempdir(),
        help="one that hosts share: not /dev/shm",
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--each", type=int, default=2, help="ranks of a host")
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument(
        "--megabytes", type=int, default=100, help="per second, of a link, each way"
    )
    parser.add_argument("--pattern", action="append", help="interleaved:BYTES; may be repeated")
    parser.add_argument("--hints", default="", help="key=value;... for all")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    arguments.pattern = arguments.pattern or ["interleaved:1024"]
    return arguments


def measure_pattern(
    one: OnHosts, program: Path, pattern: str, arguments: argparse.Namespace, recorder: Recorder
) -> None:
    """Measures a pattern and prints its rows."""
    count, total = arguments.hosts, arguments.mebibytes << 20
    crossing = total * (count - 1) // count
    limit = crossing / count / (arguments.megabytes * 1e6)
    single = argparse.Namespace(**{**vars(arguments), "pattern": [pattern]})
    ranks, size = count * arguments.each, arguments.mebibytes
    before = count_sent_bytes(one.hosts)
    samples = list(mpiio.run_patterns(one, program, arguments.directory, ranks, size, single))
    calls = 3 + 2 * arguments.repetitions  # two reads in the first round
    times = (count_sent_bytes(one.hosts) - before) / (calls * crossing)
    operations: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        operations[sample.operation].append(sample.seconds)
        recorder.add(
            hosts=count,
            ranks=ranks,
            link_megabytes_per_second=arguments.megabytes,
            mebibytes=size,
            pattern=pattern,
            operation=sample.operation,
            way=one.name,
            round=len(operations[sample.operation]),
            seconds=sample.seconds,
            limit_seconds=limit,
            sent_ratio=times,
        )
    for operation, found in operations.items():
        seconds = statistics.median(found)
        cells = [pattern, operation, one.name, f"{seconds:.2f}", f"{limit / seconds:.2f}"]
        print(f"| {' | '.join(cells)} | {times:.3f} |", flush=True)


def main() -> None:
    arguments = parse_arguments()
    selected = [
        one
        for one in mpiio.list_implementations(arguments.mpich, arguments.openmpi)
        if not one.hints and "parameters" not in one.name and (one.folder / "mpiexec").exists()
    ]
    if arguments.only:
        selected = [one for one in selected if any(word in one.name for word in arguments.only)]
    launchers = dict.fromkeys(one.folder / "mpiexec" for one in selected)
    with (
        Recorder(
            "hosts", arguments, directories=[arguments.directory], launchers=launchers
        ) as recorder,
        tempfile.TemporaryDirectory() as folder,
        create_slow_hosts(arguments.hosts, arguments.megabytes) as hosts,
    ):
        print("| pattern | | MPI-IO | seconds | of the link | sent / required |")
        print("|---|---|---|---|---|---|")
        for some in selected:
            one = OnHosts(**{**vars(some), "hosts": hosts, "hints": arguments.hints})
            program = Path(folder) / f"mpiio-{one.folder.parent.name}"
            compiler = [one.folder / "mpicc", "-O2", "-o", program, mpiio.SOURCE]
            subprocess.run(compiler, check=True)
            for pattern in arguments.pattern:
                measure_pattern(one, program, pattern, arguments, recorder)


if __name__ == "__main__":
    main()
