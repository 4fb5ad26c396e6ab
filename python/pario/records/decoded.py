"""Decoded records in memory, and the groups of a file that are decoded as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Groups(NamedTuple):
    """The begin of each group of a file, and the number of its first record; both end with the end
    of the last group."""

    begins: NDArray[Any]
    firsts: NDArray[Any]


class Decoded(NamedTuple):
    """Records in memory: record ``i`` is ``memory[offsets[i]:offsets[i + 1]]``."""

    memory: NDArray[Any]
    offsets: NDArray[Any]


def join_records(records: Iterable[bytes]) -> Decoded:
    """Copies records one after the other."""
    import numpy as np

    memory, offsets = bytearray(), [0]
    for record in records:
        memory += record
        offsets.append(len(memory))
    return Decoded(np.frombuffer(memory, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def views(decoded: Decoded, records: NDArray[Any]) -> list[memoryview]:
    """Views of records of a group."""
    view = memoryview(decoded.memory.data)
    begins, ends = decoded.offsets[records].tolist(), decoded.offsets[records + 1].tolist()
    return [view[begin:end] for begin, end in zip(begins, ends, strict=True)]
