"""Measures speed and memory of the readers: events of own logs, DXT segments of Darshan logs, these
beside pydarshan.

    PYTHONPATH=python python bench/readers.py [--events 10000000] [--segments 2000000]
        [--processes 16] [--repeat 3]

Writes synthetic logs (regular offsets, jittered times), reads each in a fresh process, and prints
seconds, processor seconds of all threads and processes, and the peak memory. The seconds include
the import of modules that a reader loads only when it needs them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import call_with_limit, make_parser
from recording import Recorder
from tests.python import darshanlog, plog

_CHUNK = 65_536
WRITE_SECONDS = 300.0
#: Reads the log in argv[1]; `count` returns the number of its events.
_PARIO = """
from pario.see.tables import read
def count(path):
    return len(read([Path(path)]).events)
"""
_PYDARSHAN = """
import darshan
def count(path):
    report = darshan.DarshanReport(path, read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX", dtype="pandas")
    kinds = ("write_segments", "read_segments")
    return sum(len(one[kind]) for one in report.records["DXT_POSIX"] for kind in kinds)
"""
_READ = """
import json, resource, sys, time
start = time.perf_counter()
from pathlib import Path
{reader}
def find_peak():  # ru_maxrss would count the memory of the parent process
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
imported = time.perf_counter()
base = find_peak()
before = time.process_time()
events = count(sys.argv[1])
seconds = time.perf_counter() - imported
usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({{
    "events": events,
    "seconds": seconds,
    "processor_seconds": sum(usage.ru_utime + usage.ru_stime for usage in usages) - before,
    "import_seconds": imported - start,
    "imported_bytes": base,
    "peak_bytes": find_peak(),
    "child_peak_bytes": usages[1].ru_maxrss * 1024,
}}))
"""


def main() -> None:
    """Writes the logs and measures."""
    parser = make_parser(__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--segments", type=int, default=2_000_000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with (
        Recorder("readers", arguments, directories=[tempfile.gettempdir()]) as recorder,
        tempfile.TemporaryDirectory() as folder,
    ):
        directory, processes = Path(folder), arguments.processes
        # in other processes, whose memory the readers would inherit in their figures
        own = call_with_limit(
            partial(write_own_log, directory, arguments.events, processes), WRITE_SECONDS
        )
        measure_readers("own log", own, {"pario": _PARIO}, arguments, recorder)
        darshan = call_with_limit(
            partial(write_darshan_log, directory, arguments.segments, processes), WRITE_SECONDS
        )
        both = {"pario": _PARIO, "pydarshan": _PYDARSHAN}
        measure_readers("Darshan DXT", darshan, both, arguments, recorder)


def measure_readers(
    log: str, path: Path, readers: dict[str, str], arguments: Namespace, recorder: Recorder
) -> None:
    """Reads a log in turn by several readers, in fresh processes, and prints the figures."""
    counts = set()
    for number, way in product(range(1, arguments.repeat + 1), readers):
        program = _READ.format(reader=readers[way])
        output = subprocess.check_output([sys.executable, "-c", program, path], text=True)
        found = json.loads(output)
        events = found.pop("events")
        counts.add(events)
        case = {"log": log, "processes": arguments.processes, "events": events, "way": way}
        recorder.add(**case, round=number, **found)
        each = (found["peak_bytes"] - found["imported_bytes"]) / max(events, 1)
        print(
            f"{log}, {way}, {events:,} events: {found['seconds']:.2f} s, "
            f"processor {found['processor_seconds']:.2f} s "
            f"(imports {found['import_seconds']:.2f} s), "
            f"peak {found['peak_bytes'] / 2**20:.0f} MiB ({each:.0f} B per event), "
            f"reading process {found['child_peak_bytes'] / 2**20:.0f} MiB",
            flush=True,
        )
    assert len(counts) == 1, f"the readers found different numbers of events: {counts}"


def write_own_log(directory: Path, events: int, processes: int) -> Path:
    out = directory / "run.pario"
    out.mkdir()
    random = np.random.default_rng(1)
    for rank in range(processes):
        records = [{"path": f"/data/{rank}"}]
        log = plog.ProcessLog(
            rank=rank, size=processes, pid=1000 + rank, end=100.0, records=records
        )
        for first in range(0, events // processes, _CHUNK):
            count = min(_CHUNK, events // processes - first)
            chunk = plog.events(count, first=first * 1e-5, step=1e-5)
            chunk["start"] += random.integers(0, 1000, len(chunk), dtype="u8")
            chunk["duration"] = random.integers(1000, 20000, len(chunk), dtype="u8")
            log.chunks.append(chunk)
        log.write(out)
    return out


def write_darshan_log(directory: Path, segments: int, processes: int) -> Path:
    each = darshanlog.segments(segments // processes // 2, step=1e-5)
    records = b"".join(darshanlog.dxt_record(1, rank, each, each) for rank in range(processes))
    log = darshanlog.DarshanLog(nprocs=processes, seconds=100, modules={"DXT_POSIX": records})
    return log.write(directory / "dxt.darshan")


if __name__ == "__main__":
    main()
