"""``pario run`` over several hosts, around the MPI launcher and under it; hosts without a shared
directory keep their logs, which can be merged.

The agent gives the remote side a clean environment, like sshd: it receives only the variables that
the MPI launcher exports.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pario.see.tables import read
from pario.see.tables.model import Job
from tests.hosts import conftest
from tests.hosts.conftest import AGENT, on
from tests.launch.conftest import PARIO, wait_for_end_of_processes
from tests.mpi.conftest import MPIS, Mpi
from tests.support.commands import run_command

pytestmark = [pytest.mark.system, pytest.mark.mpi]
RANKS = 4
Build = Callable[[Mpi], str]


def launcher(mpi: Mpi, hosts: list[str]) -> list[str]:
    """Returns an MPI's command line for two ranks on each of two hosts."""
    if mpi.name == "mpich-5":
        return conftest.launcher(mpi, hosts, RANKS // 2)
    agent = "plm_rsh_agent" if mpi.name == "openmpi-4" else "plm_ssh_agent"
    slots = ",".join(f"{host}:2" for host in hosts)
    # PYTHONPATH is for checkouts that are not installed; -x must not hide the variables that pario
    # passes on.
    return [
        mpi.launcher,
        *mpi.options,
        "--mca",
        agent,
        AGENT,
        "--host",
        slots,
        "-x",
        "PYTHONPATH",
        "--map-by",
        "slot",
        "-n",
        str(RANKS),
    ]


def start(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": "", **os.environ}
    return run_command(words, cwd=place, env=environment)


def where_ranks_are(job: Job) -> dict[int, str]:
    return {int(row["rank"]): job.hosts[row["host"]] for row in job.processes if row["rank"] >= 0}


# Debian's MPICH 4 hangs between name spaces, with and without pario.
each_mpi = pytest.mark.parametrize(
    "mpi", [MPIS[name] for name in ("mpich-5", "openmpi-4", "openmpi-5")], ids=lambda mpi: mpi.name
)


@each_mpi
@pytest.mark.parametrize("form", ["around the launcher", "under the launcher"])
def test_ranks_of_all_hosts_log_into_the_shared_directory(
    mpi: Mpi, form: str, hosts: list[str], ranks_program: Build, tmp_path: Path
) -> None:
    pario, job, program = [*PARIO, "run", "--"], launcher(mpi, hosts[:2]), ranks_program(mpi)
    done = start(
        [*pario, *job, program] if form == "around the launcher" else [*job, *pario, program],
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, f"{RANKS} ranks wrote\n"), done.stderr
    assert done.stderr.count("HTML report:") == 1
    log = read([tmp_path / "run.pario"])
    assert where_ranks_are(log) == {0: hosts[0], 1: hosts[0], 2: hosts[1], 3: hosts[1]}
    assert log.exit_status == 0
    wait_for_end_of_processes(tmp_path / "run.pario")


@pytest.fixture
def private(hosts: list[str], tmp_path: Path) -> Iterator[Path]:
    """Yields a path that is a separate directory on each host."""
    place = tmp_path / "private"
    place.mkdir()
    for host in hosts:
        on(host, f"mount -t tmpfs private {place}")
    yield place
    for host in hosts:
        on(host, f"umount -l {place}")


def gather(hosts: list[str], place: Path, into: Path) -> list[Path]:
    """Copies the logs of the hosts to one directory, like a user."""
    for host in hosts:
        on(host, f"mkdir -p {into}/{host} && cp -r {place} {into}/{host}/")
    return [into / host / place.name for host in hosts]


@each_mpi
def test_logs_stay_on_hosts_that_share_no_directory_and_merge(
    mpi: Mpi, hosts: list[str], ranks_program: Build, private: Path, tmp_path: Path
) -> None:
    """The tracer creates the directory, and missing parents, on each host."""
    logs = private / "deep" / "run.pario"
    job = [
        *PARIO,
        "run",
        "--no-report",
        "-o",
        str(logs),
        "--",
        *launcher(mpi, hosts[:2]),
        ranks_program(mpi),
    ]
    done = start(job, tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{RANKS} ranks wrote\n"), done.stderr
    parts = gather(hosts[:2], logs, tmp_path / "gathered")
    assert [sorted(where_ranks_are(read([part]))) for part in parts] == [[0, 1], [2, 3]]
    assert any(
        "no logs of 2 of 4 ranks are here (2-3)" in message for message in read(parts[:1]).messages
    )
    whole = read([logs, *parts])
    assert where_ranks_are(whole) == {0: hosts[0], 1: hosts[0], 2: hosts[1], 3: hosts[1]}
    assert whole.exit_status == 0
    report = run_command([*PARIO, "report", *map(str, parts)], status=0)
    assert f"{RANKS} ranks · 2 hosts" in report.stdout


@pytest.mark.exhaustive
def test_launchers_on_hosts_that_share_no_directory_make_their_own(
    hosts: list[str], ranks_program: Build, private: Path, tmp_path: Path
) -> None:
    mpi = MPIS["mpich-5"]
    logs = private / "run.pario"
    done = start(
        [*launcher(mpi, hosts[:2]), *PARIO, "run", "-o", str(logs), "--", ranks_program(mpi)],
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, f"{RANKS} ranks wrote\n"), done.stderr
    assert f"on {hosts[1]}" in done.stderr
    parts = gather(hosts[:2], logs, tmp_path / "gathered")
    assert [sorted(where_ranks_are(read([part]))) for part in parts] == [[0, 1], [2, 3]]
    assert where_ranks_are(read(parts[::-1])) == {
        0: hosts[0],
        1: hosts[0],
        2: hosts[1],
        3: hosts[1],
    }
    assert read(parts[::-1]).exit_status == 0
