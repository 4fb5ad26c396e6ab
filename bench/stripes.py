"""Sweeps the stripe counts of files, and compares `pario stripe advise` with the best one (root).

    python bench/stripes.py --library LIBPARIO [--counts 1,2,4,8,16] [--hosts 4] [--each 2]
        [--mebibytes N] [--rounds N] [--way WAY]... [--ceph MEGABYTES [--targets N]]

Ranks on several hosts (tests/hosts) write and read the files. The file system is a lab
(docs/lab.md) with eight targets, five times as slow as by default (50 MiB/s, 1 ms a request, 2 ms
for a lock), so that two cores are fast enough for it; more stripes than targets are overstriped.
With --ceph it is a CephFS whose OSDs have slow links. Stripe counts take turns round by round; the
tables show medians of seconds.
"""

from __future__ import annotations

import argparse
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

from measuring import add_library_argument, make_parser  # noqa: E402
from places import hosts_of, mounted_lab, slow_ceph  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.hosts.conftest import AGENT  # noqa: E402

from pario.fix.stripe.layout import Part, Wanted, set_stripes  # noqa: E402
from pario.fix.stripe.policy import Choice, Expected, choose  # noqa: E402
from pario.prove.lab.mount import Model, status  # noqa: E402

WRITER = Path(__file__).with_name("stripes_writer.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
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
    """The results of one way with one stripe count; requests and hand-overs only of a lab."""

    count: int
    seconds: float
    hand_overs: int | None = None
    requests: int | None = None


def describe_file(way: str, arguments: argparse.Namespace) -> Expected:
    """Returns the facts that the advice needs, all known before the file exists."""
    ranks = arguments.hosts * arguments.each
    size, targets = arguments.mebibytes << 20, arguments.targets
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
        """Writes into a new folder whose files have this stripe count."""
        folder = Path(tempfile.mkdtemp(dir=self._point))
        folder.chmod(0o777)
        over = not self._arguments.ceph and count > self._arguments.targets
        set_stripes(folder, Wanted((Part(count=count, unit=unit, overstriped=over),)))
        if way == "read":
            self._time_writer(folder, "collective")
        before = self._read_counts()
        seconds = self._time_writer(folder, way)
        counts = [now - then for now, then in zip(self._read_counts(), before, strict=True)]
        shutil.rmtree(folder)
        return Point(count, seconds, *counts)

    def _time_writer(self, folder: Path, way: str) -> float:
        arguments, ranks = self._arguments, len(self._hosts) * self._arguments.each
        command = [str(MPIEXEC), "-launcher", "ssh", "-launcher-exec", AGENT]
        command += ["-hosts", ",".join(self._hosts), "-ppn", str(arguments.each), "-n", str(ranks)]
        command += [sys.executable, str(WRITER), str(folder), way, str(arguments.mebibytes)]
        env = os.environ | {"LD_PRELOAD": str(arguments.library), "PARIO_MPIIO": "1"}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=arguments.seconds
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("seconds ")]
        if done.returncode != 0 or not lines:
            raise SystemExit(f"{way}: {done.stderr.strip()[-2000:]}")
        return float(lines[0].split()[1])

    def _read_counts(self) -> list[int]:
        """Returns the hand-overs and requests of a lab; nothing of a CephFS."""
        if self._arguments.ceph:
            return []
        targets = status(self._point)["targets"]
        hand_overs = sum(target["hand_overs"] for target in targets)
        return [hand_overs, sum(target["reads"] + target["writes"] for target in targets)]


def sweep_counts(
    runner: Runner, way: str, choice: Choice, arguments: argparse.Namespace, recorder: Recorder
) -> list[Point]:
    """Measures the counts and the advised one in turn; returns medians by count."""
    points: dict[int, list[Point]] = {
        count: [] for count in sorted({*arguments.counts, choice.count})
    }
    try:
        for _ in range(arguments.rounds):
            for count, found in points.items():
                found.append(runner.run(way, count, choice.unit))
    finally:
        record_points(recorder, way, points, choice, arguments)
    return [find_middle(found) for found in points.values()]


