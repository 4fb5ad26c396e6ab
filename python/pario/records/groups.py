"""Files whose records lie together in groups: a group is decoded at a time, and some are kept."""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pario._native import read_record_groups, write_record_groups
from pario.errors import ParioError
from pario.progress import Show
from pario.records.foreign import Decoded, Decoder, Foreign, Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bytes of decoded groups that a file keeps, and of the objects around each.
MEMORY, _OVERHEAD = 256 << 20, 1000


class GroupedFile:
    """Records by number, as ``RecordFile`` gives those that have bytes of their own.

    Any number of threads and forked processes may use one: each process opens the file for itself.
    What is decoded is that which was opened: OSError (ESTALE) when the file has changed since. ParioError where the package of the format
    is missing, or cannot read it.
    """

    #: It was not shuffled by pario.
    bucketing = None

    def __init__(self, path: str, foreign: Foreign, column: str = "", memory: int = MEMORY) -> None:
        self.path, self.foreign, self._column, self._memory = path, foreign, column, memory
        self._seen = self._look()
        self._begin()
        #: Where the groups are, and bytes of the index file that says so; 0: there is none.
        self.groups, self.index_bytes = self._find()
        self._count = int(self.groups.firsts[-1])

    @property
    def format(self) -> str:
        """As ``pario records index --format`` names it."""
        return self.foreign.name

    def __len__(self) -> int:
        return self._count

    def read(self, number: int) -> tuple[bytes, int, int]:
        """One record, and where in it its data begin and end."""
        group = int(self.groups.firsts.searchsorted(number, side="right")) - 1
        record = number - int(self.groups.firsts[group])
        memory, offsets = self.kept(group)
        data = memory[offsets[record] : offsets[record + 1]].tobytes()
        return data, 0, len(data)

    def read_many(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Records one behind the other in memory, and where there each begins and ends. A group is decoded once for all of them."""
        import numpy as np

        numbers = numbers.astype(np.int64)
        groups = np.searchsorted(self.groups.firsts, numbers, side="right") - 1
        return gathered([(which, self.kept(group)) for group, which in by_group(groups)], numbers - self.groups.firsts[groups])

    def attributes(self, number: int) -> tuple[bytes, int, int]:
        """Name, permissions and time: records of groups have none."""
        return b"", 0, 0

    def kept(self, group: int) -> Decoded:
        """A group; those that were asked for last are kept, as far as memory goes."""
        if self._owner != os.getpid():
            self._begin()
        with self._lock:
            future = self._kept.pop(group, None)
            mine = future is None
            self._kept[group] = future = future or Future()
        if mine:
            self._fulfil(group, future)
        return future.result()

    def decode(self, group: int) -> Decoded:
        """A group, decoded anew."""
        return joined(list(self.pieces(group)))

    def pieces(self, group: int) -> Iterator[Decoded]:
        """A group, piece by piece."""
        if self._look() != self._seen:
            raise OSError(errno.ESTALE, "it was modified since it was opened", self.path)
        first, last = self.groups.firsts[group : group + 2].tolist()
        decoder, records = self._opened(), 0
        with self.foreign.errors(self.path):
            for piece in decoder.decode(group, first, last):
                records += len(piece.offsets) - 1
                yield piece
        if records != last - first:
            raise ParioError(f"{self.path}: group {group} has {records} records, its index says {last - first}")

    def all_pieces(self) -> Iterator[Decoded]:
        """All records in order, piece by piece."""
        return (piece for group in range(len(self.groups.firsts) - 1) for piece in self.pieces(group))

    def verify(self, threads: int, most: int, show: Show) -> list[tuple[int, str]]:
        """Decodes everything; the first record of each group that cannot be, at most ``most``, and why."""
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

    def _begin(self) -> None:
        """Nothing of another process is used: neither its locks nor what the package has open."""
        self._owner, self._lock, self._bytes = os.getpid(), threading.Lock(), 0
        self._kept: OrderedDict[int, Future[Decoded]] = OrderedDict()
        self._decoder: Decoder | None = None

    def _opened(self) -> Decoder:
        if self._owner != os.getpid():
            self._begin()
        if self._decoder is None:
            self._decoder = self.foreign.open(self.path, self._column)
        return self._decoder

    def _find(self) -> tuple[Groups, int]:
        try:
            format, begins, firsts, size = read_record_groups(os.fsencode(self.path))
        except FileNotFoundError:
            return found_groups(self), 0
        if format != self.format:
            raise ParioError(f"{self.path}: its index is one of {format}; make it anew with pario records index")
        return Groups(begins.astype("i8"), firsts.astype("i8")), size

    def _look(self) -> tuple[int, ...]:
        facts = os.stat(self.path)  # noqa: PTH116
        return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns

    def _fulfil(self, group: int, future: Future[Decoded]) -> None:
        try:
            decoded = self.decode(group)
        except BaseException as error:
            with self._lock:
                self._kept.pop(group, None)
            future.set_exception(error)
            return
        future.set_result(decoded)
        with self._lock:
            if self._kept.get(group) is future:
                self._bytes += _size(decoded)
            while self._bytes > self._memory and len(self._kept) > 1:
                self._forget(self._kept.popitem(last=False)[1])

    def _forget(self, future: Future[Decoded]) -> None:
        if future.done():  # else it is not counted yet, and will not be
            self._bytes -= _size(future.result())


def _size(decoded: Decoded) -> int:
    return int(decoded.memory.nbytes + decoded.offsets.nbytes) + _OVERHEAD


def found_groups(file: GroupedFile) -> Groups:
    """Where the package of the format finds them."""
    decoder = file.foreign.open(file.path)
    with file.foreign.errors(file.path):
        return decoder.groups()


def write_index(path: str, foreign: Foreign) -> tuple[int, int, int]:
    """``FILE.pidx``; records, groups, and bytes of the index."""
    decoder = foreign.open(path)
    with foreign.errors(path):
        begins, firsts = decoder.groups()
    size = write_record_groups(os.fsencode(path), foreign.name, begins.astype("u8"), firsts.astype("u8"))
    return int(firsts[-1]), len(firsts) - 1, size


def joined(pieces: Sequence[Decoded]) -> Decoded:
    """Pieces one behind the other."""
    import numpy as np

    if len(pieces) == 1:
        return pieces[0]
    memory = np.concatenate([np.empty(0, dtype=np.uint8), *(piece.memory[piece.offsets[0] : piece.offsets[-1]] for piece in pieces)])
    lengths = np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(piece.offsets) for piece in pieces)])
    return Decoded(memory, np.concatenate([[0], np.cumsum(lengths)]))


def by_group(groups: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Each number that there is, and where it stands."""
    import numpy as np

    order = np.argsort(groups, kind="stable")
    found, begins = np.unique(groups[order], return_index=True)
    return zip(found.tolist(), np.split(order, begins[1:]), strict=False)


def gathered(parts: Iterable[tuple[NDArray[Any], Decoded]], records: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """``records`` of decoded groups, those of each part where it says: one behind the other, and where each begins and ends.

    Records of no part are empty.
    """
    import numpy as np

    pieces: list[memoryview] = [memoryview(b"")] * len(records)
    for which, (memory, offsets) in parts:
        view, places = memoryview(memory.data), records[which]
        for place, begin, end in zip(which.tolist(), offsets[places].tolist(), offsets[places + 1].tolist(), strict=True):
            pieces[place] = view[begin:end]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.uint64) if pieces else np.empty(0, dtype=np.uint64)
    begins = np.concatenate([np.zeros(1, dtype=np.uint64), ends])[: len(pieces)]
    return np.frombuffer(b"".join(pieces), dtype=np.uint8), np.stack([begins, ends], axis=1)
