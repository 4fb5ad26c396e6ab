"""Nested states of tensors, as training programs have them, in checkpoints and safetensors files.

A state is described in JSON (:mod:`pario.checkpoint.trees`). Arrays and tensors are saved by name.
PyTorch is imported only where it is needed.
"""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.arrays import Saved, blocks, replicated
from pario.checkpoint.background import Pending
from pario.checkpoint.container import TORCH_TYPE, TREE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape
from pario.checkpoint.reader import State, load
from pario.checkpoint.reading import Part
from pario.checkpoint.safetensors import MOST_HEADER_BYTES, NAMES, TYPES, encode_header
from pario.checkpoint.trees import child, describe, make_refusal, rebuild
from pario.checkpoint.writer import Writer
from pario.paths import local_path
from pario.publishing import replacing

#: The kinds of leaves of a description, each with the name of its array.
_LEAVES = ("tensor", "array", "bytes", "pickle")
#: Types of the same size for elements that numpy does not have.
_UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}

#: Bytes of the types that only PyTorch has.
_TORCH_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def save_state_dict(
    writer: Writer,
    step: int,
    state: Mapping[str, Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    background: bool = False,
) -> Path | Pending:
    """Saves a nested state as the checkpoint of a step. Collective over the ranks of the Writer.

    Tensors that PyTorch divides among ranks (DTensor, ShardedTensor) are saved in parts, and so are
    arrays given by :func:`block` and :func:`blocks`. Other values must be equal on all ranks, and
    are saved once.

    Parameters
    ----------
    writer : Writer
        The Writer of the directory.
    step : int
        Number from 0 on.
    state : mapping
        Nested dictionaries, lists and tuples of tensors, arrays, numbers, strings and None.
    attrs : mapping, optional
        Attributes of the checkpoint, as for :meth:`Writer.save`.
    background : bool, optional
        Saves as :meth:`Writer.save_async`.

    Returns
    -------
    pathlib.Path or Pending
        The complete checkpoint, or with ``background`` the one being saved.

    Raises
    ------
    CheckpointError
        If a value has another type, on all ranks, with its name; else as :meth:`Writer.save`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> state = {"model": {"weight": np.ones((2, 3))}, "epoch": 3}
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path) as writer:
    ...         saved = checkpoint.save_state_dict(writer, 1, state)
    ...     loaded = checkpoint.load_state_dict(None, path)
    >>> loaded["epoch"], loaded["model"]["weight"].shape
    (3, (2, 3))
    """
    arrays: dict[str, Any] = writer.agree(f"save_state_dict(step {step})", lambda: _arrays(state))
    return (writer.save_async if background else writer.save)(step, arrays, attrs)


def load_state_dict(
    comm: Any,
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    into: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Loads a state saved by :func:`save_state_dict`. Collective over ``comm``.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup, or None
        The ranks that load together, as many as there are now.
    path : path_like
        Directory of checkpoints, or a checkpoint.
    step : int, optional
        Loads this step instead of the newest one.
    into : mapping, optional
        A state like the saved one, or a part of it. Its tensors receive the saved elements and are
        returned; those that PyTorch divides among ranks receive their part, however they were
        divided before.

    Returns
    -------
    dict
        The state, whole on every rank but for the divided tensors of ``into``.

    Raises
    ------
    CheckpointError
        As :func:`load`; if :func:`save_state_dict` did not save the checkpoint, or a tensor of
        ``into`` is missing there or has another shape; on all ranks.

    Examples
    --------
    >>> import tempfile
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path) as writer:
    ...         saved = checkpoint.save_state_dict(writer, 7, {"lr": [0.1, 0.01]})
    ...     checkpoint.load_state_dict(None, path)
    {'lr': [0.1, 0.01]}
    """
    state = load(comm, path, step=step)
    if TREE not in state:
        raise CheckpointError(f"{state.path} was not saved by save_state_dict")
    return _read_state(state, json.loads(state[TREE].tobytes()), into)


def _read_state(
    state: State, tree: Mapping[str, Any], into: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Reads the arrays of a described state, into the tensors of ``into`` where it has them."""
    targets = {} if into is None else dict(_targets(tree, into, "state", state.path))
    shards = {name: shards_of(tensor) for name, tensor in targets.items()}
    parts = {
        name: _parts(state, name, targets.get(name), shards.get(name))
        for name in state
        if name != TREE
    }
    arrays = state.read_pieces(parts)

    def leaf(about: Mapping[str, Any]) -> Any:
        name = array_of_leaf(about)
        if name not in targets:
            return make_leaf(about, arrays[name][0])
        made = [to_tensor(array, about.get("type", "")) for array in arrays[name]]
        return _copy_into(targets[name], shards[name], made)

    found: dict[str, Any] = rebuild(tree, leaf)
    return found


def array_of_leaf(about: Mapping[str, Any]) -> str:
    """The name of the array with the elements of a leaf."""
    return str(next(about[kind] for kind in _LEAVES if kind in about))


def make_leaf(about: Mapping[str, Any], array: np.ndarray[Any, Any]) -> Any:
    """The value of a leaf. Raises CheckpointError for a pickle that may run any code."""
    if "tensor" in about:
        return to_tensor(array, about.get("type", ""))
    if "array" in about:
        return array[()] if about.get("scalar") else array
    if "pickle" in about:
        return unpickle(array.tobytes(), about["pickle"])
    made = array.tobytes()
    return {"bytes": bytes, "bytearray": bytearray, "BytesIO": io.BytesIO}[about["type"]](made)


def unpickle(content: bytes, name: str, *, trusted: bool = False) -> Any:
    """Loads a value saved by ``torch.save``.

    ``trusted``: also values that run functions of other modules when they are loaded, which are a
    CheckpointError otherwise.
    """
    import torch

    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if trusted:
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
        reason = re.search(r"Unsupported global: \S+ \S+", str(error))
        raise CheckpointError(
            f"{name} is a pickle, which may run any code when it is loaded"
            f" ({reason[0] if reason else 'it is not of tensors and plain values'});"
            " allow_pickle=True loads it"
        ) from error


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
        If a type is not one of safetensors, or the file cannot be written; names tensor or file.

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
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    contents, at = [], 0
    for name, value in tensors.items():
        if is_tensor(value):
            array, kind = to_array(value)
        else:
            array = np.asarray(value)
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
        header.pop("__metadata__", None)
        return {name: _tensor(content[8 + length :], **facts) for name, facts in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{os.fspath(path)} is no safetensors file: {error}") from error


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


def is_tensor(value: Any) -> bool:
    """True for a tensor of PyTorch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_array(tensor: Any) -> tuple[np.ndarray[Any, Any], str]:
    """The elements of a tensor as an array, of any strides, and their type. Copied only from
    accelerators, and where a conjugate is not yet computed."""
    kind = _kind(tensor)
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        return held.numpy(), kind
    except TypeError:
        unsigned = getattr(sys.modules["torch"], _UNSIGNED[held.element_size()])
        return held.view(unsigned).numpy(), kind


def _kind(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def attrs_of(kind: str) -> dict[str, str]:
    """The attributes of an array with the elements of a tensor: their type, if numpy does not have
    it."""
    return {} if hasattr(np, kind) else {TORCH_TYPE: kind}


def to_tensor(array: np.ndarray[Any, Any], kind: str) -> Any:
    """A tensor in an array's memory. ``kind``: the type of elements that numpy does not have."""
    try:
        import torch
    except ImportError as error:
        raise CheckpointError(f"tensors of type {kind} need PyTorch: pip install torch") from error
    made = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    return made.view(getattr(torch, kind)) if kind else made


@dataclass(frozen=True)
class Shards:
    """This rank's parts of a tensor that PyTorch divides among ranks."""

    shape: Shape  # of the whole tensor
    parts: tuple[tuple[Any, Shape], ...]  # tensors, and their offsets
    saved_here: bool  # False on ranks with copies of another rank's parts


def shards_of(tensor: Any) -> Shards | None:
    """The parts of a DTensor, as FSDP and tensor parallelism make them, or of a ShardedTensor; None
    for other tensors."""
    if hasattr(tensor, "device_mesh"):
        return _shards_of_dtensor(tensor)
    if hasattr(tensor, "local_shards"):
        parts = tuple(
            (shard.tensor.detach(), tuple(shard.metadata.shard_offsets))
            for shard in tensor.local_shards()
        )
        return Shards(tuple(tensor.size()), parts, saved_here=True)
    return None


def _shards_of_dtensor(tensor: Any) -> Shards:
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:  # this rank is not in the mesh
        return Shards(tuple(tensor.shape), (), saved_here=False)
    if any(placement.is_partial() for placement in tensor.placements):
        raise CheckpointError(
            f"a tensor with placements {tensor.placements} is a sum that was not made; expected"
            " Shard or Replicate"
        )
    offsets = [tuple(chunk.offsets) for chunk in tensor.__create_chunk_list__()]
    copies = [
        at
        for at, placement in zip(coordinate, tensor.placements, strict=True)
        if placement.is_replicate()
    ]
    parts = ((tensor.detach().to_local(), offsets[0]),)
    return Shards(tuple(tensor.shape), parts, saved_here=not any(copies))


def parts_to_read(shards: Shards) -> list[tuple[Shape, Shape]]:
    """Offset and shape of each part of this rank."""
    return [(at, tuple(local.shape)) for local, at in shards.parts]


def copy_to_shards(shards: Shards, read: Sequence[Any]) -> None:
    """Copies tensors that were read into this rank's parts."""
    for (local, _), data in zip(shards.parts, read, strict=True):
        local.copy_(data)


def _copy_into(target: Any, shards: Shards | None, made: Sequence[Any]) -> Any:
    """Copies tensors that were read into a target, and returns it."""
    if shards:
        copy_to_shards(shards, made)
    else:
        target.detach().copy_(made[0])
    return target


def _parts(state: State, name: str, target: Any, shards: Shards | None) -> list[Part] | None:
    """The parts of an array to read for a tensor; None: all of it."""
    if target is None:
        return None
    shape = shards.shape if shards else tuple(target.shape)
    if shape != state.shape(name):
        raise CheckpointError(
            f"{state.path}: array '{name}' has shape {list(state.shape(name))}, its target tensor"
            f" {list(shape)}"
        )
    return [*parts_to_read(shards)] if shards else None


def _targets(
    tree: Mapping[str, Any] | None, value: Any, name: str, path: Path
) -> Iterator[tuple[str, Any]]:
    """The tensors of a nested state, by the names of their arrays in a checkpoint."""
    items: Any = ()
    if is_tensor(value):
        found = (tree or {}).get("tensor") or (tree or {}).get("array")
        if found is None:
            raise CheckpointError(f"{path} has no array '{name}'")
        yield found, value
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, one in items:
        yield from _targets(child(tree, key) if tree else None, one, f"{name}/{key}", path)


def _arrays(state: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a nested state, and its description, by name."""
    arrays: dict[str, Any] = {}

    def leaf(value: Any, name: str) -> dict[str, Any] | None:
        if is_tensor(value):
            arrays[name], kind = _saved_of(value, name)
            return {"tensor": name, "type": kind}
        has_objects = getattr(getattr(value, "dtype", None), "hasobject", False)
        if isinstance(value, np.ma.MaskedArray) or has_objects:
            raise make_refusal(value, name)
        if isinstance(value, Saved | np.ndarray | np.generic):
            arrays[name] = value
            return {"array": name, **({"scalar": True} if isinstance(value, np.generic) else {})}
        return None

    tree = json.dumps(describe(state, "state", leaf))
    return {**arrays, TREE: np.frombuffer(tree.encode(), np.uint8)}


def _saved_of(tensor: Any, name: str) -> tuple[Saved, str]:
    """The parts of a tensor to be saved here, and the type of its elements."""
    try:
        shards = shards_of(tensor)
        if shards is None:
            array, kind = to_array(tensor)
            return replicated(array, attrs=attrs_of(kind)), kind
        local = shards.parts if shards.saved_here else ()
        parts = [(to_array(part)[0], begin) for part, begin in local]
        kind = _kind(tensor)
        return blocks(parts, shards.shape, attrs=attrs_of(kind)), kind
    except (TypeError, RuntimeError, NotImplementedError, AttributeError) as error:
        kind = f"{getattr(tensor, 'dtype', '')} {getattr(tensor, 'layout', '')}".strip()
        raise CheckpointError(f"{name}: a tensor of {kind} cannot be saved: {error}") from error
