"""Moves a file to other stripes: copies it into a new file beside it and renames that over it.

A killed process loses no data: the file stays untouched until the copy is complete and on the disk;
then one rename replaces it. The next call resumes an interrupted copy (``State``) if the file and
the requested stripes are the same. A file that another process has open for writing, or changes, is
left alone. Where leases do not show this (other nodes), size and times are compared before the
rename and after it; a difference afterwards reverts the rename.

The copy has to outlive the process that made it. :mod:`pario.publishing` removes such files.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pario import filesystems
from pario.copying import Copier
from pario.errors import ParioError
from pario.fix.stripe.layout import (
    Stripes,
    Wanted,
    differences,
    fill_unset,
    is_fulfilled,
    set_stripes,
    stripes_of,
)
from pario.paths import local_path, resolve
from pario.progress import Show, silent
from pario.publishing import sync_directory

#: Bytes between two checkpoints of the copy: each syncs the copy, records the progress and checks
#: that the file is unchanged.
LEG = 512 << 20
#: Attributes that describe the place of the bytes, not the file.
_PLACES = (
    "lustre.",
    "ceph.",
    "btrfs.",
    "trusted.lov",
    "trusted.lma",
    "trusted.link",
    "trusted.fid",
    "trusted.hsm",
)
#: Attributes that ordinary users may not set; the file system gives new ones.
_SYSTEM = ("security.", "trusted.")
Create = Callable[[Path, Wanted], Stripes]


@dataclass(frozen=True)
class Outcome:
    """The result of a call of ``restripe``."""

    moved: bool  # False: it had the requested stripes already
    stripes: Stripes
    notes: tuple[str, ...] = ()
    resumed: int = 0  # bytes that an earlier, interrupted copy had moved


class Places:
    """The paths that the copy of a file uses, all in the directory of the file."""

    def __init__(self, path: Path) -> None:
        name = (
            path.name
            if len(os.fsencode(path.name)) < 200
            else hashlib.sha256(os.fsencode(path.name)).hexdigest()
        )
        self.file = path
        self.copy = path.with_name(f".{name}.restriping")
        self.state = path.with_name(f".{name}.restriping.state")
        self.old = path.with_name(f".{name}.restriping.old")


def restripe(
    path: str | os.PathLike[str],
    wanted: Wanted,
    show: Show = silent,
    threads: int = 4,
    leg: int = LEG,
    create: Create | None = None,
    force: bool = False,
) -> Outcome:
    """Returns when the file has its new stripes. Raises ParioError, with the file unchanged."""
    places = Places(resolve(local_path(path)))
    create = create or (lambda copy, stripes: set_stripes(copy, stripes, 0o600))
    try:
        now = stripes_of(places.file)
        if is_fulfilled(wanted, now) and not force:
            return Outcome(False, now)
        wanted = fill_unset(wanted, now)
        with ExitStack() as stack:
            state = stack.enter_context(State.lock(places))
            _finish_old(places)
            source = _open_file(stack, places.file, os.O_RDONLY)
            guard = stack.enter_context(
                _Guard.on(places.file, source, _require_replaceable(places.file, source))
            )
            return _Restriper(
                places, wanted, show, threads, leg, create, source, guard, state
            ).run()
    except OSError as error:
        raise ParioError(f"{path}: {error.strerror or error}; the file is unchanged") from error


def discard(path: str | os.PathLike[str]) -> bool:
    """Removes the remains of an interrupted copy beside a file; False if there were none."""
    places = Places(Path(os.path.realpath(local_path(path))))
    if not places.copy.exists() and not places.state.exists():
        return False
    with State.lock(places) as state:
        _finish_old(places)
        places.copy.unlink(missing_ok=True)
        state.remove()
    return True


def _open_file(stack: ExitStack, path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    stack.callback(os.close, descriptor)
    return descriptor


def _require_replaceable(path: Path, source: int) -> os.stat_result:
    """The facts of a file. Raises ParioError if it cannot be replaced."""
    facts = os.fstat(source)
    if not stat.S_ISREG(facts.st_mode):
        raise ParioError(
            f"{path} is no file; `pario stripe set` sets the stripes of new files in a directory"
        )
    if facts.st_nlink > 1:
        raise ParioError(
            f"{path} has {facts.st_nlink} names (hard links): the others would keep the old file"
        )
    if os.geteuid() not in (0, facts.st_uid):
        raise ParioError(f"{path} belongs to another user: the new file would be yours")
    return facts


def _finish_old(places: Places) -> None:
    """Removes the second name that a process left when it was killed during the replacement. Raises
    ParioError if one of the two files was changed since."""
    with suppress(FileNotFoundError):
        old, now = places.old.stat(), places.file.stat()
        if old.st_ino != now.st_ino and (old.st_size, old.st_mtime_ns) != (
            now.st_size,
            now.st_mtime_ns,
        ):
            raise ParioError(
                f"{places.old} was {places.file} before it was restriped, and one of them was"
                " changed meanwhile: keep the right one"
            )
        places.old.unlink()


class State:
    """A small file beside the copy with its progress, locked by the process that copies."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @staticmethod
    @contextmanager
    def lock(places: Places) -> Iterator[State]:
        """Lock the state for this process during the block. Raises ParioError if another process
        holds it."""
        with ExitStack() as stack:
            while True:
                descriptor = _open_file(stack, places.state, os.O_RDWR | os.O_CREAT)
                _lock(descriptor, places.file)
                if (
                    places.state.exists()
                    and places.state.stat().st_ino == os.fstat(descriptor).st_ino
                ):
                    break  # otherwise the previous owner has removed it
            try:
                yield State(places.state, descriptor)
            finally:
                if os.fstat(descriptor).st_size == 0:
                    places.state.unlink(missing_ok=True)

    def read(self) -> dict[str, Any]:
        """The last progress written; empty if it cannot be read."""
        try:
            value = json.loads(os.pread(self._descriptor, 1 << 16, 0))
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def write(self, value: dict[str, Any]) -> None:
        """Write the progress and sync it."""
        data = json.dumps(value).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, data, 0)
        os.fsync(self._descriptor)

    def remove(self) -> None:
        """Remove the file of the state."""
        self._path.unlink(missing_ok=True)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ParioError(f"{path} is being restriped by another process") from None
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise


class _Guard:
    """Detects changes of the file during the copy: by a lease, where the kernel grants one, and by
    size and times."""

    def __init__(self, path: Path, descriptor: int, facts: os.stat_result, lease: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._facts = facts
        self._lease = lease

    @property
    def identity(self) -> list[int]:
        """Device, inode, size and times of the file at the start."""
        facts = self._facts
        return [facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]

    @property
    def facts(self) -> os.stat_result:
        """The facts of the file at the start."""
        return self._facts

    @staticmethod
    @contextmanager
    def on(path: Path, descriptor: int, facts: os.stat_result) -> Iterator[_Guard]:
        """Guard the file during the block. Raises ParioError if a process has it open for writing.
        With a lease, a later open for writing waits until the lease is released."""
        main = threading.current_thread() is threading.main_thread()
        # By default, the signal of a broken lease ends the process.
        before = signal.signal(signal.SIGIO, signal.SIG_IGN) if main else None
        try:
            yield _Guard(path, descriptor, facts, main and _take_lease(path, descriptor))
        finally:
            with suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            if before is not None:
                signal.signal(signal.SIGIO, before)

    def check(self, renamed: bool = False) -> None:
        """Raises ParioError if the file changed. A rename changes one of its times."""
        now, was = os.fstat(self._descriptor), self._facts
        changed = (now.st_size, now.st_mtime_ns) != (was.st_size, was.st_mtime_ns) or (
            not renamed and now.st_ctime_ns != was.st_ctime_ns
        )
        if changed or (not renamed and self._path.stat().st_ino != was.st_ino):
            raise ParioError(
                f"{self._path} was changed while it was copied; it keeps the changes and is not"
                " restriped"
            )
        if self._lease and fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
            raise ParioError(
                f"{self._path} was opened for writing while it was copied; it is not restriped"
            )


def _take_lease(path: Path, descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        raise ParioError(f"another process has {path} open for writing") from None
    except OSError:  # the file system has no leases, or the file belongs to another user
        return False
    return True


class _Restriper:
    """The copy and the replacement of one file."""

    def __init__(
        self,
        places: Places,
        wanted: Wanted,
        show: Show,
        threads: int,
        leg: int,
        create: Create,
        source: int,
        guard: _Guard,
        state: State,
    ) -> None:
        self._places, self._wanted, self._show = places, wanted, show
        self._threads, self._leg, self._create = threads, leg, create
        self._source, self._guard, self._state = source, guard, state

    def run(self) -> Outcome:
        """Copy and replace the file. A killed process leaves its copy for the next call to resume;
        an error removes it."""
        done = self._find_resumable()
        try:
            stripes = stripes_of(self._places.copy) if done is not None else self._new_copy()
            with ExitStack() as stack:
                target = _open_file(stack, self._places.copy, os.O_RDWR)
                self._fill(target, done or 0)
                self._guard.check()
                _copy_metadata(self._places.file, self._source, target, self._guard.facts)
            self._replace()
        except Exception:
            self._places.copy.unlink(missing_ok=True)
            self._state.remove()
            raise
        self._state.remove()
        notes = (f"{self._places.file}: {text}" for text in differences(self._wanted, stripes))
        return Outcome(True, stripes_of(self._places.file), tuple(notes), done or 0)

    def _make_note(self, done: int) -> dict[str, Any]:
        copy = self._places.copy.stat()
        return {
            "version": 1,
            "file": self._guard.identity,
            "copy": [copy.st_dev, copy.st_ino],
            "wanted": self._wanted.key,
            "done": done,
        }

    def _find_resumable(self) -> int | None:
        """The number of bytes that an interrupted copy has on the disk; None: there is no copy to
        resume."""
        noted = self._state.read()
        with suppress(FileNotFoundError):
            if {**noted, "done": 0} == self._make_note(0):
                return int(noted["done"])
        return None

    def _new_copy(self) -> Stripes:
        self._places.copy.unlink(missing_ok=True)
        stripes = self._create(self._places.copy, self._wanted)
        self._state.write(self._make_note(0))
        return stripes

    def _fill(self, target: int, done: int) -> None:
        whole = self._guard.facts.st_size
        os.ftruncate(target, whole)
        system = filesystems.of_kind(stripes_of(self._places.file).kind)
        with Copier(
            self._source, target, self._threads, look_for_zeros=system.keeps_zeros
        ) as copier:
            while done < whole:
                end = min(done + self._leg, whole)
                copier.copy(done, end, lambda moved: self._report_progress(moved, whole))
                os.fdatasync(target)
                self._state.write(self._make_note(end))
                done = end

    def _report_progress(self, done: int, whole: int) -> None:
        self._guard.check()
        self._show(done, whole)

    def _replace(self) -> None:
        """Rename the copy over the file; revert that if the old file was changed meanwhile."""
        places = self._places
        os.link(places.file, places.old)
        places.copy.rename(places.file)
        try:
            self._guard.check(renamed=True)
        except ParioError:
            places.old.rename(places.file)
            raise
        places.old.unlink()
        with suppress(OSError):
            sync_directory(places.file.parent)


def _copy_metadata(path: Path, source: int, target: int, facts: os.stat_result) -> None:
    """Copies owner, mode, attributes and times, then syncs the target with its bytes."""
    if (os.fstat(target).st_uid, os.fstat(target).st_gid) != (facts.st_uid, facts.st_gid):
        os.fchown(target, facts.st_uid, facts.st_gid)
    os.fchmod(target, stat.S_IMODE(facts.st_mode))
    for name in _attributes(source):
        if name.startswith(_PLACES):
            continue
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            if not name.startswith(_SYSTEM):
                raise ParioError(
                    f"{path}: attribute {name} cannot be copied to the new file: {error.strerror}"
                ) from error
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    os.fsync(target)


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
