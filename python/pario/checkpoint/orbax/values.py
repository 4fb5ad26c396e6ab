"""The values of Orbax's trees as arrays of a checkpoint, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from orbax import checkpoint as ocp

from pario.checkpoint import trees
from pario.checkpoint.arrays import Saved, blocks
from pario.checkpoint.container import TREE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, whole
from pario.checkpoint.reader import State

#: The array with the shardings, and the kinds of random keys, in JSON.
ABOUT = "jax.json"
Array = np.ndarray[Any, Any]
#: Parts of an array on this process, with their offsets.
Parts = list[tuple[Array, Shape]]


def name_of(info: Any) -> str:
    """The name of the array of a value."""
    return trees.array_name(info.name)


@dataclass
class Collected:
    """The values of a tree that this process saves, copied to the host's memory."""

    is_first: bool  # the process that describes the tree
    arrays: dict[str, Saved] = field(default_factory=dict)
    _tree: dict[trees.Path, dict[str, Any]] = field(default_factory=dict)
    _shardings: dict[str, int] = field(default_factory=dict)  # numbers, by their text
    _about: dict[str, dict[str, Any]] = field(default_factory=dict)  # by array

    def add_whole(self, info: Any, arg: Any, value: Any) -> None:
        """Adds an array or a number, of which the first process saves its own."""
        array = np.array(value, _dtype_of(arg))
        self._add(info, [(array, (0,) * array.ndim)] if self.is_first else [], array.shape)

    def add_sharded(self, info: Any, arg: Any, value: Any) -> None:
        """Adds an array of JAX: the shards of this process, without copies of others."""
        if jax.process_count() > 1 and value.is_fully_addressable:
            raise CheckpointError(
                f"{info.name}: an array of one process; expected an array of all processes, as"
                " jax.make_array_from_process_local_data makes them"
            )
        about: dict[str, Any] = {}
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            about["key"] = str(jax.random.key_impl(value))
            value = jax.random.key_data(value)
        if text := _describe_sharding(value.sharding):
            about["sharding"] = self._shardings.setdefault(text, len(self._shardings))
        shards = [one for one in value.addressable_shards if one.replica_id == 0]
        # On CPUs numpy's view is JAX's own memory, which the program may donate.
        parts = [
            (np.array(one.data, _dtype_of(arg)), _box_of(one.index, value.shape).begin)
            for one in shards
        ]
        self._about[name_of(info)] = about
        self._add(info, parts, value.shape)

    def _add(self, info: Any, parts: Parts, shape: Sequence[int]) -> None:
        name = name_of(info)
        if name in self.arrays:
            raise CheckpointError(f"{info.name}: several values have this key")
        self.arrays[name] = blocks(parts, shape)
        self._tree[_path_of(info)] = {"array": name}

    def describe(self) -> dict[str, Saved]:
        """All arrays, with those that describe them."""
        about = {"shardings": list(self._shardings), "arrays": self._about}
        described = {TREE: trees.nest(self._tree), ABOUT: about}
        return {**self.arrays, **{name: self._text(one) for name, one in described.items()}}

    def _text(self, value: Any) -> Saved:
        made = np.frombuffer(json.dumps(value).encode(), np.uint8)
        return blocks([(made, (0,))] if self.is_first else [], made.shape)


def _dtype_of(arg: Any) -> Any:
    return getattr(arg, "dtype", None)


def _path_of(info: Any) -> trees.Path:
    """The keys that lead to a value."""
    path = [
        next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name))
        for key in info.keypath or ()
    ]
    return tuple(key if isinstance(key, int) else str(key) for key in path) or (info.name,)


def _describe_sharding(sharding: Any) -> str:
    """A sharding in JSON; empty for kinds that Orbax does not describe."""
    for kind, described in (
        (jax.sharding.NamedSharding, ocp.metadata.NamedShardingMetadata),
        (jax.sharding.SingleDeviceSharding, ocp.metadata.SingleDeviceShardingMetadata),
    ):
        if isinstance(sharding, kind):
            return str(described.from_jax_sharding(sharding).to_serialized_string())
    return ""


def _box_of(index: Any, shape: Sequence[int]) -> Box:
    """The box of the elements that a tuple of slices selects."""
    begins, ends = [], []
    for one, length in zip(index, shape, strict=True):
        begin, end, _ = one.indices(length)
        begins.append(begin)
        ends.append(end)
    return Box(tuple(begins), tuple(np.subtract(ends, begins).tolist()))


