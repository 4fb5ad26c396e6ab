"""A file that is whole takes a name, and never that of a file which has come, or has changed, since somebody looked.

File systems of one machine exchange two names in one step (``renameat2``). Those over networks cannot: there a second name is given to what
is replaced, by which it is found and put back when it was not what was expected.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_NO_REPLACE, _EXCHANGE = 1, 2
_HERE = -100  # AT_FDCWD
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

#: Device, number, size and modification time: what has all of them as before is the file that it was.
Identity = tuple[int, int, int, int]


def identity_of(path: Path) -> Identity | None:
    """Of a file or a link; None: there is none."""
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def take_free_name(aside: Path, target: Path) -> None:
    """Raises FileExistsError where there is something by this name."""
    if _rename(aside, target, _NO_REPLACE):
        return
    try:
        os.link(aside, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        aside.rename(target)  # it has neither
    else:
        aside.unlink()


def take_name(aside: Path, target: Path, before: Identity | None, spare: Path) -> bool:
    """In the place of what was ``before`` when somebody looked (None: of nothing). False: it is no longer that, and stays as it is.

    ``spare``: a name beside it that nobody else uses. What is at ``aside`` then is the caller's to remove.
    """
    if before is None:
        try:
            take_free_name(aside, target)
        except FileExistsError:
            return False
        return True
    try:
        if stat.S_ISDIR(target.lstat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        done = _exchange(aside, target, before)
        return _replace(aside, target, before, spare) if done is None else done
    except FileNotFoundError:
        if identity_of(target) is None:
            return False
        raise


def sync_names(directory: Path) -> None:
    """The names in a directory are on the disk afterwards, where the file system can do that.

    Raises OSError where the directory cannot be opened.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(aside: Path, target: Path, before: Identity) -> bool | None:
    """None: the file system cannot."""
    ours = identity_of(aside)
    if not _rename(aside, target, _EXCHANGE):
        return None
    if identity_of(aside) == before:
        return True
    if not _rename(aside, target, _EXCHANGE) or identity_of(aside) != ours:
        _rename(aside, target, _EXCHANGE)  # somebody has replaced ours meanwhile: that is the newest
    return False


def _replace(aside: Path, target: Path, before: Identity, spare: Path) -> bool:
    spare.unlink(missing_ok=True)
    with suppress(OSError):  # links of others' files may be forbidden, or there are none: then the look before is all there is
        os.link(target, spare, follow_symlinks=False)
    try:
        if identity_of(target) != before:
            return False
        ours = identity_of(aside)
        aside.rename(target)
        displaced = identity_of(spare)
        if displaced in (None, before):
            return True
        if identity_of(target) == ours:
            spare.rename(target)  # it was written between the look and the rename
        return False
    finally:
        spare.unlink(missing_ok=True)


def _rename(source: Path, target: Path, flags: int) -> bool:
    """False: kernel, C library or file system do not know how."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    if function(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))
