"""Facts about the file system of a path: kind, mount, free space, quotas, stripes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from pario import filesystems
from pario.fix.stripe.layout import Stripes, place_of, stripes_of


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    point: str
    type: str
    source: str
    options: str


@dataclass(frozen=True)
class Quota:
    """A limit on the storage of a user, group or directory. A limit of 0 is none."""

    whose: str
    used: int
    limit: int
    files_used: int
    files_limit: int


@dataclass(frozen=True)
class FileSystem:
    """Facts; unknown ones are None or empty."""

    path: str
    mount: Mount
    stripes: Stripes
    targets: int  # 0: it does not tell
    block: int
    coherent: bool  # two nodes may write different bytes of one block at the same time
    locks_across_nodes: bool
    lock_unit: int  # bytes that two writers should not share; 0: none
    total: int
    free: int
    files_free: int | None
    quotas: list[Quota] = field(default_factory=list)


def facts_of(path: str | os.PathLike[str]) -> FileSystem:
    """Queries the kernel and the file system. A missing path stands for the directory in which it
    would be created."""
    from pario import _native

    place = place_of(path)
    stripes = stripes_of(place)
    directory = os.fsencode(place if place.is_dir() else place.parent)
    mount = mount_of(place)
    through_fuse = stripes.kind == "ceph" and mount.type.startswith(
        "fuse"
    )  # whose kernel keeps pages of its own
    coherent, locks, unit = _native.file_system_traits(
        "ceph_fuse" if through_fuse else stripes.kind
    )
    room = os.statvfs(place)
    return FileSystem(
        path=os.fspath(place),
        mount=mount,
        stripes=stripes,
        targets=_native.target_count(directory),
        block=stripes.block,
        coherent=coherent,
        locks_across_nodes=locks,
        lock_unit=unit or _own_unit(stripes),
        total=room.f_blocks * room.f_frsize,
        free=room.f_bavail * room.f_frsize,
        files_free=room.f_favail if 0 < room.f_files < 2**63 else None,
        quotas=[Quota(*row) for row in _native.quotas_of(os.fsencode(place))],
    )


def _own_unit(stripes: Stripes) -> int:
    """Stripes where there are any; blocks where blocks are locked; nothing on one machine alone."""
    if stripes.parts:
        return stripes.parts[-1].unit
    return stripes.block if filesystems.of_kind(stripes.kind).locks_blocks else 0


def mount_of(path: Path) -> Mount:
    """The mount that a path lies on: the one whose point is its longest beginning, of those on its
    device if there are any."""
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
    """What is mounted, with the numbers of the devices; what hides another comes behind it."""
    return [
        _parsed(line)
        for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    ]


def _parsed(line: str) -> tuple[int, Mount]:
    mine, _, rest = line.partition(" - ")
    words, (kind, source, options) = mine.split(" "), [*rest.split(" "), "", ""][:3]
    major, minor = map(int, words[2].split(":"))
    every = ",".join(dict.fromkeys(f"{words[5]},{options}".split(",")))
    return os.makedev(major, minor), Mount(_unescaped(words[4]), kind, _unescaped(source), every)


def _unescaped(text: str) -> str:
    r"""Undoes mountinfo's ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
