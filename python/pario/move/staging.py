"""Staging: copies files to the disk of this node and brings new and changed files back.

A staged directory has a note (``.pario-stage.json``) with the origin of its trees and the state in
which each file was the same at both ends. From it follow the files to bring back, and those that
another process changed meanwhile, which are left alone. Copies are verified and published
(:mod:`pario.move.verified_copy`); so a transfer may be interrupted and repeated.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pario import locks
from pario.copying import compare
from pario.documents import Format
from pario.errors import ParioError
from pario.move.verified_copy import State, copy_verified, make_directory, state_of
from pario.paths import kind_of, local_path
from pario.progress import Show
from pario.publishing import (
    is_part,
    new_directory,
    part_path,
    remove_stale_part,
    sync_directory,
)

NOTE = ".pario-stage.json"
#: A file whose time is that of the file system's clock.
_PROBE = ".pario-clock"
_FORMAT = Format("pario-stage-1", "a note")
_THREADS = 4
_LARGE = 64 << 20  # such files are copied by several threads, one after the other
_NOTE_EVERY = 1000  # files
#: Resolutions of the times of file systems, in nanoseconds; Lustre has whole seconds.
_GRAINS = (100, 1000, 10**9)
_BEFORE_ALL = -1
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def _is_kept(state: State | None, found: State | None) -> bool:
    """True if ``found`` is this state, at the resolution of the other file system's times."""
    if state is None or found is None or state == found:
        return state == found
    return state[0] == found[0] and any(state[1] // grain * grain == found[1] for grain in _GRAINS)


def _alike(one: State | None, other: State | None) -> bool:
    """True if the states of both ends agree."""
    return _is_kept(one, other) or _is_kept(other, one)


def _same_bytes(one: Path, other: Path) -> bool:
    """Compares files or links; unreadable ones differ."""
    try:
        if one.is_symlink() or other.is_symlink():
            return one.readlink() == other.readlink()
        with one.open("rb", buffering=0) as first, other.open("rb", buffering=0) as second:
            return compare(first.fileno(), second.fileno(), 0, os.fstat(first.fileno()).st_size, 0)
    except (OSError, ParioError):
        return False


def _is_tree(root: Path) -> bool:
    """False for a file or link, which is staged alone, and for a missing path."""
    return root.is_dir() and not root.is_symlink()


@dataclass(frozen=True)
class Move:
    """A file, or a tree, to be copied."""

    name: str  # in the staged directory: "tree/of/file"
    source: Path
    target: Path

    def files(self, outcome: Outcome) -> Iterator[Move]:
        """The files of a tree. Adds the others to ``outcome``."""
        for name in _files_beneath(self.source, outcome):
            yield Move(str(Path(self.name) / name), self.source / name, self.target / name)

    def make_directories(self, outcome: Outcome) -> None:
        """Creates the directories of a tree that can be read, with the permissions of the source,
        and writable."""
        if state_of(self.source) and not _is_tree(self.source):
            return
        for directory, names, _ in os.walk(self.source):
            target = self.target / Path(directory).relative_to(self.source)
            if target.is_symlink() and target != self.target:
                names.clear()  # never copy through a link
                continue
            try:
                make_directory(Path(directory), target)
            except OSError as error:
                outcome.left.append(f"{target}: cannot be made: {error.strerror}")
                names.clear()


@dataclass
class Outcome:
    """The result of a transfer. ``left``: files that were not touched, and the reasons;
    ``special``: pipes, sockets and devices."""

    copied: int = 0
    size: int = 0
    same: int = 0
    left: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)


