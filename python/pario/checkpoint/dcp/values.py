"""The values that a plan of PyTorch assigns to a rank, as arrays and their descriptions."""

from __future__ import annotations

import io
import json
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType

from pario.checkpoint import trees
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape
from pario.checkpoint.tensors import to_array
from pario.checkpoint.types import is_stored

#: Types of values that JSON describes exactly; others are pickled.
_PLAIN = (dict, OrderedDict, list, tuple, torch.Size, str, int, float, bool, type(None))
_KEYS = (str, int, bool)
Array = np.ndarray[Any, Any]


@dataclass
class Facts:
    """The facts about a rank's values that rank 0 needs."""

    #: Shapes of arrays and types of their elements, by name.
    arrays: dict[str, tuple[Shape, str]] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # descriptions, by key
    paths: dict[str, trees.Path] = field(default_factory=dict)  # in the nested state, by key


@dataclass
class Collected:
    """The values that a plan assigns to this rank."""

    facts: Facts = field(default_factory=Facts)
    parts: dict[str, list[tuple[Array, Shape]]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)  # bytes, by key

    def collect(self, plan: SavePlan, planner: SavePlanner) -> Facts:
        """Collects all values. Raises CheckpointError that names one that cannot be saved."""
        for item in plan.items:
            key = item.index.fqn
            if item.type == WriteItemType.BYTE_IO:
                self._add_object(key, _value_of(planner, item))
            else:
                self._add_part(key, item, planner.resolve_data(item))
            path = (plan.planner_data or {}).get(key) if _has_paths(plan) else None
            self.facts.paths[key] = path or (key,)
        return self.facts

    def _add_part(self, key: str, item: WriteItem, tensor: torch.Tensor) -> None:
        try:
            array, kind = to_array(tensor)
        except (TypeError, RuntimeError, NotImplementedError) as error:
            raise CheckpointError(
                f"{key}: a tensor of {tensor.dtype} {tensor.layout} cannot be saved: {error}"
            ) from error
        name, about = trees.array_name(key), item.tensor_data
        self.facts.arrays[name] = tuple(about.size), kind
        self.facts.values[key] = {"tensor": name, "type": kind}
        self.parts.setdefault(name, []).append((array, tuple(about.chunk.offsets)))
        self.sizes[key] += array.nbytes

    def _add_object(self, key: str, value: Any) -> None:
        arrays: dict[str, Array] = {}
        try:
            tree = trees.describe(value, key, _Leaves(trees.array_name(key), arrays).describe)
        except CheckpointError:
            arrays.clear()
            value = value if isinstance(value, _Pickled) else _Pickled(value)
            tree = _Leaves(trees.array_name(key), arrays).add("pickle", value.content)
        self.facts.values[key] = trees.keep_whole(tree)
        for name, array in arrays.items():
            self.facts.arrays[name] = array.shape, array.dtype.name
            self.parts[name] = [(array, (0,) * array.ndim)]
            self.sizes[key] += array.nbytes


class _Pickled:
    """A value as ``torch.save`` writes it."""

    def __init__(self, value: Any, content: bytes | None = None) -> None:
        if content is None:
            made = io.BytesIO()
            torch.save(value, made)
            content = made.getvalue()
        self.content = np.frombuffer(content, np.uint8)


def _value_of(planner: SavePlanner, item: WriteItem) -> Any:
    """The value of an item that is not a tensor; pickled where the planner may change it."""
    kind = type(planner)
    if (
        isinstance(planner, DefaultSavePlanner)
        and kind.resolve_data is DefaultSavePlanner.resolve_data
        and kind.transform_object is DefaultSavePlanner.transform_object
    ):
        return planner.lookup_object(item.index)
    return _Pickled(None, planner.resolve_data(item).getvalue())


def _has_paths(plan: SavePlan) -> bool:
    """True if the planner has flattened a nested state."""
    return isinstance(plan.planner_data, dict) and all(
        isinstance(path, tuple) for path in plan.planner_data.values()
    )


class _Leaves:
    """Describes the values within an object that are not JSON; ``arrays`` receives their bytes."""

    def __init__(self, name: str, arrays: dict[str, Array]) -> None:
        self._name, self._arrays = name, arrays

    def add(self, kind: str, array: Array, **more: Any) -> dict[str, Any]:
        """Adds an array. Returns the description of a leaf of this kind."""
        name = f"{self._name}/{len(self._arrays)}"
        self._arrays[name] = array
        return {kind: name, **more}

    def describe(self, value: Any, name: str) -> dict[str, Any] | None:
        """A :data:`pario.checkpoint.trees.Leaf`; refuses values that JSON would change."""
        kind = type(value)
        if kind in (bytes, bytearray, io.BytesIO):
            content = value.getvalue() if kind is io.BytesIO else value
            return self.add("bytes", np.frombuffer(content, np.uint8), type=kind.__name__)
        if kind is torch.Tensor and value.layout == torch.strided and not value.requires_grad:
            array, element = to_array(value)
            return self.add("tensor", array, type=element)
        if (kind is np.ndarray or isinstance(value, np.generic)) and is_stored(value.dtype):
            scalar = {"scalar": True} if isinstance(value, np.generic) else {}
            return self.add("array", np.asarray(value), **scalar)
        is_named = isinstance(value, tuple) and hasattr(value, "_fields")
        keys = value if isinstance(value, Mapping) else ()
        if not (kind in _PLAIN or is_named) or any(type(key) not in _KEYS for key in keys):
            raise trees.make_refusal(value, name)
        return None


def tree_of(everyones: Sequence[Facts]) -> dict[str, Any]:
    """The description of the state of all ranks. Raises CheckpointError where ranks differ."""
    values: dict[str, dict[str, Any]] = {}
    paths: dict[trees.Path, dict[str, Any]] = {}
    for rank, facts in enumerate(everyones):
        for key, about in facts.values.items():
            if values.setdefault(key, about) != about:
                raise CheckpointError(
                    f"{key}: rank {rank} has {json.dumps(about)}, a rank before it"
                    f" {json.dumps(values[key])}"
                )
            paths[facts.paths[key]] = about
    return trees.nest(paths)
