"""Groups of records that were decoded, and are kept for a while."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pario.records.foreign import Decoded

#: Bytes of the objects around a group.
_OVERHEAD = 1000


@dataclass
class _Slot:
    """A group that was asked for. Whoever has the lock decodes it, if nobody has: one that is
    interrupted leaves that to the next."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    decoded: Decoded | None = None
    #: What the last one who tried has told those who waited for it.
    error: Exception | None = None
    #: Bytes, as far as they are counted.
    size: int = 0


@dataclass
class _Held:
    """What one process has. The first is asked for longest ago."""

    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    groups: OrderedDict[int, _Slot] = field(default_factory=OrderedDict)
    #: Of the groups that are decoded: the sum of their sizes, with no call between a change of
    #: both, in which an interrupt would come.
    bytes: int = 0


class Kept:
    """Those that were asked for last, as far as ``memory`` goes, at least one. Any thread; after a
    fork the child begins with none, and waits for no lock and no thread of the parent."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._held = _Held()

    def get(self, group: int, decode: Callable[[int], Decoded]) -> Decoded:
        """A group. Of those who ask for one that is not kept the first one decodes it, the others
        wait; an error is told to all of them, and the next one tries again. Where an interrupt
        (Ctrl-C) ends it, one of those who wait does it."""
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
            if (
                held.groups.get(group) is slot
            ):  # else it was driven out meanwhile, and is not counted
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
