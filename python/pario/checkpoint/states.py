"""Nested states of arrays and tensors, as training programs have them, in checkpoints.

A state is described in JSON (:mod:`pario.checkpoint.trees`). Arrays and tensors are saved by
name.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.arrays import Saved, blocks, replicated
from pario.checkpoint.background import Pending
from pario.checkpoint.container import TREE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.reader import State, load
from pario.checkpoint.reading import Part
from pario.checkpoint.tensors import (
    Shards,
    attrs_of,
    copy_to_shards,
    is_tensor,
    kind_of,
    parts_to_read,
    shards_of,
    to_array,
    to_tensor,
)
from pario.checkpoint.trees import child, describe, make_refusal, rebuild
from pario.checkpoint.types import keeps_values
from pario.checkpoint.writer import Writer

#: The kinds of leaves of a description, each with the name of its array.
_LEAVES = ("tensor", "array", "bytes", "pickle")


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
        A state like the saved one, or a part of it. Its tensors and arrays of numpy receive the
        saved elements and are returned; tensors that PyTorch divides among ranks receive their
        part, however they were divided before. Elements may be of another type that holds the saved
        values, but for the precision of floating-point numbers.

    Returns
    -------
    dict
        The state, whole on every rank but for the divided tensors of ``into``.

    Raises
    ------
    CheckpointError
        As :func:`load`; if :func:`save_state_dict` did not save the checkpoint, or a tensor or
        array of ``into`` is missing there, has another shape, or does not hold the saved values; on
        all ranks.

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
    return read_state_dict(load(comm, path, step=step), into)


def read_state_dict(state: State, into: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """As :func:`load_state_dict`, of an opened checkpoint."""
    if TREE not in state:
        raise CheckpointError(f"{state.name} was not saved by save_state_dict")
    tree: Mapping[str, Any] = json.loads(state[TREE].tobytes())
    targets = {} if into is None else dict(_targets(tree, into, "state", state))
    shards = {name: shards_of(one) if is_tensor(one) else None for name, one in targets.items()}
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
        if isinstance(targets[name], np.ndarray):
            targets[name][...] = _to_numpy(make_leaf(about, arrays[name][0]), targets[name].dtype)
            return targets[name]
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


def _to_numpy(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array or tensor as an array; numpy may lack the type of a tensor."""
    if not is_tensor(value):
        return value
    import torch

    return value.to(getattr(torch, dtype.name)).numpy()


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
            f"{state.name}: array '{name}' has shape {list(state.shape(name))}, its target"
            f" {list(shape)}"
        )
    return [*parts_to_read(shards)] if shards else None


def _targets(
    tree: Mapping[str, Any] | None, value: Any, name: str, state: State
) -> Iterator[tuple[str, Any]]:
    """The tensors and arrays of a nested state, by the names of their arrays in a checkpoint."""
    items: Any = ()
    if is_tensor(value) or isinstance(value, np.ndarray):
        found = (tree or {}).get("tensor") or (tree or {}).get("array")
        if found is None:
            raise CheckpointError(f"{state.name} has no array '{name}'")
        _require_fit(state, found, (tree or {}).get("type"), value)
        yield found, value
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, one in items:
        yield from _targets(child(tree, key) if tree else None, one, f"{name}/{key}", state)


def _require_fit(state: State, name: str, kind: str | None, target: Any) -> None:
    """Raises CheckpointError for a target that does not hold the values of an array or tensor."""
    saved = kind or state.dtype(name).name
    own = kind_of(target) if is_tensor(target) else target.dtype.name
    if not keeps_values(saved, own):
        raise CheckpointError(
            f"{state.name}: the elements of array '{name}' are {saved}, those of its target {own},"
            " which does not hold their values"
        )
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise CheckpointError(f"{state.name}: the target of array '{name}' is read-only")


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
        kind = kind_of(tensor)
        return blocks(parts, shards.shape, attrs=attrs_of(kind)), kind
    except (TypeError, RuntimeError, NotImplementedError, AttributeError) as error:
        kind = f"{getattr(tensor, 'dtype', '')} {getattr(tensor, 'layout', '')}".strip()
        raise CheckpointError(f"{name}: a tensor of {kind} cannot be saved: {error}") from error
