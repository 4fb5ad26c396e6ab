"""Checkpoints in object stores. A checkpoint is made as a file in a directory of the node, and
uploaded when it is complete; to be loaded, it is copied to each node.

The object ``URL/MANIFEST`` lists the complete checkpoints. An object that it does not list counts
for nothing, so that an interrupted upload leaves the earlier checkpoints as they are.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

from pario import objects
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.header import Header, read_header
from pario.checkpoint.lock import DirectoryLock
from pario.checkpoint.manifest import MANIFEST, Manifest, decode_manifest, encode_manifest
from pario.checkpoint.retention import Keep
from pario.checkpoint.store import Found, Select, Store, step_of
from pario.errors import name_errors
from pario.paths import is_url
from pario.publishing import remove
from pario.ranks import Ranks, node_name

#: The file that shows whether ranks see the same directory.
_MARK = "writer"
#: The beginning of the names of directories with copies, and the file with their node.
_COPIES, _NODE = "pario-checkpoint-", "node"


def stage_of(url: str, stage: str | os.PathLike[str] | None) -> Path:
    """The directory in which the checkpoints of a URL are made."""
    key = hashlib.blake2b(url.rstrip("/").encode(), digest_size=6).hexdigest()
    name = url.rstrip("/").rpartition("/")[2]
    return Path(stage or gettempdir()) / f"pario-{os.geteuid()}-{name}-{key}"


def check_options(url: str, files: int | str, keep: int | Keep | None) -> None:
    """Raises CheckpointError for parameters of a Writer that stores do not support."""
    if files != 1:
        raise CheckpointError(f"{url}: files={files!r}; expected files=1 in an object store")
    if isinstance(keep, Keep) and keep.best:
        raise CheckpointError(f"{url}: best={keep.best}; expected last and every in a store")


def read_manifest(url: str) -> Manifest:
    """The manifest of a URL; an empty one if there is none. Raises CheckpointError."""
    with name_errors(url, CheckpointError):
        try:
            return _decode(url, objects.read(f"{url}/{MANIFEST}"))
        except FileNotFoundError:
            return Manifest()


def _decode(url: str, content: bytes) -> Manifest:
    try:
        return decode_manifest(content)
    except ValueError as error:
        raise CheckpointError(f"{url}/{MANIFEST}: {error}") from error


def list_found(manifest: Manifest) -> list[Found]:
    """The checkpoints of a manifest, oldest first; their paths are names of objects."""
    found = [
        Found(step_of(one.name), Path(one.name), one.generation, one.save)
        for one in manifest.listed
    ]
    return sorted(found, key=lambda one: one.key)


class RemoteStore(Store):
    """The checkpoints of a URL, of which unfinished ones are in ``stage``, a local directory."""

    def __init__(self, url: str, stage: Path) -> None:
        super().__init__(stage, has_manifest=False, durable=False)
        self.url = url.rstrip("/")
        self._known: Manifest | None = None
        #: The manifest that was written last, maybe without success.
        self._written: Manifest | None = None
        self._is_claimed = False

    @property
    def _listed(self) -> Manifest:
        if self._known is None:
            self._known = read_manifest(self.url)
        return self._known

    def claim(self, *, torn: bool = True) -> None:
        """As :meth:`Store.claim`, for the stage. Reads the manifest."""
        with name_errors(self.directory, CheckpointError):
            self.directory.mkdir(parents=True, exist_ok=True)
            is_own = self.directory.stat().st_uid == os.geteuid()
        if self.directory.is_symlink() or not is_own:
            raise CheckpointError(
                f"{self.directory} belongs to another user; expected stage= with a directory where"
                " no other one writes"
            )
        super().claim(torn=torn)
        self._is_claimed = True
        try:
            self._known = read_manifest(self.url)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Unlocks the stage, and removes it if it is empty."""
        if self._is_claimed:
            self._is_claimed = False
            with suppress(OSError):
                (self.directory / _MARK).unlink(missing_ok=True)
                self.directory.rmdir()
        super().release()

    def mark(self) -> str:
        """Writes a file by which other ranks recognise the stage; returns its content."""
        mark = secrets.token_hex(8)
        with name_errors(self.directory, CheckpointError):
            (self.directory / _MARK).write_text(mark)
        return mark

    def require_mark(self, mark: str) -> None:
        """Raises CheckpointError if this rank does not see the stage of rank 0."""
        found = ""
        with suppress(OSError):
            found = (self.directory / _MARK).read_text()
        if found != mark:
            raise CheckpointError(
                f"{self.directory} is another directory than that of rank 0; expected stage= with a"
                " directory that all ranks see"
            )

    @property
    def last_published(self) -> int:
        """The highest published generation, according to the manifest."""
        return self._listed.last

    def complete(self) -> list[Found]:
        """The complete checkpoints, oldest first."""
        return list_found(self._listed)

    def publish(self, step: int, select_removable: Select = lambda _: ()) -> Path:
        """Uploads a written checkpoint, lists it, and removes those selected. Returns its name."""
        name, new = self.path(step).name, self._new_entry(step)
        removed: list[Found] = []

        def list_new(content: bytes | None) -> bytes:
            before = Manifest() if content is None else _decode(self.url, content)
            self._require_known(before)
            others = [one for one in list_found(before) if one.step != step]
            ordered = sorted([*others, new], key=lambda one: one.key)
            removed[:] = [one for one in select_removable(ordered) if one is not new]
            rows = [
                (replace(one, path=Path(name)) if one is new else one).listed
                for one in ordered
                if one not in removed
            ]
            self._written = Manifest(max(before.last, new.generation), tuple(rows))
            return encode_manifest(self._written)

        with name_errors(self.url, CheckpointError):
            self._require_known(read_manifest(self.url))
            objects.upload(new.path, f"{self.url}/{name}")
            self._update_manifest(list_new)
        self._remove(removed)
        remove(new.path)
        return Path(name)

    def _update_manifest(self, change: Callable[[bytes | None], bytes]) -> None:
        """Replaces the manifest. Raises CheckpointError if another Writer does meanwhile."""
        try:
            objects.update(f"{self.url}/{MANIFEST}", change)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            # A repeated request meets its own manifest if the first answer was lost.
            if read_manifest(self.url) != self._written:
                raise self._error_of_another() from error
        self._known = self._written

    def _require_known(self, found: Manifest) -> None:
        """Raises CheckpointError if another Writer has written a manifest that was found."""
        if found not in (self._listed, self._written):
            raise self._error_of_another()
        self._known = found

    def _error_of_another(self) -> CheckpointError:
        return CheckpointError(
            f"{self.url}: another Writer has saved checkpoints there meanwhile; expected one at a"
            " time"
        )

    def _remove(self, removed: Sequence[Found]) -> None:
        """Removes objects that are listed no more; an error is a warning."""
        for one in removed:
            try:
                objects.remove(f"{self.url}/{one.path.name}")
            except OSError as error:
                warnings.warn(f"{error.filename}: {error.strerror}; the object stays", stacklevel=2)


