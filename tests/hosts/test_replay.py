"""``pario replay`` with ranks on several hosts, which share the directories it needs or not."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pario.see.tables import read
from tests.hosts.conftest import launcher
from tests.mpi.conftest import MPIS, need
from tests.support.commands import run_command

pytestmark = [
    pytest.mark.system,
    pytest.mark.mpi,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None, reason="no mpi4py (pip install mpi4py)"
    ),
]
MPI = MPIS["mpich-5"]
PROGRAM = """\
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
file = MPI.File.Open(world, "shared.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
for step in range(5):
    file.Write_at_all((step * world.size + world.rank) * 1000, b"x" * 1000)
file.Close()
own = os.open(f"own{world.rank}.dat", os.O_CREAT | os.O_WRONLY)
os.write(own, b"y" * 100 * (world.rank + 1))
os.close(own)
"""


def ranks_on(hosts: list[str]) -> list[str]:
    need(MPI)
    return launcher(MPI, hosts, 2)


@pytest.fixture(scope="module")
def log(hosts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of two ranks on each of two hosts."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "program.py").write_text(PROGRAM)
    words = [
        sys.executable,
        "-m",
        "pario",
        "run",
        "--no-report",
        "-o",
        "log",
        "--",
        *ranks_on(hosts[:2]),
        sys.executable,
        "program.py",
    ]
    run_command(words, cwd=place, status=0)
    return place / "log"


def replay(
    log: Path, hosts: list[str], on_directory: Path, temporary: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    words = [
        sys.executable,
        "-m",
        "pario",
        "replay",
        str(log),
        "--on",
        str(on_directory),
        "--mpiexec",
        shlex.join(ranks_on(hosts)[:-2]),
    ]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    return run_command([*words, *options], env=environment)


def test_ranks_on_several_hosts_replay_their_calls(
    log: Path, hosts: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    done = replay(log, hosts[:2], place, tmp_path, "-o", str(tmp_path / "played"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MPI-IO calls were played as MPI-IO calls" in done.stdout
    of_ranks = {
        int(row["rank"]): job.hosts[row["host"]]
        for job in [read([tmp_path / "played"])]
        for row in job.processes
        if row["rank"] >= 0
    }
    assert of_ranks == {0: hosts[0], 1: hosts[0], 2: hosts[1], 3: hosts[1]}
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    "which",
    ["--on", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("TMPDIR", "-o"))],
)
def test_a_directory_that_a_host_does_not_share_is_named(
    which: str, log: Path, hosts: list[str], private: Path, tmp_path: Path
) -> None:
    log_place = (private if which == "-o" else tmp_path) / "played"
    done = replay(
        log,
        hosts[:2],
        private if which == "--on" else tmp_path,
        private if which == "TMPDIR" else tmp_path,
        "-o",
        str(log_place),
    )
    assert done.returncode == 2, done.stdout
    assert f"is missing on {hosts[1]}: ranks on several hosts need" in done.stderr
    assert f"{private}/" in done.stderr and "Traceback" not in done.stderr
    assert not [path for path in private.iterdir() if path.name != "played"]


def test_a_replay_on_fewer_hosts_says_so(log: Path, hosts: list[str], tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pario", "replay", str(log), "--on", str(tmp_path)]
    done = run_command(words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on 1 host, where the run had " in done.stdout
