"""The header of safetensors files, also of HDF5 files that are safetensors files at the same time.

Such a file has the header in HDF5's user block. Safetensors requires that tensors cover all bytes
after the header, so that the bytes of HDF5 between the arrays are tensors, too: ``pario.0`` and so
on, of type U8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape

#: Types of safetensors files, and ours.
TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}
NAMES = {ours: theirs for theirs, ours in TYPES.items()}
#: Most bytes of a header that the safetensors package reads.
MOST_HEADER_BYTES = 100_000_000
#: Most bytes of the length of an axis, and of the rest of a tensor with the gap before it.
_AXIS_BYTES, _ENTRY_BYTES = 24, 300
_FORMAT = {"format": "pt"}  # transformers requires it
#: The entry of a header with text about the file.
METADATA = "__metadata__"


@dataclass(frozen=True)
class Tensor:
    """A tensor in a file."""

    name: str
    type: str  # a key of TYPES
    shape: Shape
    place: int  # first byte in the file
    nbytes: int


def check_name(name: str) -> None:
    """Raises CheckpointError if no tensor of a safetensors file can have this name."""
    if name == METADATA:
        raise CheckpointError(f"tensor '{name}': safetensors files have another entry of this name")


def encode_header(entries: Mapping[str, Any]) -> bytes:
    """The beginning of a file: the length of the header, and the header."""
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def header_bytes(tensors: Iterable[tuple[str, Shape]]) -> int:
    """The most bytes of a covering header for tensors with these names and shapes."""
    sizes = (
        len(json.dumps(name)) + _AXIS_BYTES * len(shape) + _ENTRY_BYTES for name, shape in tensors
    )
    return 2 * _ENTRY_BYTES + sum(sizes)


def encode_covering_header(tensors: Sequence[Tensor], start: int, size: int) -> bytes:
    """The first ``start`` bytes of a file of ``size`` bytes with these tensors.

    Raises CheckpointError where the header needs more bytes, or more than safetensors allows.
    """
    used = {tensor.name for tensor in tensors}
    for name in used:
        check_name(name)
    free = (name for number in count() if (name := f"pario.{number}") not in used)
    entries: dict[str, Any] = {METADATA: _FORMAT}
    at = start
    whole_file = Tensor("", "", (), size, 0)
    for tensor in (*sorted(tensors, key=lambda one: one.place), whole_file):
        if tensor.place > at:
            gap = tensor.place - at
            filler = Tensor(next(free), "U8", (gap,), at, gap)
            entries[filler.name] = _entry(filler, start)
        at = max(at, tensor.place + tensor.nbytes)
        if tensor is not whole_file:
            entries[tensor.name] = _entry(tensor, start)
    text = json.dumps(entries).encode()
    most = min(start - 8, MOST_HEADER_BYTES)
    if len(text) > most:
        raise CheckpointError(f"the safetensors header has {len(text)} bytes, more than {most}")
    return most.to_bytes(8, "little") + text.ljust(most)


def _entry(tensor: Tensor, start: int) -> dict[str, Any]:
    begin = tensor.place - start if tensor.nbytes else 0
    offsets = [begin, begin + tensor.nbytes]
    return {"dtype": tensor.type, "shape": list(tensor.shape), "data_offsets": offsets}
