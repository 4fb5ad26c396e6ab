"""Real file systems for the tests of this folder: a CephFS, and small ones in image files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pario.errors import ParioError
from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.prove.lab.mount import Model, down, status, up
from tests.hosts.conftest import made, on
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

#: The program of most tests.
WRITE = str(Path(__file__).with_name("write.py"))
SCRIPT = Path(__file__).with_name("ceph.sh")
CEPH_TOOLS = ["ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph", "monmaptool"]
OSDS = 4


@dataclass(frozen=True)
class Ceph:
    """A CephFS that this machine and each of its pretend hosts have mounted at the same place, each
    by a client of its own."""

    mount: Path
    hosts: list[str]


def needs_root_and(tools: list[str], package: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: file systems are mounted")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)} (Debian: {package})")


def ceph_does(*words: object) -> None:
    """Fails with what Ceph's processes have said last."""
    done = run_command([SCRIPT, *words], stderr=subprocess.STDOUT, limit=8 * PATIENCE)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ceph]:
    needs_root_and(CEPH_TOOLS, "ceph-mon ceph-osd ceph-mds ceph-fuse ceph-common")
    for hosts in made("c", 4):
        directory = tmp_path_factory.mktemp("ceph")
        bridge = on(hosts[0], "head -n 2 /etc/hosts").split()[2]
        try:
            mount = directory / "mount"
            ceph_does("up", directory, bridge, OSDS)
            ceph_does("mount", directory, mount)
            for host in hosts:
                on(host, f"{SCRIPT} mount {directory} {mount}")
            yield Ceph(mount, hosts)
        finally:
            run_command([SCRIPT, "down", directory], status=0)


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Path]:
    """Mounts (mount's options and source) at a new folder; skips where that cannot be done."""
    place.mkdir()
    done = run_command(["mount", *arguments, place])
    if done.returncode != 0:
        pytest.skip(f"cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        run_command(["umount", "-l", place], status=0)


Image = Callable[..., Path]
Small = Callable[[int], Path]


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Image]:
    """``image("xfs", 400)``: a new file system of that kind and so many MiB, mounted. Its device is
    an image file in ``where``."""
    with ExitStack() as stack:

        def make(kind: str, mebibytes: int, *options: str, where: Path = tmp_path) -> Path:
            needs_root_and(
                [f"mkfs.{kind}"], {"xfs": "xfsprogs", "btrfs": "btrfs-progs"}.get(kind, "e2fsprogs")
            )
            device = where / f"{kind}.image"
            with device.open("wb") as file:
                file.truncate(mebibytes << 20)
            run_command([f"mkfs.{kind}", "-q", *options, device], status=0)
            return stack.enter_context(mounted(tmp_path / kind, "-o", "loop", str(device)))

        yield make


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    """``small(2)``: a file system in memory with room for two MiB."""
    with ExitStack() as stack:

        def make(mebibytes: int) -> Path:
            needs_root_and([], "")
            return stack.enter_context(
                mounted(tmp_path / "tmpfs", "-t", "tmpfs", "-o", f"size={mebibytes}m", "none")
            )

        yield make


def fast(**words: Any) -> Model:
    """A lab that takes no time, unless told to."""
    return Model(**{"rate": 0, "latency": 0, "lock_handover": 0, **words})


class Labs:
    """``labs(targets=4)``: mounts a lab that is taken away after the test."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._points: list[Path] = []

    def __call__(self, backing: Path | None = None, **words: Any) -> Path:
        point = self._place / f"lab{len(self._points)}"
        up(point, fast(**words), backing)
        self._points.append(point)
        return point

    @staticmethod
    def backing(point: Path) -> Path:
        """Where it keeps its files."""
        return Path(status(point)["backing"])

    def close(self) -> None:
        for point in self._points:
            with suppress(ParioError):
                down(point, force=True)


@contextmanager
def labs_at(place: Path) -> Iterator[Labs]:
    if not Path("/dev/fuse").exists():
        pytest.skip("needs /dev/fuse")
    all_of_them = Labs(place)
    try:
        yield all_of_them
    except ParioError as error:
        if "libfuse3" in str(error) or "fusermount3" in str(error):
            pytest.skip(str(error))
        raise
    finally:
        all_of_them.close()


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    with labs_at(tmp_path) as made_here:
        yield made_here


@pytest.fixture
def lustre(labs: Labs) -> Path:
    """A new lab, which takes and tells stripes as Lustre does, with eight OSTs; the next file
    begins on the fourth."""
    point = labs()
    set_stripes(point / "first", Wanted((Part(count=3),)))
    return point
