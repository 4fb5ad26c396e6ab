"""Directories of many files as few shards and an index; public names in :mod:`pario.archive`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pario.errors import ParioError
from pario.machine import count_processors
from pario.paths import local_path
from pario.progress import Show, silent
from pario.wording import printable


@dataclass(frozen=True)
class Packing:
    """The result of packing a directory."""

    members: int
    size: int  # bytes of the files
    packed: int  # bytes of the shards
    shards: int


@dataclass(frozen=True)
class Loss:
    """An attribute that members lost, because the file system or this user cannot set it; or the
    members of shards that do not exist."""

    what: str  # "owner", "extended attributes", ...
    members: int
    first: str  # the reason for the first of them


@dataclass(frozen=True)
class Unpacking:
    """The result of unpacking an archive."""

    members: int
    losses: tuple[Loss, ...]
    left_out: int = 0  # devices and pipes that were left out on request


@dataclass(frozen=True)
class Member:
    """A file, directory, link, device or pipe in an archive."""

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
    show: Show = silent,
) -> Packing:
    """Packs the files below a directory into a new directory of shards.

    Parameters
    ----------
    directory, output : str or PathLike
        The input, and the directory to be created.
    shard_size : int
        Bytes of a shard.
    shards : int
        Number of shards; 0: by ``shard_size``.
    level : int
        Compression level of zstd.
    workers : int
        Threads; 0: one per processor.
    show : callable
        Called with (bytes done, bytes in all) from time to time.

    Returns
    -------
    Packing
        Members, bytes of the files, bytes of the shards, number of shards.

    Raises
    ------
    ParioError
        A path has an unsupported scheme.
    OSError
        Names the file; nothing is left of the output.
    """
    from pario._native import pack_directory

    local_path(directory)
    local_path(output)
    places = os.fsencode(directory), os.fsencode(output)
    return Packing(
        *pack_directory(*places, shard_size, shards, level, workers or count_processors(), show)
    )


class Archive:
    """A packed directory. Several threads may read members at the same time.

    Parameters
    ----------
    path : str or PathLike
        A directory written by :func:`pack` or ``pario pack``.

    Raises
    ------
    OSError
        The directory is not an archive, or is truncated.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
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
        """The number of shards."""
        return int(self._native.shards)

    def member(self, name: str) -> Member:
        """The facts of a member.

        Parameters
        ----------
        name : str
            Its path below the packed directory.

        Returns
        -------
        Member
            Name, ``mode`` as of ``os.stat``, size in bytes, time in nanoseconds, shard.

        Raises
        ------
        ParioError
            There is no such member.
        """
        return self._member(self._number(name))

    def read(self, name: str) -> bytes:
        """The bytes of a file; of a hard link the bytes of its file.

        Parameters
        ----------
        name : str
            The path of the member within the archive.

        Returns
        -------
        bytes
            The whole contents; ``chunks`` needs less memory.

        Raises
        ------
        ParioError
            There is no member of this name, or it is no regular file.
        OSError
            The member is damaged or cannot be read.
        """
        return bytes(self._native.read(self._file(name)))

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file, piece by piece.

        Parameters
        ----------
        name : str
            As for :meth:`read`, which documents the errors, too.

        Yields
        ------
        bytes
            At most 16 MiB; an error is raised when the damaged piece is reached.
        """
        stream = self._native.open_member(self._file(name))
        while piece := stream.next():
            yield piece

    def verify(self) -> None:
        """Checks that the index is complete and all members lie within the shards.

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
        show: Show = silent,
    ) -> Unpacking:
        """Unpacks members into a new directory.

        Parameters
        ----------
        output : str or PathLike
            The directory to be created.
        names : sequence of str
            The members, with all below them; empty: all members.
        workers : int
            Threads; 0: one per processor.
        strict : bool
            Fail if a member would lose an attribute.
        same_permissions : bool
            False: apply the umask, and drop set-user-ID bits, access control lists and
            capabilities.
        special : bool
            False: leave out devices and pipes.
        max_size : int, optional
            The most bytes of all files, holes included.
        show : callable
            Called with (bytes done, bytes in all) from time to time.

        Returns
        -------
        Unpacking
            Members, lost attributes, members left out.

        Raises
        ------
        ParioError
            There is no member of a name.
        OSError
            Names the member; nothing is left of the output. Impossible members (unknown types,
            names outside of the directory, places outside of the shards) and too many bytes are
            detected before anything is created.
        """
        local_path(output)
        numbers = sorted({number for name in names for number in self._beneath(name)})
        members, left_out, losses = self._native.unpack(
            os.fsencode(output),
            numbers,
            workers or count_processors(),
            strict,
            same_permissions,
            special,
            max_size,
            show,
        )
        return Unpacking(members, tuple(Loss(*loss) for loss in losses), left_out)

    def _file(self, name: str) -> int:
        """The number of a regular file. Raises ParioError if it is another kind of member."""
        number = self._number(name)
        if not stat.S_ISREG(self._member(number).mode):
            raise ParioError(f"{printable(name)} in {self._path} is no regular file")
        return number

    def _number(self, name: str) -> int:
        number = int(self._native.find(os.fsencode(name.rstrip("/"))))
        if number < 0:
            raise ParioError(
                f"{self._path} has no member {printable(name)}; pario ls lists its members"
            )
        return number

    def _member(self, number: int) -> Member:
        name, is_hard_link, mode, size, modified, shard = self._native.member(number)
        return Member(os.fsdecode(name), mode, size, modified, shard, is_hard_link)

    def _beneath(self, name: str) -> Iterator[int]:
        """A member and all members below it; names are in the order of their bytes."""
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
            low, high = (
                (middle + 1, high) if self._native.member(middle)[0] < name else (low, middle)
            )
        return low
