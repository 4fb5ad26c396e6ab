"""``pario records`` by ranks of several hosts, started by mpiexec and by srun: the bytes of one
process; hosts that share no directory are named."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.hosts.conftest import launcher
from tests.mpi.conftest import MPIS
from tests.support.commands import run_command

pytestmark = [pytest.mark.system, pytest.mark.mpi]
PARIO = [sys.executable, "-m", "pario", "records"]
MPICH = MPIS["mpich-5"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    chance = random.Random(1)
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(50):
        (tree / f"f{number}").write_bytes(chance.randbytes(chance.randrange(50_000)))
    return tree


def check_same_bytes(start: list[str], tree: Path, environment: dict[str, str]) -> None:
    words = ["pack", "--shuffle", "--seed", "2", tree, "-o"]
    run_command([*PARIO, *words, tree.with_name("alone")], status=0)
    done = run_command([*start, *PARIO, *words, tree.with_name("together")], env=environment)
    assert done.returncode == 0 and done.stderr.count("50 files") == 1, done.stderr
    assert tree.with_name("together").read_bytes() == tree.with_name("alone").read_bytes()


def test_ranks_of_two_hosts_pack_the_bytes_of_one(hosts: list[str], tree: Path) -> None:
    check_same_bytes(launcher(MPICH, hosts[:2], 2), tree, {**os.environ})


def test_tasks_of_srun_pack_the_bytes_of_one(slurm: dict[str, str], tree: Path) -> None:
    start = ["srun", "--mpi=pmi2", "--kill-on-bad-exit=0", "-N", "2", "-n", "4"]
    check_same_bytes(start, tree, slurm)


def test_hosts_that_share_no_directory_are_named(
    hosts: list[str], tree: Path, private: Path
) -> None:
    start = [*launcher(MPICH, hosts[:2], 1), *PARIO]
    done = run_command([*start, "pack", tree, "-o", private / "out"], env={**os.environ})
    assert done.returncode != 0
    expected = f"{private}: rank 1 does not see the directory of rank 0; several ranks need a file"
    assert done.stderr.count("pario records: ") == 1 and expected in done.stderr, done.stderr
    (private / "a.txt").write_bytes(b"line\n")
    words = ["convert", private / "a.txt", "--to", "tar", "-o", tree.with_name("out")]
    done = run_command([*start, *words], env={**os.environ})
    assert done.returncode != 0
    assert done.stderr.count("pario records: ") == 1 and "a.txt" in done.stderr, done.stderr
    assert sorted(path.name for path in tree.parent.iterdir()) == ["private", "tree"]
    assert [path.name for path in private.iterdir()] == ["a.txt"]
