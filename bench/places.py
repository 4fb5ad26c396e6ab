"""Creates file systems and hosts for a measurement (root)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pario.prove.lab.mount import Model

ROOT = Path(__file__).parents[1]
HOSTS = ROOT / "tests" / "hosts" / "hosts.sh"
CEPH = ROOT / "tests" / "filesystems" / "ceph.sh"


@contextmanager
def hosts_of(count: int) -> Iterator[list[str]]:
    """Creates pretended hosts; yields their names."""
    tag = f"s{os.getpid() % 10000}"
    made = subprocess.run(
        [HOSTS, "up", tag, str(count)], capture_output=True, text=True, check=True
    )
    try:
        yield made.stdout.split()
    finally:
        subprocess.run([HOSTS, "down", tag], check=True)


@contextmanager
def mounted_lab(point: Path, model: Model, backing: Path | None = None) -> Iterator[Path]:
    """Mounts a lab, and yields its mount point. ``backing``: the directory of its files, which
    stays; None: a new one."""
    from pario.prove.lab.mount import down, up

    mounted = up(point, model, backing).point
    try:
        yield mounted
    finally:
        down(mounted, force=True)


@contextmanager
def local_ceph(folder: Path) -> Iterator[Path]:
    """Creates a CephFS on this machine, in memory; yields its mount point."""
    try:
        subprocess.run([CEPH, "up", folder, "127.0.0.1", "4"], check=True)
        subprocess.run([CEPH, "mount", folder, folder / "mount"], check=True)
        yield folder / "mount"
    finally:
        subprocess.run([CEPH, "down", folder], check=True)


@contextmanager
def slow_ceph(
    targets: int, megabytes: int, clients: int = 0, options: str = ""
) -> Iterator[tuple[Path, list[str]]]:
    """Creates a CephFS whose OSDs are hosts with links of so many megabytes per second.

    Yields its mount point and the names of further hosts (``clients``), which have mounted it, too.
    ``options`` are lines for ceph.conf.
    """
    with tempfile.TemporaryDirectory() as folder, hosts_of(targets + clients) as hosts:
        for host in hosts[:targets]:
            slow = [
                "root",
                "tbf",
                "rate",
                f"{8 * megabytes}mbit",
                "burst",
                "256kb",
                "latency",
                "50ms",
            ]
            subprocess.run(["tc", "qdisc", "add", "dev", f"v{host}", *slow], check=True)
            subprocess.run(
                [HOSTS, "exec", host, "tc", "qdisc", "add", "dev", "eth0", *slow], check=True
            )
        bridge = subprocess.run(
            [HOSTS, "exec", hosts[0], "sed -n 2p /etc/hosts"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[0]
        point = Path(folder, "mount")
        environment = {**os.environ, "PARIO_CEPH_OPTIONS": options}
        try:
            subprocess.run(
                [CEPH, "up", folder, bridge, str(targets), hosts[0].removesuffix("0")],
                check=True,
                env=environment,
            )
            subprocess.run([CEPH, "mount", folder, point], check=True)
            for host in hosts[targets:]:
                subprocess.run([HOSTS, "exec", host, f"{CEPH} mount {folder} {point}"], check=True)
            yield point, hosts[targets:]
        finally:
            subprocess.run([CEPH, "down", folder], check=True)
