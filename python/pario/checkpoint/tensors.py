"""Nested dictionaries of tensors, as programs that train models keep them, in checkpoints. PyTorch need not be there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.background import Pending
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.given import Saved, blocks, replicated
from pario.checkpoint.reader import Part, State, load
from pario.checkpoint.sharded import Shards, parts_to_read, put, shards_of
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

    What is the same on all ranks is saved once. Tensors that PyTorch has divided among ranks are saved in parts, other arrays where
    :func:`block` gives them so. ``background``: as :meth:`Writer.save_async` does it.
    """
    arrays: dict[str, Any] = {}
    tree = json.dumps(_flattened(state, "state", arrays))
    arrays[_TREE] = np.frombuffer(tree.encode(), np.uint8)
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
    targets = {} if into is None else dict(_tensors(into, "state"))
    shards = {name: shards_of(tensor) for name, tensor in targets.items()}
    parts = {name: _parts(state, name, targets.get(name), shards.get(name)) for name in dict.fromkeys([*state, *targets]) if name != _TREE}
    arrays = state.read_pieces(parts)

    def tensor(name: str, kind: str = "") -> Any:
        made = [to_tensor(array, kind) for array in arrays[name]]
        if name not in targets:
            return made[0]
        divided = shards[name]
        if divided:
            put(divided, made)
        else:
            targets[name].detach().copy_(made[0])
        return targets[name]

    def array(name: str) -> Any:
        return tensor(name) if name in targets else arrays[name][0]

    found: dict[str, Any] = _nested(tree, array, tensor)
    return found


def _parts(state: State, name: str, target: Any, shards: Shards | None) -> list[Part] | None:
    """What of an array is read for a tensor. A name that the checkpoint has not is an error of who reads it."""
    if target is None or name not in state:
        return None
    shape = shards.shape if shards else tuple(target.shape)
    if shape != state.shape(name):
        raise CheckpointError(
            f"{state.path}: array '{name}' has shape {list(state.shape(name))}, the tensor that shall take it {list(shape)}"
        )
    return [*parts_to_read(shards)] if shards else None


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors of nested dictionaries by the names that their arrays have."""
    if is_tensor(value):
        yield name, value
    for key, one in value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ():
        yield from _tensors(one, f"{name}/{_spelt(key)}")


def _flattened(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """What is to be said of a value, in JSON; its arrays go to ``arrays``."""
    if isinstance(value, Mapping):
        return {"dict": [[key, _flattened(one, f"{name}/{_spelt(key)}", arrays)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_flattened(one, f"{name}/{number}", arrays) for number, one in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if name in arrays:
        raise CheckpointError(f"two arrays have the name {name}")
    if is_tensor(value):
        arrays[name], kind = _given(value)
        return {"tensor": name, "type": kind}
    if isinstance(value, Saved | np.ndarray | np.generic):
        arrays[name] = value
        return {"array": name}
    raise CheckpointError(
        f"{name}: {type(value).__name__} cannot be saved; expected tensors, arrays, numbers, strings, and what holds them"
    )


def _given(tensor: Any) -> tuple[Saved, str]:
    """What is saved of a tensor here, and the type of its elements."""
    shards = shards_of(tensor)
    if shards is None:
        array, kind = to_array(tensor)
        return replicated(array), kind
    parts = [(to_array(local)[0], begin) for local, begin in shards.parts] if shards.saved_here else []
    return blocks(parts, shards.shape), _kind(tensor)


def _spelt(key: Any) -> str:
    if not isinstance(key, str | int):
        raise CheckpointError(f"key {key!r} cannot be saved; expected a string or a number")
    return str(key).replace("/", "|") or "empty"


def _nested(tree: dict[str, Any], array: Callable[[str], Any], tensor: Callable[[str, str], Any]) -> Any:
    """``array`` makes one, by name, and ``tensor`` by name and type of its elements."""
    if "dict" in tree:
        return {key: _nested(one, array, tensor) for key, one in tree["dict"]}
    if "list" in tree:
        return [_nested(one, array, tensor) for one in tree["list"]]
    if "tuple" in tree:
        return tuple(_nested(one, array, tensor) for one in tree["tuple"])
    if "tensor" in tree:
        return tensor(tree["tensor"], tree["type"])
    return array(tree["array"]) if "array" in tree else tree["value"]