def open_store(
    path: str | os.PathLike[str],
    stage: str | os.PathLike[str] | None = None,
    *,
    in_parts: bool = False,
    durable: bool = True,
) -> Store:
    """The checkpoints of a local directory, or of a URL."""
    if is_url(path):
        return RemoteStore(os.fspath(path), stage_of(os.fspath(path), stage))
    return Store(path, in_parts=in_parts, durable=durable)


class Copies:
    """Copies of the checkpoints of a URL, or of one object, in a directory of each node. They are
    removed with this object."""

    def __init__(self, url: str) -> None:
        base, _, name = url.rstrip("/").rpartition("/")
        is_object = name.endswith(".h5")
        self._url, self._name = (base, name) if is_object else (f"{base}/{name}", "")
        self._end: weakref.finalize[[Path, DirectoryLock, int], Copies] | None = None

    def find(self, step: int | None, *, verify: bool) -> tuple[Header, list[str]]:
        """Copies the newest checkpoint that can be read. Returns its header, and messages about
        newer, damaged ones. Raises CheckpointError for an error of the store or of the node: an
        older checkpoint must not take the place of the newest one then."""
        with name_errors(self._url, CheckpointError):
            return self._find(step, verify=verify)

    def _find(self, step: int | None, *, verify: bool) -> tuple[Header, list[str]]:
        directory = Path(gettempdir()) / f"{_COPIES}{secrets.token_hex(8)}"
        while True:
            skipped: list[str] = []
            names = self._names(step)
            for name in names:
                path = directory / name
                try:
                    self._copy(path)
                    header = read_header(path, verify=verify)
                    return replace(header, url=f"{self._url}/{name}"), skipped
                except CheckpointError as error:
                    text = str(error).replace(str(path), f"{self._url}/{name}")
                    skipped.append(f"{text}; it is skipped")
                    path.unlink(missing_ok=True)
                if self._names(step) != names:
                    break  # a Writer has published a newer one, and removed this one
            else:
                raise self._error_of_none(step, skipped)

    def _error_of_none(self, step: int | None, skipped: Sequence[str]) -> CheckpointError:
        which = "" if step is None else f" of step {step}"
        reasons = "; ".join([f"no complete checkpoint{which}", *skipped])
        return CheckpointError(f"{self._url}: {reasons}")

    def _names(self, step: int | None) -> list[str]:
        """The names of the objects to try, the newest first."""
        if self._name:
            return [self._name]
        found = list_found(read_manifest(self._url))
        return [one.path.name for one in reversed(found) if step in (None, one.step)]

    def copy_to_nodes(self, ranks: Ranks, header: Header) -> None:
        """Copies the checkpoint to the other nodes, as rank 0 has it. Collective."""
        what, path = f"checkpoint.load({self._url})", Path(header.path)
        is_needed = ranks.deal(what, lambda: ranks.node, _select_first)

        def copy() -> None:
            with name_errors(self._url, CheckpointError):
                self._copy(path)

        ranks.agree(what, copy if is_needed else lambda: None)

    def _copy(self, path: Path) -> None:
        """Copies an object, unless this node shares the directory with another one. Raises
        CheckpointError if it is not there or changes, otherwise OSError."""
        if self._end is None:
            self._make(path.parent)
        if self._end is not None:
            try:
                objects.download(f"{self._url}/{path.name}", path)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
                raise CheckpointError(f"{error.filename}: {error.strerror}") from error

    def _make(self, directory: Path) -> None:
        """Makes the directory, locked while this object exists, unless it exists."""
        lock, aside = DirectoryLock(), directory.with_name(f".{directory.name}")
        if directory.exists():
            return
        aside.mkdir(0o700)
        (aside / _NODE).write_text(node_name())
        lock.take(aside)
        aside.rename(directory)
        self._end = weakref.finalize(self, _remove_copies, directory, lock, os.getpid())
        _remove_stale(directory)


def _select_first(nodes: Sequence[int]) -> list[bool]:
    """True for the first rank of each node but rank 0's. ``nodes``: the node of each rank."""
    return [rank > 0 and nodes.index(node) == rank for rank, node in enumerate(nodes)]


def _remove_copies(directory: Path, lock: DirectoryLock, process: int) -> None:
    """Removes a directory of copies, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)
        lock.drop()


def _remove_stale(own: Path) -> None:
    """Removes the copies that killed processes of this node have left."""
    if not _is_locked(own):
        return  # a file system without locks
    for directory in own.parent.glob(f"{_COPIES}*"):
        with suppress(OSError):
            is_here = (directory / _NODE).read_text() == node_name()
            if is_here and not _is_locked(directory):
                shutil.rmtree(directory, ignore_errors=True)


def _is_locked(directory: Path) -> bool:
    lock = DirectoryLock()
    try:
        lock.take(directory)
    except BlockingIOError:
        return True
    finally:
        lock.drop()
    return False
