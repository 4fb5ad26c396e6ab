"""``pario stripe`` on file systems with stripes: a real CephFS, and a lab with the interface of
Lustre."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from pario.cli import main
from pario.fix.stripe.layout import Part, Wanted, stripes_of
from pario.fix.stripe.restripe import restripe
from tests.filesystems.conftest import Ceph
from tests.support.commands import start_command

MIB = 1 << 20
DATA = random.Random(1).randbytes(9 * MIB + 4321)


@pytest.fixture
def folder(lustre: Path) -> Path:
    """A new folder on the lab."""
    made = lustre / uuid.uuid4().hex
    made.mkdir()
    return made


@pytest.fixture
def place(ceph: Ceph) -> Path:
    """A new folder on CephFS."""
    made = ceph.mount / uuid.uuid4().hex
    made.mkdir()
    return made


def run_stripe(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> str:
    assert main(["stripe", *map(str, words)]) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


def part(path: Path) -> Part:
    (only,) = stripes_of(path).parts
    return only


def with_facts(path: Path) -> tuple[object, ...]:
    path.write_bytes(DATA)
    os.setxattr(path, "user.note", b"kept")
    os.chown(path, 12, 34)
    path.chmod(0o4750)
    os.utime(path, ns=(10**18 + 5, 10**18 + 123_456_789))
    return facts(path)


def facts(path: Path) -> tuple[object, ...]:
    told = path.stat()
    return (
        path.read_bytes(),
        told.st_mode,
        told.st_uid,
        told.st_gid,
        told.st_mtime_ns,
        os.getxattr(path, "user.note"),
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--count", "4", "--size", "1M"], "4 stripes of 1 MiB on OSTs 3, 4, 5, 6"),
        (["--count", "2", "--size", "4M", "--start", "3"], "2 stripes of 4 MiB on OSTs 3, 4"),
        (["--targets", "0,2,4,6"], "4 stripes of 1 MiB on OSTs 0, 2, 4, 6"),
        (["--count", "all"], "8 stripes of 1 MiB on OSTs 3, 4, 5, 6, 7, 0, 1, 2"),
        (
            ["--count", "10", "--overstripe"],
            "10 stripes of 1 MiB on OSTs 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, overstriped",
        ),
        (["--count", "1", "--pool", "fast"], "1 stripe of 1 MiB on OST 3, pool fast"),
        (
            ["--part", "64M:1", "--part", "end:8:4M"],
            (
                "2 parts\n  up to 64 MiB: 1 stripe of 1 MiB on OST 3\n  up to the end: 8 stripes of"
                " 4 MiB on OSTs 4, 5, 6, 7, 0, 1, 2, 3"
            ),
        ),
    ],
)
def test_lustre_files(
    options: list[str], text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_stripe(capsys, "set", *options, folder / "new") == f"{folder}/new: {text}\n"
    assert run_stripe(capsys, "show", folder / "new") == f"{folder}/new: {text}\n"


def test_lustre_gives_fewer_stripes_than_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "asked for 50 stripes, it has 8" in run_stripe(
        capsys, "set", "--count", "50", folder / "new", status=1
    )


def test_lustre_keeps_the_stripes_of_a_file_without_a_word_but_not_pario(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "old").touch()
    text = run_stripe(capsys, "set", "--count", "4", folder / "old", status=1)
    assert "asked for 4 stripes, it has 1; a file keeps the stripes it has" in text
    (folder / "old").write_bytes(b"bytes")
    assert "has bytes already" in run_stripe(
        capsys, "set", "--count", "4", folder / "old", status=2
    )


def test_lustre_directories(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_stripe(capsys, "set", "--count", "3", "--size", "2M", folder)
    (folder / "new").write_bytes(b"bytes")
    assert part(folder / "new") == Part(unit=2 * MIB, count=3, start=3, targets=(3, 4, 5))
    above = folder.parent
    assert (
        run_stripe(capsys, "set", "--inherit", folder)
        == f"{folder}: new files have 1 stripe of 1 MiB, as {above} says\n"
    )


def test_lustre_restripe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "data"
    run_stripe(capsys, "set", "--count", "1", "--pool", "fast", path)
    before = with_facts(path)
    assert (
        run_stripe(capsys, "restripe", "--count", "4", path)
        == f"{path}: 4 stripes of 1 MiB on OSTs 5, 6, 7, 0, pool fast\n"
    )
    assert facts(path) == before and list(folder.iterdir()) == [path]
    assert run_stripe(capsys, "restripe", "--count", "4", path).endswith(", as it was\n")


def test_lustre_is_known_by_its_attributes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fs", "--json", str(folder)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["mount"]["type"] == "fuse.pario-lab" and told["targets"] == 8
    assert told["stripes"]["kind"] == "lustre" and told["stripes"]["settable"]


@pytest.mark.system
def test_ceph_files_and_directories(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "3 stripes of 1 MiB, pool data, objects of 4 MiB"
    assert (
        run_stripe(capsys, "set", "--count", "3", "--size", "1M", place / "new")
        == f"{place}/new: {text}\n"
    )
    assert (
        os.getxattr(place / "new", "ceph.file.layout")
        == b"stripe_unit=1048576 stripe_count=3 object_size=4194304 pool=data"
    )
    assert run_stripe(capsys, "set", "--count", "2", "--object-size", "8M", place).endswith(
        "2 stripes of 4 MiB, pool data, objects of 8 MiB\n"
    )
    (place / "below").mkdir()
    assert run_stripe(capsys, "set", "--count", "3", place / "below").endswith(
        "3 stripes of 4 MiB, pool data, objects of 8 MiB\n"
    )
    (place / "heir").write_bytes(b"bytes")
    assert (part(place / "heir").count, stripes_of(place / "heir").object_size) == (2, 8 * MIB)
    assert f"as {place.parent} says" in run_stripe(capsys, "set", "--inherit", place)


@pytest.mark.system
def test_ceph_says_what_it_has_not(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        ["--count", "2", "--start", "1"],
        ["--targets", "0,1"],
        ["--count", "all"],
        ["--count", "2", "--overstripe"],
    ):
        assert (
            "Ceph" in (text := run_stripe(capsys, "set", *options, place / "new", status=2))
            or "only Lustre" in text
        )
    assert "EINVAL" in run_stripe(capsys, "set", "--pool", "nothing", place / "new", status=2)
    assert list(place.iterdir()) == []


@pytest.mark.system
def test_ceph_files_with_bytes_are_copied(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / "data"
    before = with_facts(path)
    assert "has bytes already" in run_stripe(capsys, "set", "--count", "4", path, status=2)
    run_stripe(capsys, "restripe", "--count", "4", "--size", "1M", path)
    assert facts(path) == before and list(place.iterdir()) == [path]
    assert (part(path).count, part(path).unit) == (4, MIB)


@pytest.mark.system
def test_ceph_zeros_become_holes_again(place: Path) -> None:
    path = place / "sparse"
    with path.open("wb") as file:
        file.truncate(50 * MIB)
        file.seek(20 * MIB)
        file.write(DATA)
    data = path.read_bytes()
    restripe(path, Wanted((Part(count=2),)))
    assert path.read_bytes() == data


@pytest.mark.system
def test_ceph_tells_quotas(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.setxattr(place, "ceph.quota.max_bytes", b"1000000000")
    assert main(["fs", "--json", str(place)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert [(quota["whose"], quota["limit"]) for quota in told["quotas"]] == [
        (f"directory {place}", 10**9)
    ]


@pytest.mark.exhaustive
def test_ceph_restripe_killed_at_random_moments_loses_nothing(place: Path) -> None:
    path, moments = place / "data", random.Random()
    path.write_bytes(DATA * 4)
    command = [sys.executable, "-m", "pario", "stripe", "restripe", "--size", "1M", path, "--count"]
    for number in range(12):
        with start_command([*command, 2 + number % 3], stdout=subprocess.DEVNULL):
            time.sleep(moments.uniform(0.2, 1.5))  # at a random moment
        assert path.read_bytes() == DATA * 4
    restripe(path, Wanted((Part(count=7, unit=MIB),)))
    assert path.read_bytes() == DATA * 4 and part(path).count == 7
    assert list(place.iterdir()) == [path]
