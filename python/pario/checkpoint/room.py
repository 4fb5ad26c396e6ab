"""The room for new files: of the file system, and of quotas."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress

from pario.checkpoint.errors import CheckpointError

#: Seconds that ``lfs quota`` may take.
_LFS_PATIENCE = 10
_KIBIBYTE = 1024


def check_room(path: str, needed: int) -> None:
    """Raises CheckpointError where a new file at ``path`` has no room for so many bytes."""
    directory = os.path.dirname(path) or "."  # noqa: PTH120
    try:
        facts = os.statvfs(directory)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    rooms = [("", facts.f_bavail * facts.f_frsize), *_quota_rooms(directory)]
    where, free = min(rooms, key=lambda room: room[1])
    if free < needed:
        limit = f" within the quota of {where}" if where else ""
        raise CheckpointError(f"{path}: no space: {needed} bytes are needed, {free} are free{limit}")


def _quota_rooms(directory: str) -> Iterator[tuple[str, int]]:
    """The owner of each quota that limits this process, and the bytes that are left of it."""
    from pario import _native

    if os.geteuid() == 0:  # quotas of users do not limit it
        return
    for whose, used, limit, _, _ in [*_native.quotas_of(os.fsencode(directory)), *_lustre_quotas(directory)]:
        if limit:
            yield whose, max(0, limit - used)


def _lustre_quotas(directory: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Quotas of the user and the group on Lustre, which does not tell them to the kernel."""
    from pario import _native

    program = shutil.which("lfs")
    if program is None or _native.stripes_of(os.fsencode(directory))[0] != "lustre":
        return
    for option, number, whose in (("-u", os.geteuid(), "user"), ("-g", os.getegid(), "group")):
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            command = [program, "quota", "-q", option, str(number), directory]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LFS_PATIENCE, check=True)
            used, limit = parse_lfs_quota(done.stdout)
            yield f"{whose} {number}", used, limit, 0, 0


def parse_lfs_quota(text: str) -> tuple[int, int]:
    """Bytes used, and the hard limit (0: none), from what ``lfs quota -q`` prints.

    A row is: file system, kbytes, quota, limit, grace, files, quota, limit, grace. A long name of
    the file system stands on a line of its own; ``*`` marks a number above its quota.
    """
    words = [word.rstrip("*") for word in text.split()]
    used, _, limit = (int(word) * _KIBIBYTE for word in words[1:4])
    return used, limit
