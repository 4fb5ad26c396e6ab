"""Groups larger than memory, decoded piece by piece as their records are requested."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pario.records.decoded import Decoded, views

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Decoded pieces of a group that are kept: the newest ones.
_PIECES = 2
#: Times that a group is decoded from its beginning, for records before the kept pieces.
_TIMES = 3


class _Walk:
    """The decoding of a group: its newest pieces, and the ones not decoded yet."""

    def __init__(self, pieces: Generator[Decoded]) -> None:
        self._pieces, self._end = pieces, 0
        #: Pieces, and the number of the first record of each.
        self._kept: deque[tuple[int, Decoded]] = deque(maxlen=_PIECES)

    @property
    def first(self) -> int:
        """The first record that can be read without decoding the group again."""
        return self._kept[0][0] if self._kept else 0

    def pick(self, records: NDArray[Any]) -> list[bytes]:
        """Copies of records from ``first`` on; views would keep their pieces in memory."""
        found = [b""] * len(records)
        for begin, piece in self._pieces_until(int(records.max())):
            (which,) = ((begin <= records) & (records < begin + _count(piece))).nonzero()
            copies = map(bytes, views(piece, records[which] - begin))
            for place, one in zip(which.tolist(), copies, strict=True):
                found[place] = one
        return found

    def _pieces_until(self, record: int) -> Iterator[tuple[int, Decoded]]:
        """The kept pieces, and those that follow up to that of a record."""
        yield from list(self._kept)
        while self._end <= record:
            self._kept.append((self._end, next(self._pieces)))
            self._end += _count(self._kept[-1][1])
            yield self._kept[-1]

    def close(self) -> None:
        """Ends the decoding."""
        self._pieces.close()


@dataclass
class _Position:
    """The group that a process decodes."""

    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    group: int = -1
    walk: _Walk | None = None
    begun: Counter[int] = field(default_factory=Counter)


class LargeGroups:
    """Reads records of groups larger than memory. Requests in ascending order decode a group once,
    and two pieces of it are in memory. Any thread may call it. A forked child begins anew."""

    def __init__(self) -> None:
        self._position = _Position()

    def __reduce__(self) -> tuple[type[LargeGroups], tuple[()]]:
        return LargeGroups, ()

    def pick(
        self, group: int, records: NDArray[Any], decode: Callable[[int], Generator[Decoded]]
    ) -> list[bytes] | None:
        """Copies of some records of a group. None: requests go back and forth in it, so that it is
        better decoded once and kept."""
        here = self._position
        if here.process != os.getpid():
            here = self._position = _Position()
        with here.lock:
            if here.walk is None or here.group != group or records.min() < here.walk.first:
                if here.walk is not None:
                    here.walk.close()
                here.walk = None
                if here.begun[group] == _TIMES:
                    return None
                here.begun[group] += 1
                here.group, here.walk = group, _Walk(decode(group))
            try:
                return here.walk.pick(records)
            except BaseException:  # its generator is at its end
                here.walk = None
                raise


def _count(piece: Decoded) -> int:
    return len(piece.offsets) - 1
