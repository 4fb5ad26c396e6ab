"""Publishes files: writes them aside and renames them when they are complete.

A temporary file is beside its target as ``.NAME.HOST8SLOT8.pario-part``. It is locked while it is
written, so that stale temporary files of killed processes are recognised and removed
(``src/core/file/publication.hpp``). A symbolic link in its place is removed, never followed.

A target that appeared or changed meanwhile is kept where the caller asks for that. Local file
systems exchange two names in one step (``renameat2``). Network file systems cannot: there the
replaced file gets a second name, by which it is put back if it is not the expected one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pario.errors import ParioError, add_path
from pario.paths import resolve

_NO_REPLACE, _EXCHANGE = 1, 2
_HERE = -100  # AT_FDCWD
_NO_RENAME_FLAGS = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
#: Errors of file systems that cannot flush directories.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF, errno.EPERM)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_PART = re.compile(r"\..+\.[0-9a-f]{16}\.pario-part", re.DOTALL)

#: Device, inode, size and modification time. A file with the same values is unchanged.
Identity = tuple[int, int, int, int]


def part_path(target: Path) -> Path:
    """The path of the first temporary file of a target."""
    from pario._native import part_path

    return Path(os.fsdecode(part_path(os.fsencode(target))))


def is_part(name: str) -> bool:
    """True for names of temporary files, of any host."""
    return _PART.fullmatch(name) is not None


def remove_stale_part(target: Path) -> None:
    """Removes the temporary file that a killed process has left of a target. Ignores errors."""
    from pario._native import remove_stale_part

    remove_stale_part(os.fsencode(target))


def remove(path: Path) -> None:
    """Removes a file, a directory with its contents, or a link, but never a link's target. A
    missing path is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Publication:
    """A new locked file beside its target."""

    target: Path
    part: Path
    descriptor: int  # to read and write it

    def require_own(self, error: type[ParioError] = ParioError) -> None:
        """Raises ``error`` if another process has removed the file to make the same target."""
        if not _is_named(self.descriptor, self.part):
            raise error(f"{self.target} is made by another process, too")

    def replace(self, error: type[ParioError] = ParioError) -> None:
        """Renames the file to its target, which it replaces. Raises OSError, or ``error`` as
        :meth:`require_own`."""
        self.require_own(error)
        self.part.replace(self.target)


@contextmanager
def new_file(target: Path) -> Iterator[Publication]:
    """A new file that the body publishes; otherwise it is removed. Raises OSError that names
    ``target`` if it names no other file.
    """
    with add_path(target):
        part, descriptor = _create_part(target)
        try:
            yield Publication(target, part, descriptor)
        finally:
            if _is_named(descriptor, part):
                part.unlink()
            os.close(descriptor)


@contextmanager
def new_directory(target: Path, mode: int = 0o777) -> Iterator[Path]:
    """Makes a directory beside its target, locked in the block, whose end renames it to its target.
    Errors in the block remove it. Processes may make one target at a time: the first publishes it.
    Raises FileExistsError in the others or if the target exists, and OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _create_directory(target, mode, temporary=False) as part:
        yield part
        publish_new(part, target)


@contextmanager
def temporary_directory(beside: Path) -> Iterator[Path]:
    """A new directory of this user beside a path that need not exist, locked in the block, whose
    end removes it. It gets the name of a temporary file of that path. Raises OSError."""
    with _create_directory(beside, 0o700, temporary=True) as part:
        yield part


@contextmanager
def _create_directory(target: Path, mode: int, *, temporary: bool) -> Iterator[Path]:
    from pario._native import create_directory_part

    name, descriptor = create_directory_part(os.fsencode(target), mode, temporary)
    part = Path(os.fsdecode(name))
    try:
        yield part
    finally:
        if _is_named(descriptor, part):
            shutil.rmtree(part, ignore_errors=True)
        with add_path(target):
            os.close(descriptor)


@contextmanager
def replacing(
    target: Path, error: type[ParioError] = ParioError, *, durable: bool = True, name: str = ""
) -> Iterator[IO[bytes]]:
    """A file to be written, which replaces ``target`` at the end of the body. ``durable``: after
    its bytes and its name are on the disk.

    Raises ``error`` that names ``target``, as ``name`` if that is given. It is unchanged then,
    unless the error is of the last step, the flush of the directory.
    """
    try:
        with new_file(target) as new:
            with os.fdopen(new.descriptor, "wb", closefd=False) as file:
                yield file
            if durable:
                os.fsync(new.descriptor)
            new.replace(error)
            if durable:
                sync_directory(target.parent)
    except OSError as cause:
        raise error(f"cannot write {name or target}: {cause.strerror or cause}") from cause


def keep_file(path: Path, content: str, *, durable: bool = False) -> None:
    """Writes a file of UTF-8, which replaces an older one as a whole, in a directory that may be
    missing. Raises ParioError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParioError(f"cannot write {path}: {error.strerror}") from error
    with replacing(path, durable=durable) as file:
        file.write(content.encode())


