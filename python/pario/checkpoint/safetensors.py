"""Files in the safetensors format: 8 bytes with the length of a JSON header, the header, the bytes of the tensors."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.tensors import is_tensor, to_array, to_tensor
from pario.paths import local_path
from pario.publishing import replacing

#: Names of types in the file, and ours.
_TYPES = {
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
_NAMES = {ours: theirs for theirs, ours in _TYPES.items()}
#: Those that only PyTorch has.
_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
_MOST_HEADER = 100_000_000


def write_safetensors(path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays and tensors by name. The file has its name when it is whole and on the disk.

    Raises CheckpointError that names the tensor, or the file; then a file of this name is as before.
    """
    target = local_path(path, CheckpointError)
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    contents, at = [], 0
    for name, value in tensors.items():
        array, kind = to_array(value) if is_tensor(value) else (np.asarray(value), np.asarray(value).dtype.name)
        if kind not in _NAMES:
            raise CheckpointError(f"tensor '{name}': type {kind} is not one of safetensors: {', '.join(_NAMES)}")
        header[name] = {"dtype": _NAMES[kind], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        contents.append(array.astype(array.dtype.newbyteorder("<"), order="C", copy=False))
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with replacing(target, "safetensors", CheckpointError) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in contents:
            file.write(array.reshape(-1).view(np.uint8).data)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, Any]:
    """All tensors by name: arrays that read the file where they are used; tensors where numpy does not know the type."""
    source = local_path(path, CheckpointError)
    content = np.memmap(source, np.uint8, mode="c") if source.stat().st_size else np.empty(0, np.uint8)
    try:
        length = int.from_bytes(content[:8].tobytes(), "little")
        if not 2 <= length <= min(_MOST_HEADER, content.size - 8):
            raise ValueError("the header has a wrong length")
        header = json.loads(content[8 : 8 + length].tobytes())
        header.pop("__metadata__", None)
        return {name: _tensor(content[8 + length :], **facts) for name, facts in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{os.fspath(path)} is no safetensors file: {error}") from error


def _tensor(content: np.ndarray[Any, Any], dtype: str, shape: list[int], data_offsets: list[int]) -> Any:
    kind = _TYPES[dtype]
    size = _BYTES.get(kind) or np.dtype(kind).itemsize
    begin, end = data_offsets
    if not 0 <= begin <= end <= content.size or end - begin != math.prod(shape) * size:
        raise ValueError(f"bytes {begin} to {end} are not those of {shape} elements of {dtype}")
    data = content[begin:end]
    if kind in _BYTES:
        return to_tensor(np.asarray(data).view(f"uint{8 * size}").reshape(shape), kind)
    return data.view(np.dtype(kind).newbyteorder("<")).reshape(shape)
