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
from tests.hosts.conftest import make_hosts, on
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

#: The program of most tests.
WRITE = str(Path(__file__).with_name("write.py"))
SCRIPT = Path(__file__).with_name("ceph.sh")
CEPH_TOOLS = ["ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph", "monmaptool"]
OSDS = 4


@dataclass(frozen=True)
class Ceph:
    """A CephFS, mounted at the same path on this machine and on each of its pretend hosts.

    Each host has its own client.
    """

    mount: Path
    hosts: list[str]


def needs_root_and(tools: list[str], package: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: file systems are mounted")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)} (Debian: {package})")


def ceph_does(*words: object) -> None:
    """Runs ceph.sh; fails with the last messages of Ceph's processes."""
    done = run_command([SCRIPT, *words], stderr=subprocess.STDOUT, limit=8 * PATIENCE)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ceph]:
    needs_root_and(CEPH_TOOLS, "ceph-mon ceph-osd ceph-mds ceph-fuse ceph-common")
    for hosts in make_hosts("c", 4):
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
def mounted_at(place: Path, *arguments: str) -> Iterator[Path]:
    """Mounts a file system (mount's options and source) at a new folder; else skips the test."""
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
    """``image("xfs", 400)``: mounts a new file system of that kind and size in MiB.

    Its device is an image file in ``where``.
    """
    with ExitStack() as stack:

        def make(kind: str, mebibytes: int, *options: str, where: Path = tmp_path) -> Path:
            needs_root_and(
                [f"mkfs.{kind}"], {"xfs": "xfsprogs", "btrfs": "btrfs-progs"}.get(kind, "e2fsprogs")
            )
            device = where / f"{kind}.image"
            with device.open("wb") as file:
                file.truncate(mebibytes << 20)
            run_command([f"mkfs.{kind}", "-q", *options, device], status=0)
            return stack.enter_context(mounted_at(tmp_path / kind, "-o", "loop", str(device)))

        yield make


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    """``small(2)``: mounts a file system of two MiB in memory."""
    with ExitStack() as stack:

        def make(mebibytes: int) -> Path:
            needs_root_and([], "")
            return stack.enter_context(
                mounted_at(tmp_path / "tmpfs", "-t", "tmpfs", "-o", f"size={mebibytes}m", "none")
            )

        yield make


def fast(**words: Any) -> Model:
    """Returns the parameters of a lab without delays, changed by the given ones."""
    return Model(**{"rate": 0, "latency": 0, "lock_handover": 0, **words})


class Labs:
    """``labs(targets=4)``: mounts a lab; the test's end unmounts it."""

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
        """Returns the directory in which a lab keeps its files."""
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
    """A new lab with Lustre's interface for stripes and eight OSTs.

    The next file begins on the fourth OST.
    """
    point = labs()
    set_stripes(point / "first", Wanted((Part(count=3),)))
    return point