def write_text(path: Path, text: str, kind: str = "") -> None:
    """Writes a file of UTF-8, as :func:`open_output`."""
    with open_output(path, kind) as file:
        file.write(text.encode())


@contextmanager
def open_output(path: Path, kind: str = "") -> Iterator[IO[bytes]]:
    """A file to be written: a regular one is published at the end of the body, so that an interrupt
    leaves no part of it; a device or a pipe is written at once.

    Raises ParioError with the file, and its ``kind`` if it has one.
    """
    name = f"the {kind} {path}" if kind else str(path)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
        else:
            with replacing(resolve(path), name=name) as file:
                yield file
    except OSError as error:
        raise ParioError(f"cannot write {name}: {error.strerror or error}") from error


def _create_part(target: Path) -> tuple[Path, int]:
    from pario._native import create_part

    name, descriptor = create_part(os.fsencode(target))
    part = Path(os.fsdecode(name))
    sys.audit("open", str(part), "x+b", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
    return part, descriptor


def _is_named(descriptor: int, path: Path) -> bool:
    """True if an open file has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def identity_of(path: Path) -> Identity | None:
    """The identity of a file or a link; None if it does not exist."""
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def publish_new(part: Path, target: Path) -> None:
    """Renames a file to a free name. Raises FileExistsError if the name is not free."""
    if _rename(part, target, _NO_REPLACE):
        return
    try:
        os.link(part, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        part.rename(target)  # the file system has neither
    else:
        part.unlink()


def replace_if_unchanged(part: Path, target: Path, before: Identity | None) -> bool:
    """Renames a file over a target that still has the identity ``before`` (None: no file).

    False if the target has changed, which is kept then. A file that was replaced is removed; one
    that was not published remains at ``part``.
    """
    if before is None:
        try:
            publish_new(part, target)
        except FileExistsError:
            return False
        return True
    try:
        if stat.S_ISDIR(target.lstat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        done = _exchange(part, target, before)
        return _replace(part, target, before) if done is None else done
    except FileNotFoundError:
        if identity_of(target) is None:
            return False
        raise


def sync_directory(directory: Path) -> None:
    """Flushes the names in a directory to the disk, where the file system and its permissions allow
    that. Raises OSError."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # a directory that can be searched, but not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def _exchange(part: Path, target: Path, before: Identity) -> bool | None:
    """As replace_if_unchanged(); None if the file system cannot exchange names."""
    ours = identity_of(part)
    if not _rename(part, target, _EXCHANGE):
        return None
    if identity_of(part) == before:
        with suppress(OSError):
            part.unlink()
        return True
    if not _rename(part, target, _EXCHANGE) or identity_of(part) != ours:
        # Another process has replaced ours meanwhile; its file is the newest.
        _rename(part, target, _EXCHANGE)
    return False


def _replace(part: Path, target: Path, before: Identity) -> bool:
    """As replace_if_unchanged(), by a second name for the replaced file."""
    spare = part_path(part)
    spare.unlink(missing_ok=True)
    with suppress(OSError):
        # Links to files of other users may be forbidden, or the file system has none. Then only the
        # look at the target before the rename protects it.
        os.link(target, spare, follow_symlinks=False)
    try:
        if identity_of(target) != before:
            return False
        ours = identity_of(part)
        part.rename(target)
        displaced = identity_of(spare)
        if displaced in (None, before):
            return True
        if identity_of(target) == ours:
            spare.rename(target)  # the target was written between the look and the rename
        return False
    finally:
        spare.unlink(missing_ok=True)


def _rename(source: Path, target: Path, flags: int) -> bool:
    """renameat2(2). False if the kernel, C library or file system does not know the flags."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    if function(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_RENAME_FLAGS:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))
