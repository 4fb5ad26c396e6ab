"""A job over several hosts, each with its own name, network, boot and monotonic clock.

All hosts write into one log directory; the reader distinguishes them and relates their clocks.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from pario.see.tables import read
from pario.see.tables.model import Job
from pario.see.tables.own.blocks import read_log
from tests.hosts.conftest import HERE
from tests.library import need_library
from tests.support.commands import run_command

BIN = Path(sys.executable).parent
S3D = HERE.parents[1] / "examples" / "s3d"
TOOLS = ["make", BIN / "mpiexec", BIN / "mpicc"]

pytestmark = [
    pytest.mark.system,
    pytest.mark.mpi,
    pytest.mark.skipif(
        any(not shutil.which(tool) for tool in TOOLS),
        reason=f"needs all of {', '.join(map(str, TOOLS))}",
    ),
]


@pytest.fixture(scope="module")
def library() -> Path:
    return need_library()


@pytest.fixture(scope="module")
def log(hosts: list[str], library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs the S3D-like kernel with one rank on each of the last two hosts, from this machine."""
    work = tmp_path_factory.mktemp("hosts")
    (work / "log").mkdir()
    run_command(["make", "-s", "-C", S3D, f"BUILD={work}", f"MPICC={BIN / 'mpicc'}"], status=0)
    launcher = [
        BIN / "mpiexec",
        "-hosts",
        ",".join(hosts[1:]),
        "-launcher",
        "rsh",
        "-launcher-exec",
        HERE / "agent.sh",
        "-n",
        "2",
        "-ppn",
        "1",
    ]
    traced = {**os.environ, "LD_PRELOAD": str(library), "PARIO_TRACE_DIR": str(work / "log")}
    run_command(
        [*launcher, "./s3d", "--size", "32x32x32", "--steps", "2"],
        cwd=work,
        env=traced,
        status=0,
    )
    return work / "log"


@pytest.fixture(scope="module")
def job(log: Path) -> Job:
    return read([log])


def measure_barriers(log: Path, hosts: list[str]) -> float:
    """Returns the most seconds between the ends of a barrier on two ranks, by the one clock from
    which the clocks of the hosts differ by multiples of 1000 seconds."""
    moments = []
    for process in map(read_log, log.glob(f"{hosts[0][:-1]}*")):
        shift = 1000 * hosts.index(process.path.name.rsplit(".", 3)[0])
        if notes := list(process.notes_of("clock")):
            moments.append([note["mono_ns"] / 1e9 - shift for note in notes])
    assert np.shape(moments) == (2, 2)
    return float(np.ptp(moments, axis=0).max())


def ranks(job: Job) -> np.ndarray:
    rows = job.processes[job.processes["rank"] >= 0]
    return rows[np.argsort(rows["rank"])]


def test_clocks_of_the_hosts_differ(hosts: list[str]) -> None:
    clock = "import time; print(time.monotonic())"
    command = f"{sys.executable} -c '{clock}'"
    told = [run_command([HERE / "agent.sh", host, command], status=0) for host in hosts]
    seconds = [float(done.stdout) for done in told]
    assert seconds[1] - seconds[0] > 900
    assert seconds[2] - seconds[1] > 900


def test_ranks_are_on_their_hosts(job: Job, hosts: list[str]) -> None:
    assert [job.hosts[host] for host in ranks(job)["host"]] == hosts[1:]


def test_clocks_are_related(job: Job, log: Path, hosts: list[str]) -> None:
    """No rank leaves an MPI_Allreduce before all have entered it.

    The clocks are 1000 seconds apart. They are related by barriers, which ranks of a busy machine
    leave at different times.
    """
    apart = 0.01 + measure_barriers(log, hosts)
    name = job.function_names.index("MPI_Allreduce")
    calls = job.events[job.events["function"] == name]
    processes = np.unique(calls["process"])
    assert len(processes) == 2
    first, second = (calls[calls["process"] == process] for process in processes)
    assert len(first) == len(second) > 0
    assert (first["start"] < second["end"] + apart).all()
    assert (second["start"] < first["end"] + apart).all()


def test_files_are_shared_only_on_network_file_systems(job: Job) -> None:
    """One path on local file systems (such as ext4) of two hosts is two files."""
    written = [
        row
        for row in job.records
        if row["layer"] == 2 and job.path(row["file"]).endswith("s3d-0002.ckpt")
    ]
    files = {int(row["file"]) for row in written}
    network = {bool(job.filesystems["network"][job.files["filesystem"][file]]) for file in files}
    assert len(written) == 2
    assert len(files) == (1 if network == {True} else 2)
