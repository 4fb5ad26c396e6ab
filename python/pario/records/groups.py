"""Files whose records are stored in groups: a group is decoded as a whole, and some are cached."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pario import objects
from pario._native import read_record_groups, write_record_groups
from pario.errors import ParioError
from pario.progress import Show
from pario.records.decoded import Decoded, Groups, views
from pario.records.foreign import PIECE, Decoder, Foreign
from pario.records.kept import Kept
from pario.records.large_groups import LargeGroups

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bytes of decoded groups that a file keeps.
MEMORY = 256 << 20


@dataclass
class _Opened:
    """The open file of a process; None: no thread has opened it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    decoder: Decoder | None = None


class GroupedFile:
    """Records by number, with the interface of ``RecordFile``.

    Any number of threads and forked processes may use one, and it can be pickled: each process
    opens the file for itself. Raises OSError (ESTALE) if the file has changed since it was opened,
    ParioError if the package of the format is missing, or cannot read it.
    """

    #: None: such files are not outputs of a shuffle of pario.
    bucketing = None

    def __init__(
        self,
        path: str,
        foreign: Foreign,
        column: str | tuple[str, ...],
        memory: int = MEMORY,
        verify: bool = True,
    ) -> None:
        foreign.require_local(path)
        self.path, self.foreign, self._column, self._verify = path, foreign, column, verify
        #: Rows are pickled dictionaries in place of JSON.
        self._typed = False
        self._seen = _look(path)
        self._kept, self._large = Kept(memory), LargeGroups()
        #: About the decoded bytes of the groups of which records were requested.
        self._sizes: dict[int, int] = {}
        #: The open files of the package, by the process that opened it: not of a forked child.
        self._opened: dict[int, _Opened] = {}
        #: The places of the groups, and the bytes of their index file; 0: there is none.
        self.groups, self.index_bytes = self._find()
        self._count = int(self.groups.firsts[-1])

    @property
    def format(self) -> str:
        """The name of the format for ``pario records index --format``."""
        return self.foreign.name

    @property
    def memory(self) -> int:
        """Bytes of decoded groups that are kept."""
        return self._kept.memory

    def __len__(self) -> int:
        return self._count

    def with_typed_rows(self) -> GroupedFile:
        """The same file, whose rows are pickled dictionaries of values and arrays."""
        other = copy(self)
        other._typed, other._opened, other._kept = True, {}, Kept(self.memory)
        other._large = LargeGroups()
        return other

    def read(self, number: int) -> tuple[bytes, int, int]:
        """One record, and the begin and end of its data in it."""
        import numpy as np

        group = int(groups_of(self.groups.firsts, number))
        (data,) = self._take(group, np.array([number - int(self.groups.firsts[group])]))
        return data, 0, len(data)

    def read_many(
        self, numbers: NDArray[Any], *, skip: bool
    ) -> tuple[NDArray[Any], NDArray[Any], list[tuple[int, str]]]:
        """Records one after the other in memory, and the begin and end of each. A group is decoded
        once for all of its records.

        ``skip``: the records of a group that cannot be decoded become empty; their positions in
        ``numbers`` and the errors are returned.
        """
        import numpy as np

        numbers = numbers.astype(np.int64)
        groups = groups_of(self.groups.firsts, numbers)
        records = numbers - self.groups.firsts[groups]
        failures: list[tuple[int, str]] = []

        def parts() -> Iterator[tuple[NDArray[Any], list[bytes]]]:
            for group, which in by_group(groups):
                try:
                    taken = self._take(group, records[which])
                except (ParioError, OSError) as error:
                    if not skip:
                        raise
                    failures.extend((position, str(error)) for position in which.tolist())
                    continue
                yield which, taken

        return *gather(parts(), len(numbers)), failures

    def _take(self, group: int, records: NDArray[Any]) -> list[bytes]:
        """Copies of some records of a group; views would keep it in memory.

        A group larger than the cache is decoded piece by piece while requests ascend; one that is
        requested in another order is kept as a whole.
        """
        if self._is_large(group):
            found = self._large.pick(group, records, self.pieces)
            self._require_unchanged()
            if found is not None:
                return found
        return [bytes(one) for one in views(self.get_group(group), records)]

    def _is_large(self, group: int) -> bool:
        if group not in self._sizes:
            self._sizes[group] = self.open_decoder().estimate_bytes(group)
        return self._sizes[group] > max(self.memory, PIECE)

    def attributes(self, number: int) -> tuple[bytes, int, int]:
        """Name, permissions and time: records of groups have none."""
        return b"", 0, 0

    def get_group(self, group: int) -> Decoded:
        """A group from the cache, or decoded."""
        return self._kept.get(group, self.decode)

    def decode(self, group: int) -> Decoded:
        """Decodes a group without using the cache."""
        return join_pieces(list(self.pieces(group)))

    def pieces(self, group: int) -> Generator[Decoded]:
        """Decodes a group piece by piece."""
        self._require_unchanged()
        first, last = self.groups.firsts[group : group + 2].tolist()
        decoder, records = self.open_decoder(), 0
        with self.foreign.errors(self.path):
            for piece in decoder.decode(group, first, last):
                records += len(piece.offsets) - 1
                yield piece
        self._require_unchanged()
        if records != last - first:
            raise ParioError(
                f"{self.path}: group {group} has {records} records, its index says {last - first}"
            )

    def all_pieces(self, skipped: list[tuple[int, str]] | None) -> Iterator[Decoded]:
        """All records in order, piece by piece. ``skipped`` receives the number of records and the
        error of each group that cannot be decoded; None: its exception is raised."""
        firsts = self.groups.firsts.tolist()
        for group in range(len(firsts) - 1):
            if skipped is None:
                yield from self.pieces(group)
                continue
            try:
                pieces = list(self.pieces(group))  # all of the group, or nothing
            except (ParioError, OSError) as error:
                skipped.append((firsts[group + 1] - firsts[group], str(error)))
            else:
                yield from pieces

    def verify(self, threads: int, most: int, show: Show) -> list[tuple[int, str]]:
        """Decodes all groups. Returns the first record of each group that cannot be decoded, and
        the error, for at most ``most`` groups."""
        begins, damaged = self.groups.begins.tolist(), []
        with ThreadPoolExecutor(threads) as team:
            for group, damage in enumerate(team.map(self._damage, range(len(begins) - 1))):
                show(begins[group + 1], begins[-1])
                damaged += damage
        return damaged[:most]

    def _damage(self, group: int) -> list[tuple[int, str]]:
        try:
            for _ in self.pieces(group):
                pass
        except ParioError as error:
            return [(int(self.groups.firsts[group]), str(error))]
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        here = _look(self.path)  # another machine has other numbers of devices and files
        if here[2:] != self._seen[2:]:
            raise OSError(errno.ESTALE, "it was modified since it was opened", self.path)
        self._seen = here

    def open_decoder(self) -> Decoder:
        """The open file of this process, which its first thread opens."""
        opened = self._opened.setdefault(os.getpid(), _Opened())
        with opened.lock:
            if opened.decoder is None:
                opened.decoder = self.foreign.open(
                    self.path, self._column, self._verify, self._typed
                )
            return opened.decoder

    def _find(self) -> tuple[Groups, int]:
        if objects.is_url(self.path):
            return find_groups(self), 0
        try:
            format, begins, firsts, size = read_record_groups(os.fsencode(self.path))
        except FileNotFoundError:
            return find_groups(self), 0
        if format != self.format:
            raise ParioError(
                f"{self.path}: its index is one of {format}; make it anew with pario records index"
            )
        return Groups(begins.astype("i8"), firsts.astype("i8")), size

    def _require_unchanged(self) -> None:
        """For objects it does nothing: a store refuses bytes of another version."""
        if not objects.is_url(self.path) and _look(self.path) != self._seen:
            raise OSError(errno.ESTALE, "it was modified since it was opened", self.path)


