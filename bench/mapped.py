"""Measures loading of mapped files, with and without reading ahead, beside dd.

    python bench/mapped.py --library LIBPARIO [--directory DIR] [--place lab|ceph]...
        [--stripes N]... [--rounds N] [--megabytes N]

numpy.load(mmap_mode="r"), safetensors.safe_open (tensors in random order) and torch.load(mmap=True)
touch each byte of a file that is in no cache. Ways take turns round by round. The table shows
medians: MB/s, the ratio to `dd bs=1M` of the same file and round, and on the lab the requests, the
bytes that the targets sent, and the mean number of targets that were busy at the same time. Places:
a lab whose requests take half a millisecond, with files on each number of --stripes, and a CephFS
on this machine. Needs numpy, safetensors and torch, and root to empty the caches.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mapped_reader import NAMES
from measuring import add_library_argument, drop_caches, find_median_ratio, make_parser
from places import local_ceph, mounted_lab
from recording import Recorder

READER = Path(__file__).with_name("mapped_reader.py")
DD, PLAIN, AHEAD = "dd", "as it is", "map_ahead"
HEADER = """\
| library | way | MB/s | times dd | requests | MB sent | targets busy |
|---|---|---|---|---|---|---|"""


@contextmanager
def create_lab(folder: Path, stripes: int) -> Iterator[Path]:
    """Creates a lab whose new files have ``stripes`` stripes of 1 MiB."""
    from pario.fix.stripe.layout import Part, Wanted, set_stripes
    from pario.prove.lab.mount import Model

    with mounted_lab(folder / "lab", Model(latency=500_000, cache=True)) as point:
        (point / "files").mkdir()
        set_stripes(point / "files", Wanted((Part(unit=1 << 20, count=stripes),)))
        yield point


def run_dd(path: Path) -> float:
    """Returns the seconds in which dd reads the file."""
    start = time.perf_counter()
    subprocess.run(
        ["dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none"],
        check=True,
    )
    return time.perf_counter() - start


def run_reader(library: str, directory: Path, preload: Path, streams: str) -> float:
    """Returns the seconds in which a library loads its file."""
    environment = os.environ | (
        {"LD_PRELOAD": str(preload), "PARIO_STREAMS": streams} if streams else {}
    )
    command = [sys.executable, str(READER), library, str(directory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def list_ways(library: str, directory: Path, preload: Path) -> dict[str, Callable[[], float]]:
    """Returns the ways to read the file of a library; each returns its seconds."""
    return {
        DD: lambda: run_dd(directory / NAMES[library]),
        PLAIN: lambda: run_reader(library, directory, preload, ""),
        AHEAD: lambda: run_reader(library, directory, preload, "*:map_ahead"),
    }


def measure_way(way: Callable[[], float], point: Path | None) -> dict[str, Any]:
    """Runs a way with empty caches; returns its results. ``point``: the lab; None: no lab."""
    from pario.prove.lab.mount import reset, status

    drop_caches()
    counts: dict[str, Any] = {"requests": None, "bytes_sent": None, "busy_seconds": None}
    if point is not None:
        reset(point)
    seconds = way()
    if point is not None:
        targets = status(point)["targets"]
        counts["requests"] = sum(int(target["reads"]) for target in targets)
        counts["bytes_sent"] = sum(int(target["bytes_read"]) for target in targets)
        counts["busy_seconds"] = sum(int(target["busy_ns"]) for target in targets) / 1e9
    return {"seconds": seconds, **counts}


def measure_place(
    case: dict[str, Any],
    directory: Path,
    point: Path | None,
    arguments: argparse.Namespace,
    recorder: Recorder,
) -> None:
    """Measures all ways in turn, and prints the table."""
    write = [sys.executable, str(READER), "write", str(directory), str(arguments.megabytes)]
    subprocess.run(write, check=True)
    names = ", ".join(f"{name} {value}" for name, value in case.items())
    print(f"\n{names}, load {os.getloadavg()[0]:.1f}\n\n{HEADER}")
    for library in NAMES:
        ways = list_ways(library, directory, arguments.library)
        results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number in range(1, arguments.rounds + 1):
            for title, way in ways.items():
                result = measure_way(way, point)
                results[title].append(result)
                recorder.add(**case, library=library, way=title, round=number, **result)
        for title, rounds in results.items():
            row = format_row(title, rounds, results[DD], case["megabytes"])
            print(f"| {library} {row}", flush=True)


def format_row(
    title: str, rounds: list[dict[str, Any]], dd: list[dict[str, Any]], megabytes: int
) -> str:
    seconds = [one["seconds"] for one in rounds]
    ratio = find_median_ratio([one["seconds"] for one in dd], seconds)
    rate = megabytes * 1.048576 / statistics.median(seconds)
    counts = ["", "", ""]
    if rounds[0]["requests"] is not None:
        middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
        busy = statistics.median(one["busy_seconds"] / one["seconds"] for one in rounds)
        counts = [f"{middle['requests']:.0f}", f"{middle['bytes_sent'] / 1e6:.0f}", f"{busy:.1f}"]
    return f"| {' | '.join([title, f'{rate:.0f}', f'{ratio:.2f}', *counts])} |"


def main() -> None:
    parser = make_parser(__doc__)
    add_library_argument(parser)
    parser.add_argument("--directory", default=".", help="for the files of lab or CephFS")
    parser.add_argument("--place", action="append", choices=["lab", "ceph"])
    parser.add_argument("--stripes", action="append", type=int, help="default: 1 and 8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=64, help="MiB of a file")
    arguments = parser.parse_args()
    with Recorder("mapped", arguments, directories=[arguments.directory]) as recorder:
        for place in arguments.place or ["lab"]:
            for stripes in (arguments.stripes or [1, 8]) if place == "lab" else [0]:
                case = {"place": place, "stripes": stripes, "megabytes": arguments.megabytes}
                with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
                    if place == "lab":
                        with create_lab(Path(folder), stripes) as point:
                            measure_place(case, point / "files", point, arguments, recorder)
                    else:
                        with local_ceph(Path(folder)) as mount:
                            measure_place(case, mount, None, arguments, recorder)


if __name__ == "__main__":
    main()
