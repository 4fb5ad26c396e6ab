"""Groups of records that were decoded, and are kept for a while."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from pario.records.foreign import Decoded

#: Bytes of the objects around a group.
_OVERHEAD = 1000


@dataclass
class _Held:
    """What one process has. The first is asked for longest ago."""

    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    groups: OrderedDict[int, Future[Decoded]] = field(default_factory=OrderedDict)
    #: Of the groups that are decoded.
    bytes: int = 0


class Kept:
    """Those that were asked for last, as far as ``memory`` goes, at least one. Any thread; after a fork the child begins with none, and
    waits for no lock and no thread of the parent."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._held = _Held()

    def get(self, group: int, decode: Callable[[int], Decoded]) -> Decoded:
        """A group. Of those who ask for one that is not kept the first one decodes it, the others wait; an error is told to all of them,
        and the next one tries again."""
        held = self._held
        if held.process != os.getpid():
            held = self._held = _Held()
        with held.lock:
            future = held.groups.pop(group, None)
            mine = future is None
            held.groups[group] = future = future or Future()
        if mine:
            self._fulfil(held, group, future, decode)
        return future.result()

    def __reduce__(self) -> tuple[type[Kept], tuple[int]]:
        return Kept, (self.memory,)

    def _fulfil(self, held: _Held, group: int, future: Future[Decoded], decode: Callable[[int], Decoded]) -> None:
        try:
            decoded = decode(group)
        except BaseException as error:
            with held.lock:
                if held.groups.get(group) is future:
                    del held.groups[group]
            future.set_exception(error)
            return
        with held.lock:
            future.set_result(decoded)  # who finds it done finds it counted
            if held.groups.get(group) is future:
                held.bytes += _size(decoded)
            while held.bytes > self.memory and len(held.groups) > 1:
                _forget_first(held)


def _forget_first(held: _Held) -> None:
    _, future = held.groups.popitem(last=False)
    if future.done():  # else it is not counted yet, and will not be
        held.bytes -= _size(future.result())


def _size(decoded: Decoded) -> int:
    return int(decoded.memory.nbytes + decoded.offsets.nbytes) + _OVERHEAD
