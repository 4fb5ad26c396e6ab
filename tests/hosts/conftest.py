"""Pretend hosts for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.conftest import ranks_program
from tests.mpi.conftest import Mpi
from tests.support.commands import run_command

__all__ = ["ranks_program"]

HERE = Path(__file__).parent
AGENT = str(HERE / "agent_clean.sh")
HOSTS = 3
TOOLS = ["ip", "nsenter", "unshare"]
#: Open MPI 5's own transports crash now and then under srun, if a message of a rank that is ahead
#: comes before MPI_Init has made MPI_COMM_WORLD (open-mpi/ompi#12495). UCX keeps such messages.
BY_UCX = {
    "OMPI_MCA_pml": "ucx",
    "OMPI_MCA_pml_ucx_tls": "any",
    "OMPI_MCA_pml_ucx_devices": "any",
    "OMPI_MCA_osc": "^ucx",
    "UCX_TLS": "tcp,self,sm",
    "UCX_LOG_LEVEL": "fatal",  # connections that end during MPI_Finalize
}
SLURM_TOOLS = ["slurmctld", "slurmd", "srun", "munged"]


@pytest.fixture(scope="session")
def hosts() -> Iterator[list[str]]:
    """The names of three hosts (hosts.sh)."""
    yield from make_hosts("p", HOSTS)


@pytest.fixture(scope="session")
def four_hosts() -> Iterator[list[str]]:
    """The names of four more hosts."""
    yield from make_hosts("q", 4)


@pytest.fixture(scope="module")
def slurm(hosts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which srun finds the Slurm of two hosts."""
    if missing := [tool for tool in SLURM_TOOLS if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)")
    place = tmp_path_factory.mktemp("slurm")
    made = run_command([HERE / "slurm.sh", "up", place, *hosts[:2]], stdout=subprocess.DEVNULL)
    try:
        if made.returncode != 0:
            pytest.skip(made.stderr.strip())
        yield {**os.environ, "SLURM_CONF": str(place / "slurm.conf"), **BY_UCX}
    finally:
        run_command([HERE / "slurm.sh", "down", place], status=0)


def make_hosts(prefix: str, count: int) -> Iterator[list[str]]:
    """Creates pretend hosts, yields their names and removes them."""
    if os.geteuid() != 0:
        pytest.skip("needs root: pretend hosts are network and time name spaces")
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    tag = f"{prefix}{os.getpid() % 10000}"
    done = run_command([HERE / "hosts.sh", "up", tag, str(count)])
    try:
        if done.returncode != 0:
            pytest.skip(f"cannot create pretend hosts here: {done.stderr.strip()}")
        yield done.stdout.split()
    finally:
        run_command([HERE / "hosts.sh", "down", tag], status=0)


@pytest.fixture
def private(hosts: list[str], tmp_path: Path) -> Iterator[Path]:
    """Yields a directory that is another one on the second host."""
    place = tmp_path / "private"
    place.mkdir()
    on(hosts[1], f"mount -t tmpfs private {place}")
    yield place
    on(hosts[1], f"umount -l {place}")


def on(host: str, command: str) -> str:
    """Runs a shell command on a host; returns its output."""
    return run_command([HERE / "hosts.sh", "exec", host, command], status=0).stdout


def launcher(mpi: Mpi, hosts: list[str], each: int) -> list[str]:
    """Returns an MPI's command line for `each` ranks on each host."""
    ranks = str(each * len(hosts))
    if mpi.name.startswith("mpich"):
        return [
            mpi.launcher,
            "-launcher",
            "ssh",
            "-launcher-exec",
            AGENT,
            "-hosts",
            ",".join(hosts),
            "-ppn",
            str(each),
            "-n",
            ranks,
        ]
    slots = ",".join(f"{host}:{each}" for host in hosts)
    # Waiting ranks yield the processors.
    handed_on = [
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "-x",
        "LD_PRELOAD",
        "-x",
        "PARIO_MPIIO",
        "-x",
        "PARIO_HINTS",
    ]
    return [
        mpi.launcher,
        *mpi.options,
        "--mca",
        "plm_ssh_agent",
        AGENT,
        "--host",
        slots,
        *handed_on,
        "--map-by",
        "slot",
        "-n",
        ranks,
    ]
