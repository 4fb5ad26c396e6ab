"""Batches of records that are decoded in groups."""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pario._native import RecordOrder, schedule_step, schedule_steps
from pario.machine import count_processors
from pario.records.decoded import Decoded, views
from pario.records.groups import MEMORY, GroupedFile, by_group, gather, groups_of
from pario.records.kept import Kept
from pario.records.orders import Order, make_order
from pario.records.stream import BatchStream, RawBatch, Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bytes in the files of the groups that are mixed by default.
_MIXED = 16 << 20


class GroupedFiles:
    """Several files as one: the records and groups of each file follow those of the file before."""

    def __init__(self, files: Sequence[GroupedFile]) -> None:
        import numpy as np

        self._files = files
        groups = [len(file.groups.firsts) - 1 for file in files]
        #: The end of each file's records and groups; the first record of each group, and at the end
        #: the number of all records.
        self.ends, self._group_ends = np.cumsum([len(file) for file in files]), np.cumsum(groups)
        begins = self.ends - [len(file) for file in files]
        self.firsts = np.concatenate(
            [
                *(
                    file.groups.firsts[:-1] + begin
                    for file, begin in zip(files, begins, strict=True)
                ),
                self.ends[-1:],
            ]
        )
        #: Decoded groups of all files, bounded as those of one file.
        self._kept = Kept(max((file.memory for file in files), default=MEMORY))
        self._bytes = sum(int(file.groups.begins[-1] - file.groups.begins[0]) for file in files)

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.firsts) - 1

    def groups_of(self, numbers: NDArray[Any] | int) -> NDArray[Any]:
        """The groups of records."""
        return groups_of(self.firsts, numbers)

    def default_mix(self) -> int:
        """The default number of groups to mix: as many as have 16 MiB in the files.

        0 if each group is one record: a full permutation then decodes no group twice.
        """
        if self.count >= int(self.firsts[-1]):
            return 0
        return max(1, min(self.count, _MIXED * self.count // max(1, self._bytes)))

    def facts(self, together: int) -> tuple[int, int]:
        """The numbers that describe the order in which ``together`` groups are mixed."""
        return zlib.crc32(self.firsts.tobytes()) or 1, together

    def mixed_order(self, seed: int, epoch: int, together: int) -> RecordOrder:
        """The order of the records if the groups are mixed, ``together`` at a time."""
        return self.order(("groups", seed, epoch, *self.facts(together)))

    def order(self, order: Order) -> RecordOrder:
        """An order of the records by its name, seed, epoch and numbers."""
        import numpy as np

        counts = np.diff(self.ends, prepend=0)
        if order[0] == "groups":
            return make_order(("blocks", *order[1:]), counts, self.firsts)
        return make_order(order, counts)

    def decode(self, group: int, keep: bool) -> Decoded:
        """Decodes a group; ``keep``: keeps it, because it may be needed again soon."""
        return self._kept.get(group, self._decode) if keep else self._decode(group)

    def _decode(self, group: int) -> Decoded:
        number = int(self._group_ends.searchsorted(group, side="right"))
        file = self._files[number]
        return file.decode(group - int(self._group_ends[number]) + len(file.groups.firsts) - 1)


@dataclass
class _Turn:
    """Groups that are needed together, for the positions from ``begin`` to ``end``."""

    begin: int
    end: int
    groups: list[int]
    futures: dict[int, Future[Decoded]] = field(default_factory=dict)
    #: Bytes of its decoded groups.
    bytes: int = 0
    #: True after the last batch with records of it.
    over: bool = False


@dataclass
class _Ahead:
    """Counts the groups decoded ahead. Any thread may call it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Groups not yet decoded, and bytes of the decoded groups of turns that are not over.
    left: int = 0
    bytes: int = 0
    #: Bytes of the largest group.
    largest: int = 0

    def begin(self, turn: _Turn) -> None:
        with self.lock:
            self.left += len(turn.groups)

    def end(self, turn: _Turn) -> None:
        with self.lock:
            self.bytes -= turn.bytes
            turn.over = True

    def add(self, turn: _Turn, size: int) -> None:
        """Notes that a group of the turn was decoded, to ``size`` bytes."""
        with self.lock:
            self.left, self.largest = self.left - 1, max(self.largest, size)
            turn.bytes += size
            if not turn.over:
                self.bytes += size

    def expected_bytes(self, groups: int) -> int:
        """The bytes expected in memory after ``groups`` more groups."""
        with self.lock:
            return self.bytes + (self.left + groups) * self.largest


class GroupLoader(BatchStream):
    """The batches of one rank's share of an epoch, for one thread.

    ``memory``: bytes of decoded groups; one turn is decoded ahead in any case. With mixed groups
    and in file order each group is decoded at most once, and only if its turn has records of the
    share; in other orders again whenever it is needed after it was forgotten.
    """

    def __init__(
        self, files: GroupedFiles, order: Order, share: Share, memory: int, threads: int
    ) -> None:

        self._files, self._share, self._memory = files, share, memory
        self._turns_of = {"groups": self._mixed_turns, "as they lie": self._ordered_turns}.get(
            order[0], self._step_turns
        )
        self._keep = self._turns_of == self._step_turns
        self._order = files.order(order)
        self._count, self._ahead = int(files.ends[-1]), _Ahead()
        #: Groups of the turns in memory; of a group in several turns the first turn's.
        self._futures: dict[int, Future[Decoded]] = {}
        super().__init__(max(1, min(threads, count_processors())))

    def _load(self) -> Generator[RawBatch, None, None]:
        executor = ThreadPoolExecutor(self._threads, "pario-decode")
        turns, held = self._select_needed(self._turns_of()), deque[_Turn]()
        try:
            for number in range(schedule_steps(self._share, self._count)):
                (first, last, end), (_, following, _) = self._step(number), self._step(number + 1)
                while held and held[0].end <= first:
                    self._end(held.popleft())
                while not held or held[-1].end < last or self._has_room(held, last, following):
                    if (turn := next(turns, None)) is None:
                        break
                    held.append(turn)
                    self._begin(turn, executor)
                if first < last:
                    yield self._batch(self._order.numbers(first, last), held, end)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self, turn: _Turn, executor: ThreadPoolExecutor) -> None:
        self._ahead.begin(turn)
        # In the order of the file, in which pieces of a compressed frame are cheapest.
        groups = sorted(turn.groups)
        turn.futures = {group: executor.submit(self._decode, turn, group) for group in groups}
        for group, future in turn.futures.items():
            self._futures.setdefault(group, future)

    def _end(self, turn: _Turn) -> None:
        self._ahead.end(turn)
        for group, future in turn.futures.items():
            if self._futures.get(group) is future:
                del self._futures[group]

    def _step(self, number: int) -> tuple[int, int, int]:
        """First position, the position after the last, and the position of all ranks after the
        step.

        An empty step at the end of the epoch if ``number`` is too large.
        """
        if number >= schedule_steps(self._share, self._count):
            return self._count, self._count, self._count
        return schedule_step(self._share, self._count, number)

    def _select_needed(self, turns: Iterator[_Turn]) -> Iterator[_Turn]:
        """The turns with records of the share. Turns and steps are in ascending order."""
        number, steps = 0, schedule_steps(self._share, self._count)
        first, last, _ = self._step(number)
        for turn in turns:
            while number < steps and (last <= turn.begin or first == last):
                number += 1
                first, last, _ = self._step(number)
            if first < turn.end:
                yield turn

    def _has_room(self, held: deque[_Turn], last: int, following: int) -> bool:
        """Whether another turn may be decoded ahead.

        One turn behind ``last`` always; turns up to ``following`` if memory allows; turns behind
        them if, besides, the threads have little left to do.
        """
        if held[-1].end <= last:
            return True
        busy = held[-1].end >= following and self._ahead.left >= 2 * self._threads
        return not busy and 0 < self._ahead.expected_bytes(len(held[-1].groups)) < self._memory

    def _decode(self, turn: _Turn, group: int) -> Decoded:
        size = 0
        try:
            decoded = self._files.decode(group, self._keep)
            size = int(decoded.memory.nbytes + decoded.offsets.nbytes)
        finally:
            self._ahead.add(turn, size)
        return decoded

    def _batch(self, numbers: NDArray[Any], held: deque[_Turn], end: int) -> RawBatch:
        import numpy as np

        numbers = numbers.astype(np.int64)
        parts, failures = [], []
        groups = self._files.groups_of(numbers)
        records = numbers - self._files.firsts[groups]
        for group, which in by_group(groups):
            future = self._futures.get(group) or next(
                turn.futures[group] for turn in held if group in turn.futures
            )
            if error := future.exception():
                failures += [(number, str(error)) for number in numbers[which].tolist()]
            else:
                parts.append((which, views(future.result(), records[which])))
        memory, places = gather(parts, len(numbers))
        return memory, numbers.astype(np.uint64), places, failures, end

    def _mixed_turns(self) -> Iterator[_Turn]:
        position = self._share[0]
        while position < self._count:
            begin, position, groups = self._order.turn(position)
            yield _Turn(begin, position, groups)

    def _ordered_turns(self) -> Iterator[_Turn]:
        position = self._share[0]
        while position < self._count:
            group = int(self._files.groups_of(position))
            position = int(self._files.firsts[group + 1])
            yield _Turn(int(self._files.firsts[group]), position, [group])

    def _step_turns(self) -> Iterator[_Turn]:
        import numpy as np

        for number in range(schedule_steps(self._share, self._count)):
            first, last, _ = self._step(number)
            groups = self._files.groups_of(self._order.numbers(first, last).astype(np.int64))
            yield _Turn(first, last, np.unique(groups).tolist())
