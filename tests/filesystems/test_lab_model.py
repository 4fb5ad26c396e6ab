"""The model's predictions for the lab agree with the busy times that the lab's targets counted."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.prove.lab.mount import Model, reset, status
from pario.prove.model.load import Flow, Phase, Situation, call, cost, simulate_turns
from pario.prove.model.machine import load
from pario.prove.model.whatif import phase_of, uses_of
from pario.see.tables import read
from tests.filesystems.conftest import Labs
from tests.filesystems.test_lab import by_another_process
from tests.support.commands import run_command

MIB = 1 << 20
LAB = load("lab")

pytestmark = pytest.mark.system


@pytest.fixture
def point(labs: Labs) -> Path:
    """A lab with the defaults of `pario lab up`."""
    return labs(**vars(Model(process=True)))


def make_striped(path: Path, count: int) -> Path:
    set_stripes(path, Wanted((Part(unit=MIB, count=count),)))
    return path


def busiest(point: Path) -> float:
    return max(int(target["busy_ns"]) for target in status(point)["targets"]) / 1e9


def write(path: Path, size: int, times: int) -> float:
    """Writes a file in equal pieces; returns the seconds."""
    begin = time.monotonic()
    with path.open("wb", buffering=0) as opened:
        for _ in range(times):
            opened.write(bytes(size))
    return time.monotonic() - begin


@pytest.mark.parametrize("stripes", [1, 2, 8])
@pytest.mark.parametrize(("size", "times"), [(MIB, 16), (4096, 64)])
def test_targets_are_occupied_as_predicted(
    point: Path, stripes: int, size: int, times: int
) -> None:
    path = make_striped(point / "file", stripes)
    phase = call(Situation(1, 1, "lustre", MIB, stripes), True, False, str(size), [0])
    used = min(stripes, max(size * times // MIB, 1))
    flow = Flow(targets=used, bytes=size * times, requests=phase.requests * times)
    predicted = cost(LAB, Phase(True, (flow,)))
    reset(point)
    took = write(path, size, times)
    assert busiest(point) == pytest.approx(predicted.busiest_target, rel=0.02)
    assert took >= 0.98 * predicted.seconds


#: Overwrites or reads a file in pieces of equal size.
PROGRAM = """
import sys
path, size, times, writes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "write"
with open(path, "r+b" if writes else "rb", buffering=0) as opened:
    for _ in range(times):
        opened.write(bytes(size)) if writes else opened.read(size)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("direction", ["write", "read"])
@pytest.mark.parametrize(
    ("size", "times", "stripes"), [(MIB, 16, 8), (4096, 64, 1), (65536, 64, 2)]
)
def test_whatif_says_what_a_recorded_run_has_cost_the_lab(
    point: Path, tmp_path: Path, direction: str, size: int, times: int, stripes: int
) -> None:
    path = make_striped(point / "file", stripes)
    if direction == "read":
        write(path, size, times)
    reset(point)
    log = tmp_path / "run.pario"
    program = [sys.executable, "-c", PROGRAM, path, str(size), str(times), direction]
    run_command(
        [sys.executable, "-m", "pario", "run", "--no-report", "-o", log, "--", *program],
        status=0,
    )
    told = status(point)["targets"]
    job = read([log])
    # without the files that Python itself reads
    job.records = job.records[[job.path(file) == str(path) for file in job.records["file"]]]
    (use,) = uses_of(job)
    phase = phase_of(LAB, use, stripes, "as it is")
    asked, moved = ("writes", "bytes_written") if direction == "write" else ("reads", "bytes_read")
    assert phase.requests == sum(int(target[asked]) for target in told) == times
    assert phase.bytes == sum(int(target[moved]) for target in told)
    # the reader takes over the object's lock from the writer
    taken = LAB.values["handover_seconds"] if direction == "read" else 0
    assert busiest(point) == pytest.approx(cost(LAB, phase).busiest_target + taken, rel=0.02)


#: Four ranks write parts of one file in one collective call, or one file each in pieces of 1 MiB.
RANKS = """
import os, sys
from mpi4py import MPI
path, size, shared = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "shared"
comm = MPI.COMM_WORLD
if shared:
    file = MPI.File.Open(comm, path + "0", MPI.MODE_WRONLY)
    file.Write_at_all(comm.rank * size, bytes(size))
    file.Close()
else:
    with open(path + str(comm.rank), "r+b", buffering=0) as file:
        for at in range(0, size, 1 << 20):
            file.write(bytes(min(size - at, 1 << 20)))
"""


@pytest.mark.exhaustive
@pytest.mark.mpi
@pytest.mark.parametrize("manner", ["shared", "own files"])
@pytest.mark.parametrize(("size", "stripes"), [(4 * MIB, 2), (4 * MIB, 4), (10**6, 8)])
def test_whatif_says_what_the_ranks_of_a_recorded_run_have_cost_the_lab(
    point: Path, tmp_path: Path, manner: str, size: int, stripes: int
) -> None:
    pytest.importorskip("mpi4py")
    name = f"{point}/file"
    for rank in range(1 if manner == "shared" else 4):
        make_striped(Path(f"{name}{rank}"), stripes)
    reset(point)
    log = tmp_path / "run.pario"
    ranks = [
        Path(sys.executable).with_name("mpiexec"),
        "-n",
        "4",
        sys.executable,
        "-c",
        RANKS,
        name,
        str(size),
        manner,
    ]
    run_command(
        [sys.executable, "-m", "pario", "run", "--mpiio", "--no-report", "-o", log, "--", *ranks],
        status=0,
    )
    told = status(point)["targets"]
    job = read([log])
    job.records = job.records[[job.path(file).startswith(name) for file in job.records["file"]]]
    (use,) = uses_of(job)
    phase = phase_of(LAB, use, stripes, "collective" if manner == "shared" else "as it is")
    assert use.manner == manner
    assert phase.requests == sum(int(target["writes"]) for target in told)
    assert phase.bytes == pytest.approx(
        sum(int(target["bytes_written"]) for target in told), abs=4
    )  # equal parts are rounded
    # For the lab each process is a client; for the model, as on Lustre, each node is one.
    locks = LAB.values["handover_seconds"]
    booked = [int(target["busy_ns"]) / 1e9 - locks * int(target["hand_overs"]) for target in told]
    assert sum(booked) == pytest.approx(sum(busy_seconds(phase)), rel=0.02)
    if manner == "shared":  # the lab chooses the targets of separate files
        assert max(booked) == pytest.approx(cost(LAB, phase).busiest_target, rel=0.02)


def busy_seconds(phase: Phase) -> list[float]:
    """Computes the busy seconds of all targets, by flow."""
    rate, each = LAB.values["write_rate"], LAB.values["request_seconds"]
    return [flow.bytes / rate + flow.requests * each for flow in phase.flows]


def test_locks_go_round_as_predicted(point: Path) -> None:
    path = make_striped(point / "file", 1)
    by_another_process(path, 0)
    reset(point)
    for _ in range(6):
        by_another_process(path, 0)
    seconds, handovers = simulate_turns(LAB, [[(0, 1)] for _ in range(7)])
    told = status(point)["targets"]
    assert sum(int(target["hand_overs"]) for target in told) == handovers == 6
    assert busiest(point) == pytest.approx(seconds - LAB.values["request_seconds"], rel=0.02)
