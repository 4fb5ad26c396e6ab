"""Sweeps the stripes of files that ranks on several clients write and read, and compares what `pario stripe advise` says with the best.

    python bench/stripes.py --library LIBPARIO [--counts 1,2,4,8,16] [--hosts 4] [--each 2] [--mebibytes N] [--rounds N] [--way WAY]...
                            [--ceph MEGABYTES [--targets N]]

Hosts are those of tests/hosts (root). They write to a lab (docs/lab.md) with eight targets, five times as slow as by default (50 MiB/s,
1 ms a request, 2 ms for a lock), so that two cores are fast enough for it; more stripes than targets are overstriped. Or, with --ceph, to a
CephFS whose OSDs have slow links. Stripe counts take turns round by round; quoted are medians of seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from places import hosts_of, slow_ceph  # noqa: E402
from tests.hosts.conftest import AGENT  # noqa: E402

from pario.lab.mount import Model, down, status, up  # noqa: E402
from pario.stripe.layout import Part, Wanted, set_stripes  # noqa: E402
from pario.stripe.policy import Choice, Expected, choose  # noqa: E402

WRITER = Path(__file__).with_name("stripes_writer.py")
WAYS = {
    "collective": "one file, collective writes of 1 MiB in turn",
    "independent": "one file, each rank its part",
    "read": "one file, collective reads of 1 MiB in turn",
    "files": "a file per rank",
    "small": "24 files of 64 KiB per rank",
}
LAB = Model(targets=8, rate=10 << 20, latency=5_000_000, lock_handover=10_000_000)
BAR = 40


@dataclass(frozen=True)
class Point:
    """What one way took with so many stripes."""

    count: int
    seconds: float
    hand_overs: int | None
    requests: int | None


def expected(way: str, arguments: argparse.Namespace) -> Expected:
    """What is known before the file is there."""
    ranks, size, targets = (
        arguments.hosts * arguments.each,
        arguments.mebibytes << 20,
        arguments.targets,
    )
    if way == "small":
        return Expected(64 << 10, 1, ranks, targets, ranks)
    if way == "files":
        return Expected(size // ranks, 1, ranks, targets, ranks)
    return Expected(size, ranks, ranks, targets)


class Runner:
    """Runs the writer on the hosts."""

    def __init__(self, point: Path, hosts: Sequence[str], arguments: argparse.Namespace) -> None:
        self._point, self._hosts, self._arguments = point, hosts, arguments

    def run(self, way: str, count: int, unit: int) -> Point:
        """In a new folder whose files have so many stripes."""
        folder = Path(tempfile.mkdtemp(dir=self._point))
        folder.chmod(0o777)
        over = not self._arguments.ceph and count > self._arguments.targets
        set_stripes(folder, Wanted((Part(count=count, unit=unit, overstriped=over),)))
        if way == "read":
            self._seconds(folder, "collective")
        before = self._counts()
        seconds = self._seconds(folder, way)
        counts = [now - then for now, then in zip(self._counts(), before, strict=True)]
        shutil.rmtree(folder)
        return Point(count, seconds, *(counts or [None, None]))

    def _seconds(self, folder: Path, way: str) -> float:
        arguments = self._arguments
        launcher = str(Path(sys.executable).with_name("mpiexec"))
        where = [
            "-launcher",
            "ssh",
            "-launcher-exec",
            AGENT,
            "-hosts",
            ",".join(self._hosts),
            "-ppn",
            str(arguments.each),
        ]
        command = [
            launcher,
            *where,
            "-n",
            str(len(self._hosts) * arguments.each),
            sys.executable,
            str(WRITER),
        ]
        env = os.environ | {"LD_PRELOAD": str(arguments.library), "PARIO_MPIIO": "1"}
        done = subprocess.run(
            [*command, str(folder), way, str(arguments.mebibytes)],
            env=env,
            capture_output=True,
            text=True,
            timeout=arguments.seconds,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("seconds ")]
        if done.returncode != 0 or not lines:
            raise SystemExit(f"{way}: {done.stderr.strip()[-2000:]}")
        return float(lines[0].split()[1])

    def _counts(self) -> list[int]:
        """Hand-overs and requests of a lab."""
        if self._arguments.ceph:
            return []
        targets = status(self._point)["targets"]
        return [
            sum(target["hand_overs"] for target in targets),
            sum(target["reads"] + target["writes"] for target in targets),
        ]


def sweep(runner: Runner, way: str, choice: Choice, arguments: argparse.Namespace) -> list[Point]:
    """The counts, and the advised one, in turn; medians by count."""
    counts = sorted({*arguments.counts, choice.count})
    rounds = [
        [runner.run(way, count, choice.unit) for count in counts] for _ in range(arguments.rounds)
    ]
    return [middle([one[index] for one in rounds]) for index in range(len(counts))]


def middle(points: list[Point]) -> Point:
    """The one with the median of seconds."""
    return sorted(points, key=lambda point: point.seconds)[(len(points) - 1) // 2]


def table(way: str, points: list[Point], choice: Choice) -> Iterator[str]:
    """In Markdown, with a bar each."""
    best, slowest = (
        min(points, key=lambda point: point.seconds),
        max(point.seconds for point in points),
    )
    advised = next(point for point in points if point.count == choice.count)
    title, times = WAYS[way][0].upper() + WAYS[way][1:], advised.seconds / best.seconds
    yield f"\n{title}: advised {choice.count} (rule {choice.rule}), {times:.2f} times the best\n"
    yield "| stripes | seconds | requests | hand-overs | |"
    yield "|---|---|---|---|---|"
    for point in points:
        mark = "".join(
            text
            for text, holds in ((" advised", point is advised), (" best", point is best))
            if holds
        )
        counts = [
            "" if number is None else f"{number:,}" for number in (point.requests, point.hand_overs)
        ]
        yield f"| {point.count} | {point.seconds:.2f} | {' | '.join(counts)} | {'#' * round(BAR * point.seconds / slowest)}{mark} |"


@contextmanager
def on_lab(arguments: argparse.Namespace) -> Iterator[tuple[Path, list[str]]]:
    """A lab, and hosts that see it."""
    with tempfile.TemporaryDirectory() as folder:
        point = up(Path(folder, "lab"), LAB).point
        try:
            with hosts_of(arguments.hosts) as hosts:
                yield point, hosts
        finally:
            down(point)


@contextmanager
def on_ceph(arguments: argparse.Namespace) -> Iterator[tuple[Path, list[str]]]:
    """A CephFS with slow links, and hosts that have mounted it."""
    with slow_ceph(arguments.targets, arguments.ceph, arguments.hosts) as (point, hosts):
        yield point, hosts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--library", type=lambda path: Path(path).resolve(), required=True, help="libpario.so"
    )
    parser.add_argument(
        "--counts",
        type=lambda text: [int(word) for word in text.split(",")],
        default=[1, 2, 4, 8, 16],
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--each", type=int, default=2, help="ranks on each host")
    parser.add_argument(
        "--mebibytes", type=int, default=128, help="written in all, a multiple of 4 per rank"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument(
        "--ceph",
        type=int,
        metavar="MEGABYTES",
        help="on a CephFS whose OSDs have links of so many megabytes per second",
    )
    parser.add_argument(
        "--targets",
        type=int,
        default=0,
        help=f"OSDs of the CephFS (default 4); a lab has {LAB.targets} targets",
    )
    parser.add_argument("--seconds", type=int, default=600, help="at most for a run")
    parser.add_argument("--json", type=Path, help="where the figures are kept, too")
    arguments = parser.parse_args()
    arguments.targets = arguments.targets or 4 if arguments.ceph else LAB.targets
    kept = {}
    with (on_ceph if arguments.ceph else on_lab)(arguments) as (point, hosts):
        for way in arguments.way or list(WAYS):
            choice = choose(expected(way, arguments))
            points = sweep(Runner(point, hosts, arguments), way, choice, arguments)
            print("\n".join(table(way, points, choice)), flush=True)
            kept[way] = {"advised": choice.count, "points": [vars(one) for one in points]}
    print(f"\nload average {os.getloadavg()[0]:.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(kept, indent=2))


if __name__ == "__main__":
    main()
