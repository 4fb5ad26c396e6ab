"""How fast and in how much memory the readers work: events of own logs, DXT segments of Darshan logs.

    PYTHONPATH=python python bench/readers.py [--events 10000000] [--segments 2000000] [--processes 16]

Writes synthetic logs (regular offsets, jittered times), reads each in a fresh process, and prints seconds, processor seconds (of all
threads and processes) and peak memory. The first reading includes importing what the reader needs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.python import darshanlog, plog

_CHUNK = 65_536
_READ = """
import resource, sys, time
start = time.perf_counter()
from pathlib import Path
from pario.tables import read
imported = time.perf_counter()
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = time.process_time()
job = read([Path(sys.argv[1])])
seconds = time.perf_counter() - imported
usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
own, child = (usage.ru_maxrss / 1024 for usage in usages)
processor = sum(usage.ru_utime + usage.ru_stime for usage in usages) - before
print(f"{len(job.events):,} events: {seconds:.2f} s, processor {processor:.2f} s (imports {imported - start:.2f} s), peak {own:.0f} MiB"
      f" ({(own - base / 1024) * 2**20 / max(len(job.events), 1):.0f} B per event), reading process {child:.0f} MiB")
"""


def main() -> None:
    """Writes the logs and measures."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        _measure(
            "own log", _own(directory, arguments.events, arguments.processes), arguments.repeat
        )
        _measure(
            "Darshan DXT",
            _darshan(directory, arguments.segments, arguments.processes),
            arguments.repeat,
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--segments", type=int, default=2_000_000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


def _measure(what: str, path: Path, times: int) -> None:
    for _ in range(times):
        print(
            f"{what}, {subprocess.check_output([sys.executable, '-c', _READ, path], text=True)}",
            end="",
            flush=True,
        )


def _own(directory: Path, events: int, processes: int) -> Path:
    out = directory / "run.pario"
    out.mkdir()
    random = np.random.default_rng(1)
    for rank in range(processes):
        log = plog.ProcessLog(
            rank=rank,
            size=processes,
            pid=1000 + rank,
            end=100.0,
            records=[{"path": f"/data/{rank}"}],
        )
        for first in range(0, events // processes, _CHUNK):
            chunk = plog.events(
                min(_CHUNK, events // processes - first), first=first * 1e-5, step=1e-5
            )
            chunk["start"] += random.integers(0, 1000, len(chunk), dtype="u8")
            chunk["duration"] = random.integers(1000, 20000, len(chunk), dtype="u8")
            log.chunks.append(chunk)
        log.write(out)
    return out


def _darshan(directory: Path, segments: int, processes: int) -> Path:
    each = darshanlog.segments(segments // processes // 2, step=1e-5)
    records = b"".join(darshanlog.dxt_record(1, rank, each, each) for rank in range(processes))
    return darshanlog.DarshanLog(
        nprocs=processes, seconds=100, modules={"DXT_POSIX": records}
    ).write(directory / "dxt.darshan")


if __name__ == "__main__":
    main()
