"""A directory of checkpoints, each of which is there as a whole or not at all. One process changes it; all may read.

A checkpoint is a file, or a directory with parts and the master that tells of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pario import interrupts
from pario.checkpoint.errors import CheckpointError
from pario.paths import local_path
from pario.publishing import remove

_NAME = re.compile(r"step-(\d+)((?:\.h5|\.old)?(?:\.part|\.gone)?)")
#: Directories that the next one of the same step is about to replace; what is being removed.
_OLD, _GONE = ".old", ".gone"
#: Of those that are being written.
_PARTS = (".part", ".h5.part")
LATEST = "latest"
#: The file of a checkpoint in parts that HDF5 programs open.
MASTER = "master.h5"


@dataclass(frozen=True)
class Found:
    """A checkpoint in a directory."""

    step: int
    path: Path
    saved: int  # nanoseconds; the order in which they were saved

    @property
    def size(self) -> int:
        """Bytes of all its files; of those that go meanwhile nothing."""
        total = 0
        with suppress(FileNotFoundError):
            for path in self.path.iterdir() if self.path.is_dir() else [self.path]:
                total += path.stat().st_size
        return total


def document(path: Path) -> Path:
    """The file of a checkpoint that HDF5 programs open."""
    return path / MASTER if path.is_dir() else path


def _delete_all(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # the next Writer tries again
            remove(path)


class Store:
    """The checkpoints of a directory. ``in_parts``: the form of those that are saved."""

    def __init__(self, directory: str | os.PathLike[str], *, in_parts: bool = False) -> None:
        self.directory = local_path(directory, CheckpointError)
        self.in_parts = in_parts
        self._lock = -1
        self._removing: threading.Thread | None = None

    def of_form(self, in_parts: bool) -> Store:
        """The same directory, where what is saved has this form."""
        return self if in_parts == self.in_parts else Store(self.directory, in_parts=in_parts)

    def claim(self, *, torn: bool = True) -> None:
        """Makes the directory, for this process alone to write, and removes what one that was killed has left. ``torn``: also what it was
        writing; who writes nothing leaves that alone, where there may be no locks.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise CheckpointError(f"{self.directory}: {error.strerror}; expected a directory for checkpoints") from error
        _claimed.add(self)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise CheckpointError(f"{self.directory}: another Writer is writing checkpoints there") from error
        except OSError:
            pass  # a file system without locks
        try:
            for found in self._found((*(_PARTS if torn else ()), _GONE, ".h5" + _GONE, _OLD + _GONE)):
                remove(found.path)
        except BaseException:
            self.release()
            raise

    def settle(self) -> None:
        """Waits until what was removed takes no room any more."""
        if self._removing is not None:
            interrupts.join(self._removing)

    def release(self) -> None:
        """Others may write there."""
        self.settle()
        self.drop_lock()

    def drop_lock(self) -> None:
        """Closes this process's descriptor of the lock, if it has one."""
        _claimed.discard(self)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def complete(self) -> list[Found]:
        """Those that were saved, the newest last."""
        return [one for one in self._found((".h5", "", _OLD)) if (one.path if one.path.suffix == ".h5" else one.path / MASTER).is_file()]

    def torn(self) -> list[Found]:
        """Those that are being written, or were when the program was killed."""
        return self._found(_PARTS)

    def _found(self, endings: tuple[str, ...]) -> list[Found]:
        found = []
        for path in self._paths():
            match = _NAME.fullmatch(path.name)
            if match and match[2] in endings:
                with suppress(FileNotFoundError):
                    found.append(Found(int(match[1]), path, _saved(path)))
        return sorted(found, key=lambda one: (one.saved, one.step))

    def _paths(self) -> list[Path]:
        """None where there is no such directory."""
        try:
            return list(self.directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CheckpointError(f"{self.directory}: {error.strerror}") from error

    def path(self, step: int) -> Path:
        """That of a step."""
        return self.directory / f"step-{step:08d}{'' if self.in_parts else '.h5'}"

    def part(self, step: int) -> Path:
        """That of a step while it is written."""
        path = self.path(step)
        return path.with_name(path.name + ".part")

    def container(self, step: int) -> Path:
        """The file that HDF5 programs will open, while it is written."""
        return self.part(step) / MASTER if self.in_parts else self.part(step)

    def file(self, path: Path, name: str) -> Path:
        """One of the files of a checkpoint at a path, as extents name them."""
        return path / name if self.in_parts else path

    def clear_link(self, step: int) -> None:
        """Removes a link in the place of what is written of a step: others would be written through it."""
        if self.part(step).is_symlink():
            remove(self.part(step))

    def begin(self, step: int) -> None:
        """Makes room for what is written of a step."""
        if self.in_parts:
            self.part(step).mkdir(exist_ok=True)

    def discard(self, step: int) -> None:
        """What was written of a step, and will not be finished, goes."""
        with suppress(OSError):
            remove(self.part(step))

    def drop(self, step: int) -> None:
        """What was saved of a step goes at once, as a whole."""
        self.settle()
        for found in [one for one in self.complete() if one.step == step]:
            gone = found.path.with_name(found.path.name + _GONE)
            remove(gone)
            found.path.replace(gone)
            remove(gone)

    def publish(self, step: int) -> Path:
        """What is written, and on the disk, gets its name, and takes the place of what was saved of this step before."""
        path = self.path(step)
        if self.in_parts:
            sync(self.part(step))
        if path.is_dir():  # which takes the place of no other
            old = path.with_name(path.name + _OLD)
            remove(old)
            path.replace(old)
        self.part(step).replace(path)
        sync(self.directory)
        self._remove([found.path for found in self.complete() if found.step == step and found.path != path])
        self._link()
        return path

    def _link(self) -> None:
        with suppress(OSError):  # a file system without symbolic links
            link = self.directory / f".{LATEST}"
            link.unlink(missing_ok=True)
            link.symlink_to(document(self.complete()[-1].path).relative_to(self.directory))
            link.replace(self.directory / LATEST)

    def prune(self, keep: int, counts: Callable[[Path], bool] = lambda _: True) -> list[Path]:
        """Removes all that are older than the newest ``keep`` of those that count."""
        found = self.complete()
        kept = [number for number, one in enumerate(found) if counts(one.path)][-keep:]
        old = [one.path for one in found[: kept[0]]] if len(kept) == keep else []
        self._remove(old)
        return old

    def _remove(self, paths: list[Path]) -> None:
        """They lose their names now, and their bytes while the program goes on: large files take their time."""
        if not paths:
            return
        self.settle()
        gone = [path.with_name(path.name + _GONE) for path in paths]
        for path, leaving in zip(paths, gone, strict=True):
            remove(leaving)
            with suppress(FileNotFoundError):
                path.replace(leaving)
        removing = threading.Thread(target=_delete_all, args=(gone,), name="pario-checkpoint-remove")
        try:
            removing.start()
        except RuntimeError:  # Python is ending
            _delete_all(gone)
        else:
            self._removing = removing  # which other threads may wait for


#: Stores that this process has claimed. A forked child drops its copies of their locks: else they would stay when this one
#: has released them.
_claimed: set[Store] = set()


def _drop_inherited_locks() -> None:
    for store in list(_claimed):
        store.drop_lock()


os.register_at_fork(after_in_child=_drop_inherited_locks)


def _saved(path: Path) -> int:
    """When its bytes were complete."""
    container = path / MASTER
    try:
        return (container if container.is_file() else path).stat().st_mtime_ns
    except FileNotFoundError:  # a link to nothing is in the way of others
        return path.lstat().st_mtime_ns


def sync(path: Path) -> None:
    """Names in a directory are on the disk then, where the file system can."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(directory)
    finally:
        os.close(directory)
