"""A directory of checkpoints: names, generations, publication and removal.

A checkpoint is a file, or a directory with parts and a master file that presents them as one. It is
complete when it has its final name, and is published or removed as a whole. Its generation, from
its identity record or from the manifest, orders it among the others; clocks do not matter. One
process changes a directory at a time; all processes may read.

All ranks write into one unfinished checkpoint, which the lock of the directory protects.
:mod:`pario.publishing` is for files that one process writes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity, read_record
from pario.checkpoint.lock import DirectoryLock
from pario.checkpoint.manifest import Listed, Manifest, ManifestFile
from pario.checkpoint.removal import GONE, Removal, gone_path
from pario.paths import local_path
from pario.publishing import remove, sync_directory

_NAME = re.compile(r"step-(\d+)((?:\.h5|\.old)?(?:\.part|\.gone)?)")
#: The ending of a directory about to be replaced by a newer save of its step.
_OLD = ".old"
#: Endings of unfinished checkpoints.
_PARTS = (".part", ".h5.part")
LATEST = "latest"
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
        """Sort key; oldest first."""
        return self.generation, self.step

    @property
    def listed(self) -> Listed:
        """Its row in the manifest."""
        return Listed(self.generation, self.path.name, self.save)

    @property
    def modified(self) -> int:
        """Time of modification in nanoseconds, for display only."""
        try:
            return document(self.path).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    @property
    def size(self) -> int:
        """Bytes of all its files; files that disappear meanwhile count nothing."""
        total = 0
        with suppress(FileNotFoundError):
            for path in self.path.iterdir() if self.path.is_dir() else [self.path]:
                total += path.stat().st_size
        return total


#: Selects the checkpoints to be removed of complete ones, which are given oldest first.
Select = Callable[[Sequence[Found]], Sequence[Found]]


def step_of(name: str) -> int:
    """The step of a checkpoint in one file, by its name. Raises CheckpointError."""
    match = _NAME.fullmatch(name)
    if match is None or match[2] != ".h5":
        raise CheckpointError(f"checkpoint '{name}'; expected step-N.h5")
    return int(match[1])


def document(path: Path) -> Path:
    """The file of a checkpoint that HDF5 programs open. If the file system answers with an error,
    the checkpoint counts as one file, whose opening then fails."""
    return path / MASTER if ask_path(path.is_dir, otherwise=False) else path


def ask_path(question: Callable[[], bool], *, otherwise: bool) -> bool:
    """The answer to a question about a path, or another one if the file system answers with an
    error."""
    with suppress(OSError):
        return question()
    return otherwise


class Store:
    """The checkpoints of a directory. ``in_parts``: the form of new checkpoints.

    ``has_manifest``: False for a stage, whose files may be incomplete on this node. ``durable``:
    names and manifests are flushed to the disk.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        in_parts: bool = False,
        has_manifest: bool = True,
        durable: bool = True,
    ) -> None:
        self.directory = local_path(directory, CheckpointError)
        self.in_parts, self.has_manifest, self.durable = in_parts, has_manifest, durable
        self.manifest = ManifestFile(self.directory, durable=durable)
        self._last = 0
        self._identities: dict[tuple[str, int, int], Identity | None] = {}
        #: Files with damaged records, and the damage.
        self.damaged: dict[Path, str] = {}
        self._lock, self._removal = DirectoryLock(), Removal()

    def of_form(self, in_parts: bool) -> Store:
        """The same directory, for new checkpoints of this form."""
        if in_parts == self.in_parts:
            return self
        return Store(
            self.directory,
            in_parts=in_parts,
            has_manifest=self.has_manifest,
            durable=self.durable,
        )

    def claim(self, *, torn: bool = True) -> None:
        """Makes the directory, locks it for this process, and removes leftovers of killed ones.

        ``torn``: also removes unfinished checkpoints. A process that saves nothing leaves them,
        because another one may be writing them where the file system has no locks.
        """
        try:
            _make_directory(self.directory)
            self._lock.take(self.directory)
        except BlockingIOError as error:
            self.release()
            raise CheckpointError(
                f"{self.directory}: another Writer is writing checkpoints there; wait until it is"
                " closed (of dcp.async_save: until its future has a result)"
            ) from error
        except OSError as error:
            self.release()
            raise CheckpointError(
                f"{self.directory}: {error.strerror}; expected a directory for checkpoints"
            ) from error
        try:
            unfinished = _PARTS if torn else ()
            for found in self._find((*unfinished, GONE, ".h5" + GONE, _OLD + GONE)):
                remove(found.path)
            self.manifest.remove_unpublished()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError):
                path = error.filename or self.directory
                raise CheckpointError(f"{path}: {error.strerror}") from error
            raise

    def next_identity(self, step: int) -> Identity:
        """The identity of a new save, with a higher generation than all before it."""
        known = (found.generation for found in self._find((".h5", "", _OLD)))
        self._last = max(self._last, self.last_published, *known) + 1
        return Identity(self._last, step, secrets.token_hex(16))

    def next_step(self) -> int:
        """One more than the highest step of a complete checkpoint."""
        return max((found.step for found in self.complete()), default=-1) + 1

    @property
    def last_published(self) -> int:
        """The highest published generation, according to the manifest."""
        return self.manifest.read()[0].last

    def await_removal(self) -> None:
        """Waits until removed files occupy no space any more."""
        self._removal.wait()

    def release(self) -> None:
        """Waits for removals and unlocks the directory."""
        self.await_removal()
        self._lock.drop()

    def complete(self) -> list[Found]:
        """The complete checkpoints, oldest first, and those that cannot be looked at."""
        found = self._find((".h5", "", _OLD))
        return [
            one
            for one in found
            if ask_path(
                (one.path if one.path.suffix == ".h5" else one.path / MASTER).is_file,
                otherwise=True,
            )
        ]

    def list_unfinished(self) -> list[Found]:
        """Unfinished checkpoints: being written, or left by a killed program."""
        return self._find(_PARTS)

    def missing(self) -> list[Listed]:
        """Listed checkpoints that do not exist and are newer than all existing ones."""
        listed = self.manifest.read()[0].listed  # first: others may be published meanwhile
        absent = [
            one
            for one in listed
            if not ask_path((self.directory / one.name).exists, otherwise=True)
        ]
        if not absent:
            return []
        newest = max((found.generation for found in self.complete()), default=0)
        return [one for one in absent if one.generation > newest]

    def _find(self, endings: tuple[str, ...]) -> list[Found]:
        found = []
        listed = self.manifest.read()[0] if self.has_manifest else Manifest()
        for path in self._paths():
            match = _NAME.fullmatch(path.name)
            if match and match[2] in endings:
                identity = self._identity(document(path))
                generation = identity.generation if identity else listed.generation_of(path.name)
                save = identity.save if identity else ""
                found.append(Found(int(match[1]), path, generation, save))
        return sorted(found, key=lambda one: one.key)

    def _identity(self, path: Path, published: Path | None = None) -> Identity | None:
        """The record of a file, read once: files of checkpoints are replaced, not changed.

        ``published``: the path by which a finished file will be found.
        """
        try:
            facts = path.stat()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.damaged[path] = f"its identity record cannot be read: {error.strerror}"
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        key = (str(published or path), facts.st_ino, facts.st_mtime_ns)
        if key not in self._identities:
            try:
                self._identities[key] = read_record(path)
            except ValueError as error:
                self._identities[key] = None
                self.damaged[path] = str(error)
        return self._identities[key]

    def _paths(self) -> list[Path]:
        """The entries of the directory; empty if there is no directory."""
        try:
            return list(self.directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CheckpointError(f"{self.directory}: {error.strerror}") from error

    def path(self, step: int) -> Path:
        """The final path of a step."""
        return self.directory / f"step-{step:08d}{'' if self.in_parts else '.h5'}"

    def part(self, step: int) -> Path:
        """The path of a step while it is written."""
        path = self.path(step)
        return path.with_name(path.name + ".part")

    def container(self, step: int) -> Path:
        """The file for HDF5 programs, while it is written."""
        return self.part(step) / MASTER if self.in_parts else self.part(step)

    def file(self, path: Path, name: str) -> Path:
        """A file of the checkpoint at ``path``, by its name in extents."""
        return path / name if self.in_parts else path

    def clear_link(self, step: int) -> None:
        """Removes a symbolic link at the unfinished path, through which it would be written."""
        if self.part(step).is_symlink():
            remove(self.part(step))

    def begin(self, step: int) -> None:
        """Makes the directory of an unfinished checkpoint in parts."""
        if self.in_parts:
            self.part(step).mkdir(exist_ok=True)

    def discard(self, step: int) -> None:
        """Removes an unfinished checkpoint."""
        with suppress(OSError):
            remove(self.part(step))

    def drop(self, step: int) -> None:
        """Removes the complete checkpoints of a step, each in one step."""
        self.await_removal()
        for found in [one for one in self.complete() if one.step == step]:
            gone = gone_path(found.path)
            remove(gone)
            found.path.replace(gone)
            remove(gone)

    def publish(self, step: int, select_removable: Select = lambda _: ()) -> Path:
        """Renames a written and flushed checkpoint to its final name. Returns that.

        It replaces another checkpoint of this step. ``select_removable`` gets the complete
        checkpoints, oldest first, with the new one at its present path; those that it returns are
        removed, never the new one. Raises CheckpointError or OSError before any change.
        """
        path, part = self.path(step), self.part(step)
        if self.in_parts:
            self._sync(part)
        found = self.complete()
        new = self._new_entry(step)
        ordered = sorted(
            [*(one for one in found if one.step != step), new], key=lambda one: one.key
        )
        removed = [one for one in select_removable(ordered) if one is not new]
        kept = [one for one in ordered if one not in removed]
        newest = kept[-1]
        gone = [one.path for one in found if one.path != path and one not in kept]
        published = [(replace(one, path=path) if one is new else one).listed for one in kept]
        with self.manifest.replacing(published) if self.has_manifest else nullcontext():
            if path.is_dir():  # a rename replaces files only
                old = path.with_name(path.name + _OLD)
                remove(old)
                path.replace(old)
                gone = [*(one for one in gone if one != old), old]
            else:
                gone += self._link_replaced(path)
            part.replace(path)
        self._sync(self.directory)
        self._removal.start(gone)
        self._link(path if newest is new else newest.path)
        return path

    def _link_replaced(self, path: Path) -> list[Path]:
        """Gives a file that a rename replaces a second name, by which :class:`Removal` deletes it:
        the rename would take as long as the deletion (130 ms for 256 MB on ext4)."""
        gone = gone_path(path)
        self.await_removal()
        with suppress(OSError):  # there is no such file, or no links
            remove(gone)
            gone.hardlink_to(path)
            return [gone]
        return []

    def _sync(self, path: Path) -> None:
        """Flushes the names in a directory if the store is durable."""
        if self.durable:
            sync_directory(path)

    def _new_entry(self, step: int) -> Found:
        """The checkpoint to be published, at its present path."""
        identity = self._identity(self.container(step), self.file(self.path(step), MASTER))
        generation, save = (identity.generation, identity.save) if identity else (0, "")
        return Found(step, self.part(step), generation, save)

    def _link(self, newest: Path) -> None:
        with suppress(OSError):  # a file system without symbolic links
            link = self.directory / f".{LATEST}"
            link.unlink(missing_ok=True)
            link.symlink_to(document(newest).relative_to(self.directory))
            link.replace(self.directory / LATEST)

    def prune(self, select_removable: Select) -> list[Path]:
        """Removes the checkpoints selected of the complete ones; returns their paths."""
        removed = [one.path for one in select_removable(self.complete())]
        self._removal.start(removed)
        if removed:
            with self.manifest.replacing([one.listed for one in self.complete()]):
                pass
            self._sync(self.directory)
        return removed


def _make_directory(path: Path) -> None:
    """Makes a directory and its parents, and flushes their names."""
    if not path.is_dir():
        _make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)