class Staged:
    """A staged directory. One process at a time copies into it or out of it (:func:`in_use`)."""

    def __init__(self, local: str | os.PathLike[str]) -> None:
        self.local = local_path(local)
        self.roots: dict[str, str] = {}  # origin of each tree, by its name
        # States of files at the moment at which both ends were the same.
        self.known: dict[str, State] = {}
        self.since = 0  # start of staging; a file with an older change time is unchanged
        self._made = False  # the directory did not exist before
        self._renamed: set[Path] = set()  # directories whose new names may not be on the disk yet

    @classmethod
    def open(cls, local: str | os.PathLike[str]) -> Staged:
        """Open an existing staged directory. Raises ParioError if it is not one."""
        self = cls(local)
        if _FORMAT.read(self.local / NOTE, self._take_fields) is None:
            raise ParioError(f"{local} is no staged directory: it has no {NOTE}")
        return self

    def _take_fields(self, fields: dict[str, Any]) -> Staged:
        self.roots, self.since = fields["roots"], fields["since"]
        self._made = bool(fields.get("made", True))  # earlier versions removed each directory
        self.known = {name: (size, modified) for name, (size, modified) in fields["known"].items()}
        return self

    @classmethod
    def make(cls, local: str | os.PathLike[str]) -> Staged:
        """Open a staged directory, or create it. Nothing is written into one that exists."""
        local = local_path(local)
        if not local.is_dir():
            with suppress(FileExistsError):  # another process has made it meanwhile
                cls._publish(local)
        if not local.is_dir() and local.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(local))
        staged = cls(local)
        # One reading: its last user may remove the note at any moment.
        return _FORMAT.read(local / NOTE, staged._take_fields) or staged

    @classmethod
    def _publish(cls, local: Path) -> None:
        """Create a directory that has its note from the first moment. Raises FileExistsError."""
        with new_directory(local, 0o700) as part:
            staged = cls(part)
            staged._made = True
            staged.write_note()

    def add(self, name: str, target: str | os.PathLike[str], read_only: bool = False) -> Path:
        """Adds a tree; returns its path on this node. Raises ParioError if the origin cannot be
        written, unless it is ``read_only``."""
        target = local_path(target)
        known = self.roots.get(name)
        if known not in (None, str(target)):
            raise ParioError(
                f"{self.local / name} belongs to {known}; stage {target} to another directory"
            )
        directory = target if target.is_dir() else target.parent
        if known:
            remove_stale_part(directory / _PROBE)
        else:
            self.roots[name] = str(target)
            self.since = self.since or _clock_of(directory, read_only)
            self.write_note()
        return self.local / name

    def write_note(self) -> None:
        """Publishes the note, durably."""
        fields = {
            "since": self.since,
            "roots": self.roots,
            "known": self.known,
            "made": self._made,
        }
        _FORMAT.write(self.local / NOTE, fields, indent=None, durable=True)

    def take_in(self, show: Show) -> Outcome:
        """Copies the files of the trees to this node, except those that were changed here."""
        return self._transfer(self._trees(inwards=True), self._may_come, show)

    def bring_back(self, show: Show) -> Outcome:
        """Copies new and changed files back, except those that another process changed there."""
        return self._transfer(self._trees(inwards=False), self._may_go, show)

    def _trees(self, inwards: bool) -> list[Move]:
        pairs = [Move(root, Path(target), self.local / root) for root, target in self.roots.items()]
        return pairs if inwards else [Move(pair.name, pair.target, pair.source) for pair in pairs]

    def _may_come(self, move: Move) -> str | None:
        """The reason to skip a file when staging in; empty if it is up to date, None to copy it."""
        here, there, known = state_of(move.target), state_of(move.source), self.known.get(move.name)
        if _alike(here, there) and (_is_kept(known, here) or _same_bytes(move.target, move.source)):
            return ""
        if here is not None and not _is_kept(known, here):
            return "was changed here since it was staged"
        return None

    def _may_go(self, move: Move) -> str | None:
        """The same for a file to bring back."""
        here, there, known = state_of(move.source), state_of(move.target), self.known.get(move.name)
        if _is_kept(known, here) or (_alike(here, there) and _same_bytes(move.source, move.target)):
            return ""
        if there is None or _is_kept(known, there):
            return None
        # The change time, because a file moved there later may have an older modification time.
        if known is None and move.target.lstat().st_ctime_ns < self.since:
            return None
        return "was changed there since it was staged"

    def _transfer(
        self, trees: Sequence[Move], refusal: Callable[[Move], str | None], show: Show
    ) -> Outcome:
        outcome = Outcome()
        wanted = []
        for move in (move for tree in trees for move in tree.files(outcome)):
            reason = refusal(move)
            reason = _through_a_link(move) if reason is None else reason
            if reason:
                outcome.left.append(f"{move.target} {reason}; the other one is {move.source}")
            elif reason is None:
                wanted.append(move)
            else:
                outcome.same += 1
                self._note(move)
                remove_stale_part(move.target)
        try:
            for tree in trees:
                tree.make_directories(outcome)
            self._copy(wanted, refusal, outcome, show)
        finally:
            self._sync_names()
            self.write_note()
        return outcome

    def _sync_names(self) -> None:
        """Writes names to the disk before the note lists them: a crash must not leave the note
        alone."""
        for directory in self._renamed:
            try:
                sync_directory(directory)
            except OSError as error:
                message = f"{directory}: cannot be synchronised: {error.strerror}"
                raise ParioError(message) from error
        self._renamed.clear()

    def _copy(
        self,
        moves: Sequence[Move],
        refusal: Callable[[Move], str | None],
        outcome: Outcome,
        show: Show,
    ) -> None:
        sizes = {move: (state_of(move.source) or (0, 0))[0] for move in moves}
        whole = sum(sizes.values())

        def copy(move: Move, threads: int) -> State | ParioError:
            return _copied_or_not(move, threads, lambda: refusal(move))

        no_space = []
        with ThreadPoolExecutor(_THREADS) as pool:
            for move in (move for move in moves if sizes[move] >= _LARGE):
                self._take(move, copy(move, _THREADS), outcome)
                show(outcome.size, whole)
            futures = {pool.submit(copy, move, 1): move for move in moves if sizes[move] < _LARGE}
            try:
                for future in as_completed(futures):
                    if _lacks_space(future.result()):
                        no_space.append(futures[future])
                        continue
                    self._take(futures[future], future.result(), outcome)
                    show(outcome.size, whole)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        # The space may have been that of a larger file, which was copied at the same time.
        for move in sorted(no_space, key=lambda move: sizes[move]):
            self._take(move, copy(move, 1), outcome)

    def _take(self, move: Move, state: State | ParioError, outcome: Outcome) -> None:
        """Records the result for one file."""
        if isinstance(state, ParioError):
            outcome.left.append(str(state))
            return
        outcome.copied += 1
        outcome.size += state[0]
        self.known[move.name] = state
        self._renamed.add(move.target.parent)
        if outcome.copied % _NOTE_EVERY == 0:
            self._sync_names()
            self.write_note()

    def _note(self, move: Move) -> None:
        state = state_of(move.source)
        if state:
            self.known[move.name] = state

    def remove(self) -> None:
        """Removes the staged files, and the directory if :meth:`make` created it and it is empty
        then. Raises ParioError where files have changed since they were brought back.
        """
        outcome = Outcome()
        for move in (move for tree in self._trees(inwards=False) for move in tree.files(outcome)):
            if self._may_go(move) != "":
                raise ParioError(f"{move.source} is still being changed")
        if outcome.left:
            raise ParioError(outcome.left[0])
        for root in self.roots:
            _remove(self.local / root)
        for path in self.local.iterdir():
            if path.name == NOTE or is_part(path.name):  # its stale parts too
                path.unlink()
        if self._made:
            with suppress(OSError):
                self.local.rmdir()