def _look(path: str) -> tuple[int, ...]:
    """Device, number, bytes and time of a file, and the version of an object. Raises OSError."""
    if objects.is_url(path):
        size, modified, version = objects.facts_of(path)
        return 0, 0, size, modified, zlib.crc32(version.encode())
    return facts_of_file(path)


def facts_of_file(path: str) -> tuple[int, ...]:
    """Device, number, bytes and time of a local file. Raises OSError."""
    facts = os.stat(path)  # noqa: PTH116
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def find_groups(file: GroupedFile) -> Groups:
    """Finds the groups of a file by the package of its format."""
    decoder = file.open_decoder()
    with file.foreign.errors(file.path):
        return decoder.groups()


def write_index(path: str, foreign: Foreign) -> tuple[int, int, int, bytes]:
    """Writes an index; returns records, groups, bytes of the index, and its path."""
    if foreign.write_index:
        with foreign.errors(path):
            return foreign.write_index(path)
    foreign.require_local(path)
    before = _look(path)
    decoder = foreign.open(path)
    with foreign.errors(path):
        begins, firsts = decoder.groups()
    if _look(path) != before:
        raise ParioError(f"{path}: it was changed while it was indexed")
    size, place = write_record_groups(
        os.fsencode(path), foreign.name, begins.astype("u8"), firsts.astype("u8")
    )
    return int(firsts[-1]), len(firsts) - 1, size, place


def join_pieces(pieces: Sequence[Decoded]) -> Decoded:
    """Joins pieces one after the other."""
    import numpy as np

    if len(pieces) == 1:
        return pieces[0]
    memory = np.concatenate(
        [
            np.empty(0, dtype=np.uint8),
            *(piece.memory[piece.offsets[0] : piece.offsets[-1]] for piece in pieces),
        ]
    )
    lengths = np.concatenate(
        [np.empty(0, dtype=np.int64), *(np.diff(piece.offsets) for piece in pieces)]
    )
    return Decoded(memory, np.concatenate([[0], np.cumsum(lengths)]))


def groups_of(firsts: NDArray[Any], numbers: NDArray[Any] | int) -> NDArray[Any]:
    """The group of each record. ``firsts``: the first record of each group; last the number of all
    records."""
    return firsts.searchsorted(numbers, side="right") - 1


def by_group(groups: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yields each group that occurs, and its positions in ``groups``."""
    import numpy as np

    order = np.argsort(groups, kind="stable")
    found, begins = np.unique(groups[order], return_index=True)
    return zip(found.tolist(), np.split(order, begins[1:]), strict=False)


def gather(
    parts: Iterable[tuple[NDArray[Any], Sequence[bytes | memoryview]]], count: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Joins ``count`` records one after the other. Returns them with the begin and end of each.

    A part gives records and their positions. Positions in no part get empty records.
    """
    import numpy as np

    pieces: list[bytes | memoryview] = [b""] * count
    for which, records in parts:
        for place, record in zip(which.tolist(), records, strict=True):
            pieces[place] = record
    ends = (
        np.cumsum([len(piece) for piece in pieces], dtype=np.uint64)
        if pieces
        else np.empty(0, dtype=np.uint64)
    )
    begins = np.concatenate([np.zeros(1, dtype=np.uint64), ends])[: len(pieces)]
    return np.frombuffer(b"".join(pieces), dtype=np.uint8), np.stack([begins, ends], axis=1)