def record_points(
    recorder: Recorder,
    way: str,
    points: dict[int, list[Point]],
    choice: Choice,
    arguments: argparse.Namespace,
) -> None:
    """Records the sweep, and again, by their own names, the advised count, 1 and the best."""
    measured = {count: found for count, found in points.items() if found}
    if choice.count not in measured:
        return
    best = min(measured, key=lambda count: find_middle(measured[count]).seconds)
    ways = {"advised": choice.count, "1 stripe": 1, "best of the sweep": best}
    rows = [("sweep", count) for count in measured]
    rows += [(name, count) for name, count in ways.items() if count in measured]
    for name, count in rows:
        for number, point in enumerate(measured[count], 1):
            recorder.add(
                place=f"ceph, {arguments.ceph} MB/s" if arguments.ceph else "lab",
                targets=arguments.targets,
                hosts=arguments.hosts,
                ranks=arguments.hosts * arguments.each,
                mebibytes=arguments.mebibytes,
                access=way,
                way=name,
                stripes=count,
                stripe_bytes=choice.unit,
                round=number,
                seconds=point.seconds,
                requests=point.requests,
                lock_hand_overs=point.hand_overs,
            )


def find_middle(points: list[Point]) -> Point:
    """Returns the point with the median of seconds."""
    return sorted(points, key=lambda point: point.seconds)[(len(points) - 1) // 2]


def format_table(way: str, points: list[Point], choice: Choice) -> Iterator[str]:
    """Returns a table in Markdown, with a bar for each stripe count."""
    best = min(points, key=lambda point: point.seconds)
    slowest = max(point.seconds for point in points)
    advised = next(point for point in points if point.count == choice.count)
    title, times = WAYS[way][0].upper() + WAYS[way][1:], advised.seconds / best.seconds
    yield f"\n{title}: advised {choice.count} (rule {choice.rule}), {times:.2f} times the best\n"
    yield "| stripes | seconds | requests | hand-overs | |"
    yield "|---|---|---|---|---|"
    for point in points:
        marks = (" advised" if point is advised else "") + (" best" if point is best else "")
        counts = ["" if one is None else f"{one:,}" for one in (point.requests, point.hand_overs)]
        bar = "#" * round(BAR * point.seconds / slowest)
        yield f"| {point.count} | {point.seconds:.2f} | {' | '.join(counts)} | {bar}{marks} |"


@contextmanager
def create_lab(arguments: argparse.Namespace) -> Iterator[tuple[Path, list[str]]]:
    """Creates a lab, and hosts that see it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mounted_lab(Path(folder, "lab"), LAB) as point,
        hosts_of(arguments.hosts) as hosts,
    ):
        yield point, hosts


@contextmanager
def create_ceph(arguments: argparse.Namespace) -> Iterator[tuple[Path, list[str]]]:
    """Creates a CephFS with slow links, and hosts that have mounted it."""
    with slow_ceph(arguments.targets, arguments.ceph, arguments.hosts) as (point, hosts):
        yield point, hosts


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    add_library_argument(parser)
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
        help="use a CephFS whose OSDs have links of so many megabytes per second",
    )
    parser.add_argument(
        "--targets",
        type=int,
        default=0,
        help=f"OSDs of the CephFS (default 4); a lab has {LAB.targets} targets",
    )
    parser.add_argument("--seconds", type=int, default=600, help="limit of a run")
    arguments = parser.parse_args()
    arguments.targets = arguments.targets or 4 if arguments.ceph else LAB.targets
    return arguments


def main() -> None:
    arguments = parse_arguments()
    create = create_ceph if arguments.ceph else create_lab
    with (
        Recorder("stripes", arguments, launchers=[MPIEXEC]) as recorder,
        create(arguments) as (point, hosts),
    ):
        for way in arguments.way or list(WAYS):
            choice = choose(describe_file(way, arguments))
            runner = Runner(point, hosts, arguments)
            points = sweep_counts(runner, way, choice, arguments, recorder)
            print("\n".join(format_table(way, points, choice)), flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
