"""Directories of many files as few shards and an index: made by ``pario pack``, read by name without unpacking.

from pario.archive import Archive

archive = Archive("results.pack")
data = archive.read("run-17/log.txt")      # decompresses what holds this member, no more
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pario.errors import ParioError
from pario.paths import local_path
from pario.wording import printable

Show = Callable[[int, int], object]


def _silent(_done: int, _whole: int) -> None: ...


def threads() -> int:
    """As many as there are processors for this process."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Packing:
    """What became of a directory."""

    members: int
    size: int  # bytes of the files
    packed: int  # bytes of the shards
    shards: int


@dataclass(frozen=True)
class Loss:
    """What members had to go without, because the file system or this user cannot have it."""

    what: str  # "owner", "extended attributes", ...
    members: int
    first: str  # why the first of them


@dataclass(frozen=True)
class Unpacking:
    """The result of unpacking an archive."""

    members: int
    losses: tuple[Loss, ...]
    left_out: int = 0  # devices and pipes that were not to be made


@dataclass(frozen=True)
class Member:
    """A file, directory, link or the like in an archive."""

    name: str
    mode: int  # type and permissions, as in os.stat
    size: int
    modified_ns: int
    shard: int
    is_hard_link: bool

    def __str__(self) -> str:
        return self.name


def pack(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    shard_size: int = 1 << 30,
    shards: int = 0,
    level: int = 3,
    workers: int = 0,
    show: Show = _silent,
) -> Packing:
    """Packs what is beneath a directory into a new one. Raises OSError that names the file; then there is no output."""
    from pario._native import pack_directory

    local_path(directory)
    local_path(output)
    places = os.fsencode(directory), os.fsencode(output)
    return Packing(*pack_directory(*places, shard_size, shards, level, workers or threads(), show))


class Archive:
    """A packed directory. Members may be read from several threads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises OSError where it is none, or was cut off."""
        from pario._native import open_archive

        local_path(path)
        self._path = os.fsdecode(path)
        self._native: Any = open_archive(os.fsencode(path))

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[Member]:
        return (self._member(number) for number in range(len(self)))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._native.find(os.fsencode(name)) >= 0

    @property
    def shards(self) -> int:
        """How many files hold the members."""
        return int(self._native.shards)

    def member(self, name: str) -> Member:
        """Raises ParioError where there is none of this name."""
        return self._member(self._number(name))

    def read(self, name: str) -> bytes:
        """The bytes of a file; of a hard link those of its file.

        Raises ParioError, and OSError where it is damaged. All bytes are in memory: ``chunks`` gives
        them piece by piece.
        """
        return bytes(self._native.read(self._file(name)))

    def chunks(self, name: str) -> Iterator[bytes]:
        """The same bytes in pieces of at most 16 MiB, in little memory whatever the file's size.

        Raises as ``read``; an error in the middle of the file comes with its piece.
        """
        stream = self._native.open_member(self._file(name))
        while piece := stream.next():
            yield piece

    def verify(self) -> None:
        """Checks that the index is whole, and that all its members lie within the shards.

        Reads the index and the tables of all shards, no members. Raises OSError that names the
        member.
        """
        self.verify_index()
        self.verify_places()

    def verify_index(self) -> None:
        """Checks the index alone: its checksum, names, types and sizes. Raises as ``verify``."""
        self._native.verify_index()

    def verify_places(self) -> None:
        """Checks the places of the members of a verified index. Raises as ``verify``."""
        self._native.verify_places()

    def unpack(
        self,
        output: str | os.PathLike[str],
        names: Sequence[str] = (),
        *,
        workers: int = 0,
        strict: bool = False,
        same_permissions: bool = True,
        special: bool = True,
        max_size: int | None = None,
        show: Show = _silent,
    ) -> Unpacking:
        """Unpacks all members, or those named and all beneath them, into a new directory.

        ``strict``: fails where members would lose something. Without ``same_permissions`` files get
        their permissions less the umask, and no set-user-ID bits, access control lists or
        capabilities. Without ``special`` devices and pipes are left out. ``max_size``: bytes that the
        files may have in all, holes among them.

        Raises OSError that names the member; then there is no output. Impossible members (unknown
        types, names outside of the directory, places outside of the shards) and too many bytes are
        found before anything is made.
        """
        local_path(output)
        numbers = sorted({number for name in names for number in self._beneath(name)})
        members, left_out, losses = self._native.unpack(
            os.fsencode(output),
            numbers,
            workers or threads(),
            strict,
            same_permissions,
            special,
            max_size,
            show,
        )
        return Unpacking(members, tuple(Loss(*loss) for loss in losses), left_out)

    def _file(self, name: str) -> int:
        """The number of a file. Raises ParioError where it is no file."""
        number = self._number(name)
        if not stat.S_ISREG(self._member(number).mode):
            raise ParioError(f"{printable(name)} in {self._path} is no file")
        return number

    def _number(self, name: str) -> int:
        number = int(self._native.find(os.fsencode(name.rstrip("/"))))
        if number < 0:
            raise ParioError(f"{self._path} has no member {printable(name)}; pario ls shows what there is")
        return number

    def _member(self, number: int) -> Member:
        name, is_hard_link, mode, size, modified, shard = self._native.member(number)
        return Member(os.fsdecode(name), mode, size, modified, shard, is_hard_link)

    def _beneath(self, name: str) -> Iterator[int]:
        """A member, and what is in it; names are in the order of bytes."""
        first = self._number(name)
        if name.rstrip("/") == ".":
            yield from range(len(self))
            return
        yield first
        beneath = os.fsencode(name.rstrip("/")) + b"/"
        for number in range(self._first_not_before(beneath), len(self)):
            if not self._native.member(number)[0].startswith(beneath):
                return
            yield number

    def _first_not_before(self, name: bytes) -> int:
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._native.member(middle)[0] < name else (low, middle)
        return low
