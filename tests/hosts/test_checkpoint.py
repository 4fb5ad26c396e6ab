"""Checkpoints by ranks of several hosts, with the MPI's own MPI-IO and with pario's, in one file
and in one for each host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pario import checkpoint
from tests.hosts.conftest import launcher
from tests.library import need_library
from tests.mpi.conftest import MPIS, PROGRAMS, Mpi, mpi4py_of
from tests.suites.runs import under_pario
from tests.support.commands import run_command

pytestmark = [pytest.mark.system, pytest.mark.mpi]
# MPICH 4 hangs between the hosts.
CHOSEN = [MPIS["mpich-5"], pytest.param(MPIS["openmpi-5"], marks=pytest.mark.exhaustive)]
each_mpi = pytest.mark.parametrize("mpi", CHOSEN, ids=lambda mpi: mpi.name)


@each_mpi
@pytest.mark.parametrize(("mpiio", "files"), [("own", "1"), ("pario", "1"), ("own", "node")])
def test_saved_by_two_hosts_and_loaded_by_three(
    mpi: Mpi, mpiio: str, files: str, four_hosts: list[str], tmp_path: Path
) -> None:
    spoken = mpi4py_of(mpi, tmp_path)
    variables = {
        **os.environ,
        **spoken,
        **(under_pario(need_library()) if mpiio == "pario" else {}),
    }
    handed_on = [word for name in spoken for word in ("-x", name)]
    for (what, *options), hosts in ((("save", files), four_hosts[:2]), (("load",), four_hosts[1:])):
        start, *rest = launcher(mpi, hosts, 1)
        program = [
            sys.executable,
            "-m",
            "mpi4py",
            str(PROGRAMS / "checkpoints.py"),
            what,
            str(tmp_path / "ckpt"),
            "30",
            *options,
        ]
        done = run_command([start, *handed_on, *rest, *program], env=variables)
        assert done.stdout == "good\n", done.stderr
    state = checkpoint.load(None, tmp_path / "ckpt")
    assert state.about["hosts"] == sorted(four_hosts[:2])
    assert len(list(tmp_path.glob("ckpt/step-00000001/*"))) == (
        3 if files == "node" else 0
    )  # the master, and a part of each host
