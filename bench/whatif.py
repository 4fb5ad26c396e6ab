"""What `pario whatif` predicts for a lab, and what the same run takes there: seconds of I/O, requests, and for how long the busiest
target was busy. Mounts a lab of its own as `pario lab up` makes it.

    python bench/whatif.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pario.lab.mount import Model, down, reset, status, up
from pario.model.load import cost
from pario.model.machine import load
from pario.model.whatif import phase_of, uses_of
from pario.stripe.layout import Part, Wanted, set_stripes
from pario.tables import read

LAB = load("lab")
REPEAT = 3
CASES = [
    (1 << 20, 64, 1),
    (1 << 20, 64, 8),
    (65536, 256, 1),
    (65536, 256, 8),
    (4096, 512, 1),
    (4096, 512, 4),
]
PROGRAM = """
import os, sys
path, size, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
file = os.open(path, os.O_WRONLY)
for number in range(times):
    os.write(file, bytes(size))
os.close(file)
"""


@dataclass(frozen=True)
class Case:
    """One run and its prediction."""

    predicted: float
    took: float
    requests: int
    asked: int
    busy_predicted: float
    busy: float


def once(point: Path, log: Path, size: int, times: int, stripes: int) -> Case:
    path = point / f"{log.stem}"
    set_stripes(path, Wanted((Part(unit=1 << 20, count=stripes),)))
    reset(point)
    program = [sys.executable, "-c", PROGRAM, path, str(size), str(times)]
    subprocess.run(
        [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--", *program],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    targets = status(point)["targets"]
    job = read([log])
    job.records = job.records[[job.path(file) == str(path) for file in job.records["file"]]]
    (use,) = uses_of(job)
    phase = phase_of(LAB, use, stripes, "as it is")
    expected = cost(LAB, phase)
    took = float(job.records["write_time"].sum() + job.records["close_time"].sum())
    busy = max(target["busy_ns"] for target in targets) / 1e9
    return Case(
        expected.seconds,
        took,
        phase.requests,
        sum(target["writes"] for target in targets),
        expected.busiest_target,
        busy,
    )


def rows(point: Path, logs: Path) -> Iterator[str]:
    yield "| writes of | stripes | requests, predicted | counted | busiest, predicted | booked | I/O, predicted | taken | ratio |"
    yield "|" + "---|" * 9
    for size, times, stripes in CASES:
        cases = [
            once(point, logs / f"{size}-{stripes}-{number}.pario", size, times, stripes)
            for number in range(REPEAT)
        ]
        case = cases[0]
        took = statistics.median(each.took for each in cases)
        counts = f"{case.requests} | {case.asked} | {case.busy_predicted:.3f} | {case.busy:.3f}"
        yield f"| {times} x {size} | {stripes} | {counts} | {case.predicted:.3f} | {took:.3f} | {took / case.predicted:.2f} |"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        point = Path(scratch) / "lab"
        up(point, Model(process=True))
        try:
            for row in rows(point, Path(scratch)):
                print(row, flush=True)
        finally:
            down(point, force=True)


if __name__ == "__main__":
    main()
