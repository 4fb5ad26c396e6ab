"""The file systems that pario knows: one row each, beside the row in src/core/layout/layout.def.

The native row has magic numbers, names of mounts, coherence, locks and file domains. The row here
has the facts for reports, advice and commands.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class FileSystem:
    """A kind of file system. Commands are templates, whose fields ``shell_words`` lists."""

    kind: str  # of src/core/layout/layout.def
    target: str = "target"  # the word for a storage target
    locks_ranges: bool = False  # ranks that write into one lock unit wait for each other
    locks_blocks: bool = False  # the lock unit is the block where a file has no stripes
    keeps_zeros: bool = False  # a copy of zeros takes space unless it is a hole
    settable: bool = False  # pario can set the stripes of new files
    settable_directories: bool = True  # and those of the new files of a directory
    reason: str = "it has no stripes that can be set"  # why they are not settable
    layout_attributes: tuple[str, ...] = ()  # extended attributes with the layout of a file
    stripe: str = ""  # command that stripes the new files of {directory}
    unstripe: str = ""  # the same for many small files; empty: no need
    quota: str = ""  # command that shows a quota which the kernel does not know


_LUSTRE = "lfs setstripe -c {count} -S {mebibytes}M {directory}"

#: The rows, in the order in which reports list them.
ROWS: tuple[FileSystem, ...] = (
    FileSystem(
        "lustre",
        target="OST",
        locks_ranges=True,
        locks_blocks=True,
        settable=True,
        layout_attributes=("lustre.lov",),
        stripe=_LUSTRE,
        unstripe="lfs setstripe -c 1 {directory}",
        quota="lfs quota -h -u $USER {mount}",
    ),
    FileSystem(
        "gpfs",
        locks_ranges=True,
        locks_blocks=True,
        reason="stripes are decided by its servers",
        quota="mmlsquota -u $USER {source}",
    ),
    FileSystem("nfs", locks_ranges=True, quota="quota -s -f {mount}"),
    FileSystem(
        "ceph",
        target="OSD",
        locks_ranges=True,
        locks_blocks=True,
        keeps_zeros=True,
        settable=True,
        layout_attributes=("ceph.file.layout", "ceph.dir.layout"),
        stripe="setfattr -n ceph.dir.layout.stripe_count -v {count} {directory}",
    ),
    FileSystem("ceph_fuse", target="OSD"),
    FileSystem(
        "beegfs",
        target="storage target",
        locks_ranges=True,
        settable=True,
        settable_directories=False,
        quota="beegfs-ctl --getquota --uid $USER",
    ),
    FileSystem("panfs", locks_ranges=True, quota="pan_quota {mount}"),
    FileSystem("pvfs"),
    FileSystem("fuse", locks_blocks=True, keeps_zeros=True),
    FileSystem("local"),
    FileSystem("tmpfs"),
    FileSystem("unknown"),
)
_BY_KIND = {row.kind: row for row in ROWS}


def of_kind(kind: str) -> FileSystem:
    """Return the row of a kind; that of ``unknown`` for any other text."""
    return _BY_KIND.get(kind, _BY_KIND["unknown"])


def of_mount(name: str) -> FileSystem:
    """Return the row of a name in the table of mounts, such as ``nfs4`` or ``fuse.ceph-fuse``."""
    return of_kind(next((kind for kind, names in _mount_names().items() if name in names), ""))


def is_network(name: str) -> bool:
    """Tell whether the file system with this name in the table of mounts is remote."""
    from pario import _native

    return _native.is_network_file_system(name)


def names_with_range_locks() -> tuple[str, ...]:
    """Return the names of mounts, but those over FUSE, whose clients lock ranges of a file."""
    names = _mount_names()
    return tuple(
        name
        for row in ROWS
        if row.locks_ranges
        for name in names[row.kind]
        if not name.startswith("fuse")
    )


def kind_of_attribute(name: str) -> str:
    """Return the kind whose files have this layout attribute; empty if there is none."""
    return next((row.kind for row in ROWS if name in row.layout_attributes), "")


def shell_words(
    template: str, directory: str = "", count: int = 0, mebibytes: int = 0
) -> tuple[str, ...]:
    """Return the words of a command."""
    return tuple(
        word.format(directory=directory, count=count, mebibytes=mebibytes)
        for word in shlex.split(template)
    )


@cache
def _mount_names() -> dict[str, tuple[str, ...]]:
    """The names of mounts by kind, from layout.def."""
    from pario import _native

    return {kind: tuple(names) for kind, names in _native.file_system_names()}