def _remove(root: Path) -> None:
    if not _is_tree(root):
        root.unlink(missing_ok=True)
        return
    for directory, names, _ in os.walk(root):
        for path in (Path(directory) / name for name in names):
            if not path.is_symlink():
                path.chmod(0o700)  # programs make directories that may not be written
    shutil.rmtree(root)


def _through_a_link(move: Move) -> str | None:
    """The reason not to copy a file: a directory of its tree has become a link."""
    for above in list(move.target.parents)[: len(Path(move.name).parts) - 1]:
        if above.is_symlink():
            return (
                f"would be behind {above}, which is a link there and a directory at the other end"
            )
    return None


def _files_beneath(root: Path, outcome: Outcome) -> Iterator[str]:
    """Names of files and links; "" if the root is one itself. Adds special files and unreadable
    directories to ``outcome``."""

    def leave(error: OSError) -> None:
        outcome.left.append(f"{os.fsdecode(error.filename)}: cannot be read: {error.strerror}")

    if not _is_tree(root):
        if state_of(root) and _is_copied(root, outcome):
            yield ""
        return
    for directory, names, files in os.walk(root, onerror=leave):
        links = [name for name in names if (Path(directory) / name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(directory) / name
            try:
                if not is_part(name) and _is_copied(path, outcome):
                    yield str(path.relative_to(root))
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError as error:
                leave(error)


def _is_copied(path: Path, outcome: Outcome) -> bool:
    """True for files and links. Adds others to ``outcome``. Raises OSError."""
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return True
    outcome.special.append(f"{path} is {kind_of(mode)}")
    return False


def _clock_of(directory: Path, read_only: bool) -> int:
    """The current time of a directory's file system, whose server sets the times of files. If it
    is unknown, a time before all files."""
    probe = part_path(directory / _PROBE)
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.utime(descriptor)
            return os.fstat(descriptor).st_mtime_ns
        finally:
            os.close(descriptor)
    except OSError as error:
        if read_only:
            return _BEFORE_ALL
        raise ParioError(
            f"cannot write into {directory}, where staged files are to be brought back:"
            f" {error.strerror}"
        ) from error
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def _copied_or_not(
    move: Move, threads: int, refusal: Callable[[], str | None]
) -> State | ParioError:
    """The state of a copied file, or the reason why it was not copied."""
    try:
        return copy_verified(move.source, move.target, threads, refusal)
    except ParioError as error:
        return error


def _lacks_space(result: State | ParioError) -> bool:
    cause = result.__cause__ if isinstance(result, ParioError) else None
    return isinstance(cause, OSError) and cause.errno in _NO_SPACE


@contextmanager
def in_use(local: Path, make: Callable[[], Staged]) -> Iterator[tuple[Staged, Callable[[], bool]]]:
    """Registers a user of the staged directory that ``make`` opens or creates, during the block.
    ``make`` writes nothing into a directory that exists: its last user may be removing it.

    Yields it and a function that returns True, once, if no other process of this node uses it: of
    several that end one is the last, and it locks the directory until the block ends.
    """

    def open_directory() -> int:
        make()
        return os.open(local, os.O_RDONLY | os.O_DIRECTORY)

    descriptor = locks.hold(local, open_directory)
    try:
        # read again now that no process removes it
        yield make(), lambda: locks.is_last(local, descriptor)
    finally:
        os.close(descriptor)
