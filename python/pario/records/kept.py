"""A cache of decoded groups of records."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pario.records.decoded import Decoded

#: Bytes of the objects around a group.
_OVERHEAD = 1000


@dataclass
class _Slot:
    """A requested group. A thread that finds it not decoded decodes it under the lock; after an
    interrupt the next waiting thread does."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    decoded: Decoded | None = None
    #: The error of the last attempt, for the threads that waited for it.
    error: Exception | None = None
    #: Bytes, as far as they are counted.
    size: int = 0


@dataclass
class _Held:
    """The groups of one process; the least recently requested one is first."""

    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    groups: OrderedDict[int, _Slot] = field(default_factory=OrderedDict)
    #: The sum of the sizes of the decoded groups. No call is made between a change of a size and
    #: of the sum, because an interrupt could come there.
    bytes: int = 0


class Kept:
    """The most recently requested groups, in ``memory`` bytes at most, but at least one. Any thread
    may call it. A forked child begins with an empty cache, without the parent's locks."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._held = _Held()

    def get(self, group: int, decode: Callable[[int], Decoded]) -> Decoded:
        """A group. If it is not cached, the first thread decodes it and the others wait. An error
        is raised in all of them, and the next call tries again. After an interrupt (Ctrl-C) of the
        first thread, a waiting one decodes it."""
        held = self._held
        if held.process != os.getpid():
            held = self._held = _Held()
        with held.lock:
            slot = held.groups.setdefault(group, _Slot())
            held.groups.move_to_end(group)
        known = slot.error
        with slot.lock:
            if slot.decoded is None:
                if slot.error is not None and slot.error is not known:
                    raise slot.error
                return self._decode(held, group, slot, decode)
            return slot.decoded

    def __reduce__(self) -> tuple[type[Kept], tuple[int]]:
        return Kept, (self.memory,)

    def _decode(
        self, held: _Held, group: int, slot: _Slot, decode: Callable[[int], Decoded]
    ) -> Decoded:
        try:
            decoded = decode(group)
        except Exception as error:
            slot.error = error
            with held.lock:
                if held.groups.get(group) is slot:
                    del held.groups[group]
            raise
        size = _size(decoded)
        with held.lock:
            if held.groups.get(group) is slot:  # else it was evicted meanwhile
                held.bytes += size - slot.size
                slot.size = size
            slot.decoded = decoded
            while held.bytes > self.memory and len(held.groups) > 1:
                _forget_first(held)
        return decoded


def _forget_first(held: _Held) -> None:
    first = next(iter(held.groups))
    held.bytes -= held.groups[first].size
    del held.groups[first]


def _size(decoded: Decoded) -> int:
    return int(decoded.memory.nbytes + decoded.offsets.nbytes) + _OVERHEAD
