"""Subfiles that ranks of a real MPI wrote are merged into one ordinary file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.filesystems.conftest import WRITE, Image
from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi, need
from tests.suites.runs import under_pario
from tests.support.commands import run_command, run_job

pytestmark = pytest.mark.mpi
RANKS, BYTES, PIECE = 4, 300_000, 5000
HINTS = ["pario_subfiles=3", "striping_factor=2", "striping_unit=65536"]


def expected_bytes() -> bytes:
    turns = [
        np.random.default_rng(rank).integers(0, 256, BYTES, np.uint8).reshape(-1, PIECE)
        for rank in range(RANKS)
    ]
    return np.stack(turns, axis=1).tobytes()


def run(mpi: Mpi, path: Path, *words: str) -> None:
    need(mpi, mpi.python)
    arguments = [str(mpi.python), WRITE, str(path), str(BYTES), str(PIECE), *words]
    done = run_job(mpi.start(*arguments, ranks=RANKS), path.parent, under_pario(need_library()))
    assert " 0 wrong" in done.stdout, done.stdout


def parts(path: Path) -> list[str]:
    folder = path.with_name(path.name + ".subfiles")
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


@pytest.mark.system
@pytest.mark.parametrize("mpi", [MPIS["mpich-5"], MPIS["openmpi-5"]], ids=lambda mpi: mpi.name)
def test_they_are_one_file_to_pario_and_after_join_to_everybody(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "data"
    run(mpi, path, *HINTS, "pario_join=disable")
    assert parts(path) == ["0", "1", "2", "map"]
    assert path.read_bytes() == b"", "who does not read through pario"
    environment = under_pario(need_library()) | {"PARIO_SUBFILES": "yes"}
    read = run_command(["cat", path], env=environment, text=False)
    assert read.stdout == expected_bytes()
    run(mpi, path, "read")
    run_command([sys.executable, "-m", "pario", "join", path], status=0)
    assert path.read_bytes() == expected_bytes()
    assert parts(path) == []
    run(mpi, path, "read")


@pytest.mark.system
@pytest.mark.parametrize("mpi", [MPIS["mpich-5"], MPIS["openmpi-5"]], ids=lambda mpi: mpi.name)
def test_a_lost_one_fails_the_opening_instead_of_reading_as_zeros(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "data"
    run(mpi, path, *HINTS, "pario_join=disable")
    lost = tmp_path / "data.subfiles" / "1"
    lost.unlink()
    arguments = [str(mpi.python), WRITE, str(path), str(BYTES), str(PIECE), "read"]
    environment = under_pario(need_library())
    done = run_job(mpi.start(*arguments, ranks=RANKS), tmp_path, environment)
    assert done.returncode != 0
    assert f"{lost}: EIO" in done.stdout, done.stdout
    assert "has 0 bytes or is missing; it had at least" in done.stdout
    read = run_command(["cat", path], env=environment | {"PARIO_SUBFILES": "yes"})
    assert (read.returncode, read.stdout) == (1, "")
    assert "Input/output error" in read.stderr


@pytest.mark.system
def test_they_are_joined_at_close_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "data"
    run(MPIS["mpich-5"], path, *HINTS, "pario_join=enable")
    assert (path.read_bytes(), parts(path)) == (expected_bytes(), [])


@pytest.mark.system
def test_they_stay_where_joining_would_move_bytes(image: Image) -> None:
    path = image("ext4", 64) / "data"
    run(MPIS["mpich-5"], path, *HINTS)
    assert parts(path) == ["0", "1", "2", "map"]
    assert not list(path.parent.glob(".data.*.pario-part"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("mpi", [MPIS["mpich-5"], MPIS["openmpi-5"]], ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_they_are_joined_at_close_where_files_can_share(kind: str, mpi: Mpi, image: Image) -> None:
    path = image(kind, 400) / "data"
    run(mpi, path, *HINTS)
    assert (path.read_bytes(), parts(path)) == (expected_bytes(), [])
    run(mpi, path, "read")
