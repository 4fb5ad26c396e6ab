"""Facts about the file system of a path: kind, mount, free space, quotas, stripes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from pario import filesystems
from pario.fix.stripe.layout import Stripes, place_of, stripes_of

#: The assumed number of targets if a striped file system does not report it, as CephFS.
LIKELY_TARGETS = 8
#: The kernel's directory with a directory for each mount of Lustre.
LUSTRE_MOUNTS = "/sys/fs/lustre/llite"


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    point: str
    type: str
    source: str
    options: str


@dataclass(frozen=True)
class Quota:
    """A limit on the storage of a user, group or directory. A limit of 0 means no limit."""

    whose: str
    used: int
    limit: int
    files_used: int
    files_limit: int


@dataclass(frozen=True)
class FileSystem:
    """Facts about the file system of a path; unknown ones are None or empty."""

    path: str
    mount: Mount
    stripes: Stripes
    targets: int  # 0: unknown
    block: int
    coherent: bool  # two nodes may write different bytes of one block at the same time
    locks_across_nodes: bool
    lock_unit: int  # bytes that two writers should not share; 0: none
    direct_write: int  # bytes from which a write passes the page cache by; 0: never
    direct_read: int
    total: int
    free: int
    files_free: int | None
    quotas: list[Quota] = field(default_factory=list)


def facts_of(path: str | os.PathLike[str]) -> FileSystem:
    """Queries the kernel and the file system. For a missing path, describes the directory in which
    it would be created."""
    from pario import _native

    place = place_of(path)
    stripes = stripes_of(place)
    directory = os.fsencode(place if place.is_dir() else place.parent)
    mount = mount_of(place)
    # Under FUSE, the kernel has a page cache of its own in front of Ceph's.
    through_fuse = stripes.kind == "ceph" and mount.type.startswith("fuse")
    coherent, locks, unit = _native.file_system_traits(
        "ceph_fuse" if through_fuse else stripes.kind
    )
    direct_write, direct_read = (
        _native.direct_sizes_of_lustre(LUSTRE_MOUNTS) if stripes.kind == "lustre" else (0, 0)
    )
    space = os.statvfs(place)
    return FileSystem(
        path=os.fspath(place),
        mount=mount,
        stripes=stripes,
        targets=_native.target_count(directory),
        block=stripes.block,
        coherent=coherent,
        locks_across_nodes=locks,
        lock_unit=unit or _find_lock_unit(stripes),
        direct_write=direct_write,
        direct_read=direct_read,
        total=space.f_blocks * space.f_frsize,
        free=space.f_bavail * space.f_frsize,
        files_free=space.f_favail if 0 < space.f_files < 2**63 else None,
        quotas=[Quota(*row) for row in _native.quotas_of(os.fsencode(place))],
    )


def _find_lock_unit(stripes: Stripes) -> int:
    """The stripe size of a striped file; else the block size if the file system locks blocks;
    else 0."""
    if stripes.parts:
        return stripes.parts[-1].unit
    return stripes.block if filesystems.of_kind(stripes.kind).locks_blocks else 0


def mount_of(path: Path) -> Mount:
    """The mount of a path: the one with the longest matching mount point; mounts of the path's
    device come first."""
    device, real = path.stat().st_dev, os.path.realpath(path)
    rows = [
        (number == device, len(mount.point), index, mount)
        for index, (number, mount) in enumerate(mounts())
    ]
    above = [
        row
        for row in rows
        if real == row[3].point or real.startswith(row[3].point.rstrip("/") + "/")
    ]
    return max(above, key=lambda row: row[:3])[3] if above else Mount("", "", "", "")


def mounts() -> list[tuple[int, Mount]]:
    """All mounts with their device numbers; a mount comes after those that it hides."""
    return [
        _parse_mount(line)
        for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    ]


def _parse_mount(line: str) -> tuple[int, Mount]:
    mine, _, rest = line.partition(" - ")
    words, (kind, source, options) = mine.split(" "), [*rest.split(" "), "", ""][:3]
    major, minor = map(int, words[2].split(":"))
    every = ",".join(dict.fromkeys(f"{words[5]},{options}".split(",")))
    return os.makedev(major, minor), Mount(_unescape(words[4]), kind, _unescape(source), every)


def _unescape(text: str) -> str:
    r"""Replaces mountinfo's octal escapes (``\040``)."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
