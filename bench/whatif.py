"""Compares predictions of `pario whatif` for a lab with runs there.

    python bench/whatif.py [--rounds 3]

The table shows seconds of I/O, requests, and the busy seconds of the busiest target. The lab is
created as `pario lab up` creates it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measuring import make_parser
from places import mounted_lab
from recording import Recorder

from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.prove.lab.mount import Model, reset, status
from pario.prove.model.load import cost
from pario.prove.model.machine import load
from pario.prove.model.whatif import phase_of, uses_of
from pario.see.tables import read

LAB = load("lab")
#: Bytes of a write, writes, stripes.
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
COLUMNS = """\
writes of|stripes|requests, predicted|counted|busiest, predicted|booked\
|I/O, predicted|taken|ratio"""


@dataclass(frozen=True)
class Run:
    """One run and its prediction."""

    predicted: float
    seconds: float
    predicted_requests: int
    requests: int
    predicted_busy: float
    busy: float


def run_program(point: Path, log: Path, size: int, times: int, stripes: int) -> Run:
    """Runs the program once on the lab, traced, and predicts its seconds."""
    path = point / f"{log.stem}"
    set_stripes(path, Wanted((Part(unit=1 << 20, count=stripes),)))
    reset(point)
    traced = [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--"]
    program = [sys.executable, "-c", PROGRAM, path, str(size), str(times)]
    subprocess.run([*traced, *program], check=True, stderr=subprocess.DEVNULL)
    targets = status(point)["targets"]
    job = read([log])
    job.records = job.records[[job.path(file) == str(path) for file in job.records["file"]]]
    (use,) = uses_of(job)
    phase = phase_of(LAB, use, stripes, "as it is")
    expected = cost(LAB, phase)
    return Run(
        expected.seconds,
        float(job.records["write_time"].sum() + job.records["close_time"].sum()),
        phase.requests,
        sum(target["writes"] for target in targets),
        expected.busiest_target,
        max(target["busy_ns"] for target in targets) / 1e9,
    )


def measure_cases(point: Path, logs: Path, rounds: int, recorder: Recorder) -> Iterator[str]:
    """Runs all cases; returns the rows of the table."""
    for size, times, stripes in CASES:
        runs = []
        for number in range(1, rounds + 1):
            log = logs / f"{size}-{stripes}-{number}.pario"
            run = run_program(point, log, size, times, stripes)
            runs.append(run)
            recorder.add(
                way="write",
                write_bytes=size,
                writes=times,
                stripes=stripes,
                round=number,
                seconds=run.seconds,
                predicted_seconds=run.predicted,
                requests=run.requests,
                predicted_requests=run.predicted_requests,
                busiest_target_seconds=run.busy,
                predicted_busiest_target_seconds=run.predicted_busy,
            )
        first, seconds = runs[0], statistics.median(run.seconds for run in runs)
        cells = [f"{times} x {size}", str(stripes)]
        cells += [str(first.predicted_requests), str(first.requests)]
        figures = [first.predicted_busy, first.busy, first.predicted, seconds]
        cells += [*(f"{one:.3f}" for one in figures), f"{seconds / first.predicted:.2f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with (
        Recorder("whatif", arguments) as recorder,
        tempfile.TemporaryDirectory() as scratch,
        mounted_lab(Path(scratch) / "lab", Model(process=True)) as point,
    ):
        print(f"| {COLUMNS.replace('|', ' | ')} |\n|{'---|' * 9}")
        for row in measure_cases(point, Path(scratch), arguments.rounds, recorder):
            print(row, flush=True)


if __name__ == "__main__":
    main()
