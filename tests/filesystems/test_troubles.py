"""Errors of real file systems reach every rank, and no rank hangs (`troubles.py`)."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from tests.filesystems.conftest import Image, Small, needs_root_and
from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi, need
from tests.suites.runs import under_pario
from tests.support.commands import run_command, run_job

TROUBLES = str(Path(__file__).with_name("troubles.py"))
RANKS = 4
MIB = 1 << 20

pytestmark = [pytest.mark.system, pytest.mark.mpi]


@pytest.fixture(params=["mpich-5", pytest.param("openmpi-5", marks=pytest.mark.exhaustive)])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return MPIS[request.param]


def outcomes(mpi: Mpi, logs: Path, *words: object) -> dict[str, str]:
    """Runs `troubles.py`; returns the result of each step, which is the same on all ranks."""
    need(mpi, mpi.python)
    command = mpi.start(str(mpi.python), TROUBLES, *map(str, words), ranks=RANKS)
    done = run_job(command, logs, under_pario(need_library()))
    said = defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith("rank "):
            _, step, outcome = line.split(": ", 2)
            said[step].append(outcome)
    assert all(len(each) == RANKS and len(set(each)) == 1 for each in said.values()), done.stdout
    return {step: each[0] for step, each in said.items()}


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_file_system(
    kind: str, mpi: Mpi, image: Image, small: Small, tmp_path: Path
) -> None:
    place = small(8) if kind == "tmpfs" else image("ext4", 16)
    said = outcomes(mpi, tmp_path, place / "file", "write", 8 * MIB)
    assert said["write"].startswith("no space: ") and "ENOSPC" in said["write"]
    assert (said["open"], said["close"]) == ("good", "good")
    os.truncate(place / "file", 0)
    assert outcomes(mpi, tmp_path, place / "file", "write", 1000)["write"] == "good"


def test_a_quota(mpi: Mpi, image: Image, tmp_path: Path) -> None:
    place = image("btrfs", 200)
    for command in (
        ["quota", "enable", place],
        ["subvolume", "create", place / "sub"],
        ["qgroup", "limit", "8M", place / "sub"],
    ):
        run_command(["btrfs", *command], status=0)
    said = outcomes(mpi, tmp_path, place / "sub" / "file", "write", 8 * MIB)
    assert said["write"].startswith("quota: ") and "EDQUOT" in said["write"]
    assert said["close"] == "good"


def test_a_file_system_that_is_only_read(mpi: Mpi, small: Small, tmp_path: Path) -> None:
    place = small(8)
    (place / "file").write_bytes(bytes(4000))
    run_command(["mount", "-o", "remount,ro", place], status=0)
    for name in ("file", "new"):
        said = outcomes(mpi, tmp_path, place / name, "open")
        assert (
            said.keys() == {"open"}
            and said["open"].startswith("read only: ")
            and "EROFS" in said["open"]
        )
    assert outcomes(mpi, tmp_path, place / "file", "read", 1000) == {
        "open": "good",
        "read": "good",
        "close": "good",
    }


def test_a_disk_that_loses_what_it_has(mpi: Mpi, image: Image, tmp_path: Path) -> None:
    place = image("ext4", 64)
    assert outcomes(mpi, tmp_path, place / "file", "sync", 4 * MIB)["sync"] == "good"
    with (place / "file").open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.truncate(tmp_path / "ext4.image", MIB)
    said = outcomes(mpi, tmp_path, place / "file", "read", 4 * MIB)
    assert said["read"].startswith("I/O: ") and "EIO" in said["read"]
    assert said["close"] == "good"


def test_a_disk_that_does_not_keep_what_it_is_given(
    mpi: Mpi, small: Small, image: Image, tmp_path: Path
) -> None:
    """The image file cannot grow, so that write-back fails."""
    needs_root_and(["mkfs.ext4"], "e2fsprogs")
    place = image("ext4", 64, where=small(4))
    said = outcomes(mpi, tmp_path, place / "file", "sync", 8 * MIB)
    assert said["open"] == "good"
    if said["write"] == "good":  # the kernel has not yet begun to write back
        assert said["sync"].startswith(("I/O: ", "no space: "))
    else:
        assert said["write"].startswith(("I/O: ", "no space: ", "read only: "))


def test_bytes_beyond_the_largest_file(mpi: Mpi, image: Image, tmp_path: Path) -> None:
    """ext4 with blocks of 4 KiB ends at 2^44."""
    place = image("ext4", 64, "-b", "4096")
    said = outcomes(mpi, tmp_path, place / "file", "write", MIB, 1 << 45)
    assert "EFBIG" in said["write"]
    assert outcomes(mpi, tmp_path, place / "file", "sync", MIB, (1 << 43) + 12345)["sync"] == "good"
    assert (place / "file").stat().st_size == (
        1 << 43
    ) + 12345 + MIB // 1000 * 1000 * RANKS + 1000 * (RANKS - 1) + MIB % 1000
