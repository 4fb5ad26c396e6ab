"""Safetensors files of arrays and tensors."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.safetensors import (
    METADATA,
    MOST_HEADER_BYTES,
    NAMES,
    TYPES,
    check_name,
    encode_header,
)
from pario.checkpoint.tensors import is_tensor, to_array, to_tensor
from pario.checkpoint.types import require_unmasked
from pario.paths import local_path
from pario.publishing import replacing

#: Bytes of the types that only PyTorch has.
_TORCH_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def write_safetensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes arrays and tensors to a safetensors file. Not collective.

    The file is flushed to the disk before it gets its name; an existing file stays until then.

    Parameters
    ----------
    path : path_like
        Local path of the file.
    tensors : mapping of str to array_like
        Arrays and tensors of any shape, by name.
    metadata : mapping of str to str, optional
        Text in the file's header.

    Raises
    ------
    CheckpointError
        If a type or a name is not one of safetensors, a value of ``metadata`` is no text, or the
        file cannot be written; names tensor, key or file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     checkpoint.write_safetensors(path, {"w": np.arange(3.0)})
    ...     checkpoint.read_safetensors(path)["w"].tolist()
    [0.0, 1.0, 2.0]
    """
    target = local_path(path, CheckpointError)
    for key, value in (metadata or {}).items():
        if not isinstance(value, str):
            raise CheckpointError(f"metadata '{key}': {value!r}; expected text")
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    contents, at = [], 0
    for name, value in tensors.items():
        check_name(name)
        if is_tensor(value):
            array, kind = to_array(value)
        else:
            array = _plain_array(name, value)
            kind = array.dtype.name
        if kind not in NAMES:
            raise CheckpointError(
                f"tensor '{name}': type {kind} is not one of safetensors: {', '.join(NAMES)}"
            )
        header[name] = {
            "dtype": NAMES[kind],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        contents.append(array.astype(array.dtype.newbyteorder("<"), order="C", copy=False))
        at += array.nbytes
    with replacing(target, CheckpointError) as file:
        file.write(encode_header(header))
        for array in contents:
            file.write(array.reshape(-1).view(np.uint8).data)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Opens a safetensors file. Not collective.

    Parameters
    ----------
    path : path_like
        Local path of the file.

    Returns
    -------
    dict of str to numpy.ndarray or torch.Tensor
        All tensors by name. Arrays are mapped: they read the file where they are used, and changes
        of them do not reach it. Types that numpy does not have are tensors.

    Raises
    ------
    CheckpointError
        If the file is not a safetensors file. OSError if it cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     checkpoint.write_safetensors(path, {"w": np.ones((2, 3), "f4")})
    ...     w = checkpoint.read_safetensors(path)["w"]
    >>> w.shape, w.dtype.name
    ((2, 3), 'float32')
    """
    source = local_path(path, CheckpointError)
    content = (
        np.memmap(source, np.uint8, mode="c") if source.stat().st_size else np.empty(0, np.uint8)
    )
    try:
        length = int.from_bytes(content[:8].tobytes(), "little")
        if not 2 <= length <= min(MOST_HEADER_BYTES, content.size - 8):
            raise ValueError("the header has a wrong length")
        header = json.loads(content[8 : 8 + length].tobytes())
        header.pop(METADATA, None)
        return {name: _tensor(content[8 + length :], **facts) for name, facts in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{os.fspath(path)} is no safetensors file: {error}") from error


def _plain_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(require_unmasked(value))
    except CheckpointError as error:
        raise CheckpointError(f"tensor '{name}': {error}") from error


def _tensor(
    content: np.ndarray[Any, Any], dtype: str, shape: list[int], data_offsets: list[int]
) -> Any:
    kind = TYPES[dtype]
    size = _TORCH_BYTES.get(kind) or np.dtype(kind).itemsize
    begin, end = data_offsets
    if not 0 <= begin <= end <= content.size or end - begin != math.prod(shape) * size:
        raise ValueError(f"bytes {begin} to {end} are not those of {shape} elements of {dtype}")
    data = content[begin:end]
    if kind in _TORCH_BYTES:
        return to_tensor(np.asarray(data).view(f"uint{8 * size}").reshape(shape), kind)
    return data.view(np.dtype(kind).newbyteorder("<")).reshape(shape)
