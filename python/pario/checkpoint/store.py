"""A directory of checkpoints, each of which is there as a whole or not at all. One process changes it; all may read.

A checkpoint is a file, or a directory with parts and the master that shows them as one. It is
complete when it has its final name. Its generation, from its identity record or from the
manifest, tells its order among the others; no clock does.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pario import interrupts
from pario.checkpoint import manifest
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity, read_identity, read_record
from pario.checkpoint.manifest import Listed, Manifest
from pario.paths import local_path
from pario.publishing import remove

_NAME = re.compile(r"step-(\d+)((?:\.h5|\.old)?(?:\.part|\.gone)?)")
#: Directories that the next one of the same step is about to replace; what is being removed.
_OLD, _GONE = ".old", ".gone"
#: Of those that are being written.
_PARTS = (".part", ".h5.part")
LATEST = "latest"
#: Errors of file systems that cannot flush directories.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF, errno.EPERM)
#: The file of a checkpoint in parts that HDF5 programs open.
MASTER = "master.h5"


@dataclass(frozen=True)
class Found:
    """A checkpoint in a directory, complete or not."""

    step: int
    path: Path
    generation: int  # 0: unknown, older than all others
    save: str  # empty in files of format version 1 and of other programs

    @property
    def key(self) -> tuple[int, int]:
        """The order of checkpoints, oldest first."""
        return self.generation, self.step

    @property
    def modified(self) -> int:
        """Nanoseconds, for people: nothing depends on it."""
        try:
            return document(self.path).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

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
    """The checkpoints of a directory. ``in_parts``: the form of those that are saved.

    ``has_manifest``: False for a stage, whose files may be incomplete on this node.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        in_parts: bool = False,
        has_manifest: bool = True,
    ) -> None:
        self.directory = local_path(directory, CheckpointError)
        self.in_parts, self.has_manifest = in_parts, has_manifest
        self._last = 0
        self._identities: dict[tuple[str, int, int], Identity | None] = {}
        #: Files with damaged records, and what is wrong.
        self.damaged: dict[Path, str] = {}
        self._lock = -1
        self._removing: threading.Thread | None = None

    def of_form(self, in_parts: bool) -> Store:
        """The same directory, where what is saved has this form."""
        if in_parts == self.in_parts:
            return self
        return Store(self.directory, in_parts=in_parts, has_manifest=self.has_manifest)

    def claim(self, *, torn: bool = True) -> None:
        """Makes the directory, for this process alone to write, and removes what one that was killed has left. ``torn``: also what it was
        writing; who writes nothing leaves that alone, where there may be no locks.
        """
        try:
            _make_directory(self.directory)
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
            remove(self._manifest_aside)
        except BaseException:
            self.release()
            raise

    def next_identity(self, step: int) -> Identity:
        """The identity of a save that begins: its generation is higher than all before it."""
        known = (found.generation for found in self._found((".h5", "", _OLD)))
        self._last = max(self._last, self.last_published, *known) + 1
        return Identity(self._last, step, secrets.token_hex(16))

    @property
    def last_published(self) -> int:
        """The highest generation that was published here, as far as the manifest is there."""
        return self.read_manifest()[0].last

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
        found = self._found((".h5", "", _OLD))
        return [one for one in found if (one.path if one.path.suffix == ".h5" else one.path / MASTER).is_file()]

    def torn(self) -> list[Found]:
        """Those that are being written, or were when the program was killed."""
        return self._found(_PARTS)

    def missing(self) -> list[Listed]:
        """Checkpoints that the manifest lists, that are not there, newer than all that are."""
        listed = self.read_manifest()[0].listed  # first: others may be published meanwhile
        newest = max((found.generation for found in self.complete()), default=0)
        absent = [one for one in listed if not (self.directory / one.name).exists()]
        return [one for one in absent if one.generation > newest]

    def read_manifest(self) -> tuple[Manifest, str]:
        """The manifest, and why it cannot be used: then it is empty."""
        path = self.directory / manifest.NAME
        try:
            return manifest.decode(path.read_bytes()), ""
        except (FileNotFoundError, NotADirectoryError):
            return Manifest(), ""
        except OSError as error:
            return Manifest(), f"{path}: {error.strerror}"
        except ValueError as error:
            return Manifest(), f"{path}: {error}"

    def write_manifest(self) -> None:
        """Lists the checkpoints that are there, after some were removed."""
        self._prepare_manifest(self.complete()).replace(self.directory / manifest.NAME)
        sync(self.directory)

    @property
    def _manifest_aside(self) -> Path:
        return self.directory / f".{manifest.NAME}.part"

    def _prepare_manifest(self, found: Sequence[Found]) -> Path:
        """Writes a manifest of these beside the one that is there; on the disk then."""
        last = max([self.last_published, *(one.generation for one in found)])
        listed = tuple(Listed(one.generation, one.path.name, one.save) for one in found)
        try:
            with self._manifest_aside.open("wb") as file:
                file.write(manifest.encode(Manifest(last, listed)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._manifest_aside.unlink(missing_ok=True)
            raise CheckpointError(f"{self._manifest_aside}: {error.strerror}") from error
        return self._manifest_aside

    def _found(self, endings: tuple[str, ...]) -> list[Found]:
        found = []
        listed = self.read_manifest()[0] if self.has_manifest else Manifest()
        for path in self._paths():
            match = _NAME.fullmatch(path.name)
            if match and match[2] in endings:
                identity = self._identity(document(path))
                generation = identity.generation if identity else listed.generation_of(path.name)
                save = identity.save if identity else ""
                found.append(Found(int(match[1]), path, generation, save))
        return sorted(found, key=lambda one: one.key)

    def _identity(self, path: Path) -> Identity | None:
        """The record of a file, read once: files of checkpoints are replaced, not changed."""
        try:
            facts = path.stat()
        except OSError:
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        key = (str(path), facts.st_ino, facts.st_mtime_ns)
        if key not in self._identities:
            try:
                self._identities[key] = read_record(path)
            except ValueError as error:
                self._identities[key] = None
                self.damaged[path] = str(error)
        return self._identities[key]

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

    def publish(self, step: int, keep: int | None = None) -> Path:
        """Gives its name to a checkpoint that is written and on the disk.

        It takes the place of another one of this step. ``keep``: older ones than so many of the
        newest are removed, this one never. Raises CheckpointError or OSError, before any change.
        """
        path, part = self.path(step), self.part(step)
        if self.in_parts:
            sync(part)
        found = self.complete()
        others = [one for one in found if one.step != step]
        kept = _newest([*others, self._about_to_be(step)], keep)
        gone = [one.path for one in found if one.path != path and one not in kept]
        aside = self._prepare_manifest(kept) if self.has_manifest else None
        if path.is_dir():  # which takes the place of no other
            old = path.with_name(path.name + _OLD)
            remove(old)
            path.replace(old)
            gone = [*(one for one in gone if one != old), old]
        part.replace(path)
        if aside is not None:
            aside.replace(self.directory / manifest.NAME)
        sync(self.directory)
        self._remove(gone)
        self._link(kept[-1].path)
        return path

    def _about_to_be(self, step: int) -> Found:
        """The checkpoint that is to be published, by its final name."""
        identity = read_identity(self.container(step))
        generation, save = (identity.generation, identity.save) if identity else (0, "")
        return Found(step, self.path(step), generation, save)

    def _link(self, newest: Path) -> None:
        with suppress(OSError):  # a file system without symbolic links
            link = self.directory / f".{LATEST}"
            link.unlink(missing_ok=True)
            link.symlink_to(document(newest).relative_to(self.directory))
            link.replace(self.directory / LATEST)

    def prune(self, keep: int, counts: Callable[[Path], bool] = lambda _: True) -> list[Path]:
        """Removes all that are older than the newest ``keep`` of those that count."""
        found = self.complete()
        kept = [number for number, one in enumerate(found) if counts(one.path)][-keep:]
        old = [one.path for one in found[: kept[0]]] if len(kept) == keep else []
        self._remove(old)
        if old:
            self.write_manifest()
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


def _newest(found: Sequence[Found], keep: int | None) -> list[Found]:
    """Which of these stay, oldest first. The last one given always does."""
    ordered = sorted(found, key=lambda one: one.key)
    return [one for one in ordered if keep is None or one in ordered[-keep:] or one is found[-1]]


def _make_directory(path: Path) -> None:
    """Makes a directory and those above it, whose names are on the disk then."""
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Flushes the names in a directory to the disk, where the file system can."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # it can be searched, but not read
        return
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(directory)
