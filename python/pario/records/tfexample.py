"""Reads the protocol buffer ``tf.train.Example``, without TensorFlow.

Grammar (https://protobuf.dev/programming-guides/encoding): Example { features = 1 }, Features {
map entries = 1 }, entry { key = 1, feature = 2 }, Feature { one of bytes_list = 1, float_list = 2,
int64_list = 3 }, each list { repeated value = 1 }, numbers packed or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_BYTES = 10


def parse_example(data: Any) -> dict[str, Any]:
    """The features by name: ``int64`` or ``float32`` arrays of shape (values,), ``bytes``, or a
    list of several ``bytes``.

    Raises ValueError if ``data`` is no Example.
    """
    features: dict[str, Any] = {}
    for _, content in _fields(memoryview(data), 1):
        for _, entry in _fields(content, 1):
            parts = dict(_fields(entry, 1, 2))
            features[str(parts.get(1, b""), "utf-8")] = _parse_feature(
                parts.get(2, memoryview(b""))
            )
    return features


def _parse_feature(data: memoryview) -> Any:
    import numpy as np

    for kind, values in _fields(data, 1, 2, 3):
        if kind == 1:
            found = [bytes(value) for _, value in _fields(values, 1)]
            return found[0] if len(found) == 1 else found
        if kind == 2:
            return np.concatenate(
                [np.empty(0, "<f4"), *(np.frombuffer(one, "<f4") for one in _numbers(values))]
            )
        return np.concatenate([np.empty(0, np.int64), *(_varints(one) for one in _numbers(values))])
    return []


def _fields(data: memoryview, *wanted: int) -> Iterator[tuple[int, memoryview]]:
    """Yields the fields with these numbers, which must consist of bytes; skips others."""
    for number, wire, value in _all_fields(data):
        if number in wanted:
            if wire != _BYTES:
                raise ValueError(f"no TF Example: field {number} has wire type {wire}")
            yield number, value


def _numbers(data: memoryview) -> Iterator[memoryview]:
    """Yields the bytes of a list's numbers, packed or one by one."""
    return (value for number, _, value in _all_fields(data) if number == 1)


def _all_fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire, begin = tag & 7, at
        if wire == _BYTES:
            length, begin = _varint(data, at)
            at = begin + length
        elif wire == _VARINT:
            _, at = _varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            at += 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"no TF Example: wire type {wire}")
        if at > len(data):
            raise ValueError("no TF Example: it ends within a field")
        yield tag >> 3, wire, data[begin:at]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = 0
    for place, byte in enumerate(data[at : at + _MOST_BYTES]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError("no TF Example: it ends within a number")


def _varints(data: memoryview) -> NDArray[Any]:
    """All numbers of packed bytes."""
    import numpy as np

    values = np.frombuffer(data, np.uint8)
    if not (values & 128).any():
        return values.astype(np.int64)
    ends = np.flatnonzero(values < 128)
    begins = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - begins + 1
    if not len(ends) or ends[-1] != len(values) - 1 or lengths.max() > _MOST_BYTES:
        raise ValueError("no TF Example: it ends within a number")
    places = np.arange(len(values)) - np.repeat(begins, lengths)
    parts = (values & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, begins).astype(np.int64)
