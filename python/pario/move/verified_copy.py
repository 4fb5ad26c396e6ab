"""Copies of files that are read back, compared and published, and keep times and permissions."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pario.copying import Copier, Sums, copy_piece, pieces_with_data, verify
from pario.errors import ParioError
from pario.publishing import identity_of, new_file, replace_if_unchanged

#: Size and modification time. A file with the same values is unchanged.
State = tuple[int, int]


def state_of(path: Path) -> State | None:
    """The state of a file; None if it does not exist."""
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_size, facts.st_mtime_ns


def copy_verified(
    source: Path, target: Path, threads: int, refusal: Callable[[], str | None] = lambda: None
) -> State:
    """Publishes a copy of a file or link after reading it back from the disk; returns its state.
    ``refusal`` is called last and may return a reason to keep the target.

    Raises ParioError that names the file.
    """
    try:
        make_directory(source.parent, target.parent)
        with new_file(target) as new:
            part = new.part
            before = _fill_part(source, part, new.descriptor, threads)
            try:
                there = identity_of(target)
                if reason := refusal():
                    raise ParioError(f"{target} {reason}")
                if not replace_if_unchanged(part, target, there):
                    raise ParioError(f"{target} was changed there while it was copied")
            finally:
                if part.is_symlink():
                    part.unlink()
    except ParioError as error:
        raise ParioError(f"{source}: {error}") from error
    except OSError as error:
        raise ParioError(f"{source}: cannot be copied to {target}: {error.strerror}") from error
    return before


def _fill_part(source: Path, part: Path, descriptor: int, threads: int) -> State:
    """Makes a new file a copy of the source, which may be a link; the state of the source."""
    before = state_of(source)
    if source.is_symlink():
        part.unlink()
        part.symlink_to(source.readlink())
        shutil.copystat(source, part, follow_symlinks=False)
    else:
        facts = _copy_file(source, descriptor, threads)
        mode = _keep_owner(facts, descriptor)
        _copy_attributes(source, descriptor)
        os.utime(descriptor, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        os.fchmod(descriptor, mode)
    if before is None or state_of(source) != before:
        raise ParioError("it was changed while it was copied")
    return before


def _keep_owner(facts: os.stat_result, copy: int) -> int:
    """Gives a copy the owner and group of its source, if this user may; returns its permissions."""
    for owner, group in ((facts.st_uid, facts.st_gid), (-1, facts.st_gid)):
        with suppress(OSError):
            os.fchown(copy, owner, group)
            break
    return _permissions(facts, os.fstat(copy))


def _permissions(facts: os.stat_result, found: os.stat_result) -> int:
    """The permissions of a source, without bits that grant the rights of another owner or group to
    the copy, whose facts are ``found``."""
    mode = stat.S_IMODE(facts.st_mode)
    if found.st_uid != facts.st_uid:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    return mode if found.st_gid == facts.st_gid else mode & ~stat.S_ISGID


def _copy_attributes(source: Path, copy: int) -> None:
    """Copies extended attributes, as far as the file system and this user can have them."""
    with suppress(OSError):
        for name in os.listxattr(source):
            with suppress(OSError):
                os.setxattr(copy, name, os.getxattr(source, name))


def _copy_file(source: Path, target: int, threads: int) -> os.stat_result:
    """Copies the bytes of a file; its facts before."""
    with source.open("rb", buffering=0) as read:
        sums: Sums = {}
        facts = os.fstat(read.fileno())
        size = facts.st_size
        os.ftruncate(target, size)
        for begin, end in pieces_with_data(read.fileno(), 0, size) if threads == 1 else []:
            sums[begin, end] = copy_piece(read.fileno(), target, begin, end)
        if threads > 1:
            with Copier(read.fileno(), target, threads, sums=sums) as copier:
                copier.copy(0, size, lambda _: None)
        verify(target, sums, threads)
    return facts


def make_directory(source: Path, target: Path) -> None:
    """Creates a missing directory and those above it, each with the permissions of its source,
    writable for its owner, and with the set-group-ID bit of its parent.
    """
    if target.is_dir():
        return
    make_directory(source.parent, target.parent)
    with suppress(FileExistsError):
        target.mkdir()
        made = target.stat()
        mode = _permissions(source.stat(), made)
        target.chmod(mode | stat.S_IRWXU | (made.st_mode & stat.S_ISGID))
