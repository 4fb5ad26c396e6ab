"""Nested dictionaries of tensors, as programs that train models keep them, in checkpoints. PyTorch need not be there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.background import Pending
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.given import Saved, blocks, replicated
from pario.checkpoint.reader import Part, State, load
from pario.checkpoint.sharded import Shards, parts_to_read, put, shards_of
from pario.checkpoint.trees import child, describe, rebuild, refused
from pario.checkpoint.writer import Writer

#: The array that says what the dictionary looks like.
_TREE = "state.json"
#: Elements that numpy does not know are numbers without a sign, of the same size.
_PLAIN = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def is_tensor(value: Any) -> bool:
    """Whether it is one of PyTorch's, which is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_array(tensor: Any) -> tuple[np.ndarray[Any, Any], str]:
    """The bytes of a tensor as an array, without a copy where it is in the host's memory; and the type of its elements."""
    kind = _kind(tensor)
    held = tensor.detach().cpu().contiguous()
    try:
        return held.numpy(), kind
    except TypeError:
        return held.view(getattr(sys.modules["torch"], _PLAIN[held.element_size()])).numpy(), kind


def _kind(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def to_tensor(array: np.ndarray[Any, Any], kind: str) -> Any:
    """A tensor of an array's memory. ``kind``: of its elements, where numpy does not know them."""
    try:
        import torch
    except ImportError as error:
        raise CheckpointError(f"tensors of type {kind} need PyTorch: pip install torch") from error
    made = torch.from_numpy(array)
    return made.view(getattr(torch, kind)) if kind else made


def save_state_dict(
    writer: Writer, step: int, state: Mapping[str, Any], attrs: Mapping[str, Any] | None = None, *, background: bool = False
) -> Path | Pending:
    """Saves nested dictionaries, lists and tuples of tensors, arrays, numbers, strings and None. Collective.

    Raises CheckpointError on every rank where one gives something else, and names it.

    What is the same on all ranks is saved once. Tensors that PyTorch has divided among ranks are saved in parts, other arrays where
    :func:`block` gives them so. ``background``: as :meth:`Writer.save_async` does it.
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
    """What :func:`save_state_dict` saved, whole on every rank: tensors as tensors, arrays as arrays. Collective.

    ``into``: a dictionary as the one that was saved, or a part of it. Its tensors take what was saved, and are in what is returned: of
    those that are divided among ranks each takes its part, however they were divided before.
    """
    state = load(comm, path, step=step)
    if _TREE not in state:
        raise CheckpointError(f"{state.path} was not saved by save_state_dict")
    tree = json.loads(state[_TREE].tobytes())
    targets = {} if into is None else dict(_targets(tree, into, "state", state.path))
    shards = {name: shards_of(tensor) for name, tensor in targets.items()}
    parts = {name: _parts(state, name, targets.get(name), shards.get(name)) for name in state if name != _TREE}
    arrays = state.read_pieces(parts)

    def leaf(about: Mapping[str, Any]) -> Any:
        name = about.get("tensor") or about["array"]
        if "array" in about and name not in targets:
            array = arrays[name][0]
            return array[()] if about.get("scalar") else array
        made = [to_tensor(array, about.get("type", "")) for array in arrays[name]]
        return _into(targets[name], shards[name], made) if name in targets else made[0]

    found: dict[str, Any] = rebuild(tree, leaf)
    return found


def _into(target: Any, shards: Shards | None, made: Sequence[Any]) -> Any:
    """A tensor that takes what was read of it."""
    if shards:
        put(shards, made)
    else:
        target.detach().copy_(made[0])
    return target


def _parts(state: State, name: str, target: Any, shards: Shards | None) -> list[Part] | None:
    """The parts of an array that are read for a tensor; None: all of it."""
    if target is None:
        return None
    shape = shards.shape if shards else tuple(target.shape)
    if shape != state.shape(name):
        raise CheckpointError(
            f"{state.path}: array '{name}' has shape {list(state.shape(name))}, the tensor that shall take it {list(shape)}"
        )
    return [*parts_to_read(shards)] if shards else None


def _targets(tree: Mapping[str, Any] | None, value: Any, name: str, path: Path) -> Iterator[tuple[str, Any]]:
    """The tensors of nested dictionaries by the names that their arrays have in a checkpoint."""
    if is_tensor(value):
        found = (tree or {}).get("tensor") or (tree or {}).get("array")
        if found is None:
            raise CheckpointError(f"{path} has no array '{name}'")
        yield found, value
    for key, one in value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ():
        yield from _targets(child(tree, key) if tree else None, one, f"{name}/{key}", path)


def _arrays(state: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a nested state, and its description, by name."""
    arrays: dict[str, Any] = {}

    def leaf(value: Any, name: str) -> dict[str, Any] | None:
        if is_tensor(value):
            arrays[name], kind = _given(value, name)
            return {"tensor": name, "type": kind}
        if isinstance(value, np.ma.MaskedArray) or getattr(getattr(value, "dtype", None), "hasobject", False):
            raise refused(value, name)
        if isinstance(value, Saved | np.ndarray | np.generic):
            arrays[name] = value
            return {"array": name, **({"scalar": True} if isinstance(value, np.generic) else {})}
        return None

    tree = json.dumps(describe(state, "state", leaf))
    return {**arrays, _TREE: np.frombuffer(tree.encode(), np.uint8)}


def _given(tensor: Any, name: str) -> tuple[Saved, str]:
    """What is saved of a tensor here, and the type of its elements."""
    try:
        return _blocks(tensor)
    except (TypeError, RuntimeError, NotImplementedError, AttributeError) as error:
        kind = f"{getattr(tensor, 'dtype', '')} {getattr(tensor, 'layout', '')}".strip()
        raise CheckpointError(f"{name}: a tensor of {kind} cannot be saved: {error}") from error


def _blocks(tensor: Any) -> tuple[Saved, str]:
    shards = shards_of(tensor)
    if shards is None:
        array, kind = to_array(tensor)
        return replicated(array), kind
    parts = [(to_array(local)[0], begin) for local, begin in shards.parts] if shards.saved_here else []
    return blocks(parts, shards.shape), _kind(tensor)