class SavedValues:
    """A checkpoint of a tree's values, with their shardings. Collective."""

    def __init__(self, state: State) -> None:
        self.state = state
        found = json.loads(state[ABOUT].tobytes())
        self._shardings, self._arrays = found["shardings"], found["arrays"]

    def sharding(self, name: str) -> Any:
        """Orbax's description of the sharding of a saved array; None if it has none."""
        number = self._arrays.get(name, {}).get("sharding")
        if number is None:
            return None
        about = json.loads(self._shardings[number])
        kind = (
            ocp.metadata.NamedShardingMetadata
            if about["sharding_type"] == "NamedSharding"
            else ocp.metadata.SingleDeviceShardingMetadata
        )
        return kind.from_deserialized_dict(about)

    def key(self, name: str) -> str | None:
        """The implementation of random keys; None for other arrays."""
        found: str | None = self._arrays.get(name, {}).get("key")
        return found


@dataclass(frozen=True)
class Wanted:
    """The parts of an array that this process reads, and a function that makes a value of them."""

    boxes: Sequence[Box]
    make: Callable[[Sequence[Array]], Any]


def want_whole(arg: Any, saved: SavedValues, name: str) -> Wanted:
    """An array of numpy."""
    shape, dtype = saved.state.shape(name), _dtype_of(arg)
    return Wanted(
        [Box((0,) * len(shape), shape)],
        lambda pieces: pieces[0] if dtype is None else pieces[0].astype(dtype, copy=False),
    )


def want_scalar(arg: Any, saved: SavedValues, name: str) -> Wanted:
    """A number, of the type that Orbax's caller asks for."""
    array, kind = want_whole(arg, saved, name), getattr(arg, "restore_type", None)

    def make(pieces: Sequence[Array]) -> Any:
        value = array.make(pieces).item()
        return kind(value) if isinstance(kind, type) else value

    return Wanted(array.boxes, make)


def want_sharded(arg: Any, saved: SavedValues, name: str) -> Wanted:
    """An array of JAX: the shards of this process's devices."""
    state = saved.state
    shape = _shape_of(arg, state, name)
    sharding, key = _choose_sharding(arg, saved, name), saved.key(name)
    try:
        indices = sharding.addressable_devices_indices_map(shape).values()
    except ValueError as error:
        raise CheckpointError(f"{state.name}: array '{name}': {error}") from error
    boxes = list(dict.fromkeys(_box_of(index, shape) for index in indices))
    stored = [box.meet(whole(state.shape(name))) for box in boxes]
    dtype = state.dtype(name) if key or _dtype_of(arg) is None else np.dtype(_dtype_of(arg))

    def make(pieces: Sequence[Array]) -> jax.Array:
        by_box = {
            box: _pad(box, part, piece).astype(dtype, copy=False)
            for box, part, piece in zip(boxes, stored, pieces, strict=True)
        }
        made = jax.make_array_from_callback(
            shape, sharding, lambda index: by_box[_box_of(index, shape)], dtype=dtype
        )
        return jax.random.wrap_key_data(made, impl=key) if key else made

    return Wanted(stored, make)


def _shape_of(arg: Any, state: State, name: str) -> Shape:
    """The shape of an array of JAX: another than the saved one only where Orbax's caller asks to
    pad and cut arrays."""
    shape, asked = state.shape(name), getattr(arg, "global_shape", None)
    if asked is None or tuple(asked) == shape:
        return shape
    if arg.strict or len(asked) != len(shape):
        raise CheckpointError(
            f"{state.name}: array '{name}' has shape {list(shape)}, its ArrayRestoreArgs"
            f" {list(asked)}"
        )
    return tuple(asked)


def _pad(box: Box, part: Box, piece: Array) -> Array:
    """The elements of a box: those of ``part``, and zeros where nothing was saved."""
    if part == box:
        return piece
    padded = np.zeros(box.shape, piece.dtype)
    if part.size:
        padded[part.within(box)] = piece
    return padded


def _choose_sharding(arg: Any, saved: SavedValues, name: str) -> Any:
    """The sharding that is asked for, else the saved one."""
    place = f"{saved.state.name}: array '{name}'"
    mesh, axes = getattr(arg, "mesh", None), getattr(arg, "mesh_axes", None)
    if mesh is not None and axes is not None:
        return jax.sharding.NamedSharding(mesh, axes)
    found = getattr(arg, "sharding", None)
    if found is None:
        found = saved.sharding(name)
    found = getattr(found, "sharding", found)  # of a jax.experimental.layout.Format
    try:
        made = (
            found.to_jax_sharding() if isinstance(found, ocp.metadata.ShardingMetadata) else found
        )
    except (ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{place} was saved on other devices ({error}); expected a sharding in its"
            " ArrayRestoreArgs"
        ) from error
    if made is None:
        raise CheckpointError(f"{place}: expected a sharding in its ArrayRestoreArgs")
    return made
