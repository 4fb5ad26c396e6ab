"""Loads pario's checkpoints into the states of PyTorch's distributed checkpoints."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from pario.checkpoint import trees
from pario.checkpoint.container import TREE
from pario.checkpoint.dcp.storage import Storage, tell_errors
from pario.checkpoint.dcp.values import Array
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.marker import has_marker
from pario.checkpoint.ranks import unite
from pario.checkpoint.reader import State, load
from pario.checkpoint.reading import Part
from pario.checkpoint.states import array_of_leaf, make_leaf, unpickle
from pario.checkpoint.store import document
from pario.checkpoint.tensors import to_array, to_tensor
from pario.interrupts import postpone_interrupt
from pario.paths import is_url
from pario.ranks import PATIENCE, Ranks

#: The keys of the state of a Loader of records, beside ``skip``.
_LOADER = ("version", "seed", "epoch", "position", "records", "order")
_ByPath = list[tuple[trees.Path, Mapping[str, Any]]]


class Reader(Storage[LoadPlan], StorageReader):  # type: ignore[misc]
    """Loads pario's checkpoints, for ``storage_reader`` of ``dcp.load``.

    It loads the checkpoints of :class:`Writer` and of ``save_state_dict``, and the arrays of
    others, into any state and with any planner. All bytes are compared with their checksums.

    Parameters
    ----------
    path : path_like, optional
        Directory of checkpoints, or a checkpoint; ``checkpoint_id`` of ``dcp.load`` replaces it.
        ``run/step-10`` is the checkpoint of step 10 in ``run``.
    step : int, optional
        Loads this step instead of the newest one.
    process_group, no_dist
        Those of ``dcp.load``, as for :class:`Writer`.
    verify, patience
        As for :func:`pario.checkpoint.load`.
    allow_pickle : bool, optional
        Also loads values that ``torch.load(weights_only=True)`` refuses. A pickle may run any code:
        only for checkpoints whose author you trust.
    cast : bool, optional
        Converts elements to the type of the tensor that is loaded into. By default other types are
        an error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        step: int | None = None,
        process_group: Any = None,
        no_dist: bool = False,
        verify: bool = True,
        allow_pickle: bool = False,
        cast: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(path, step, process_group, no_dist, patience)
        self._verify, self._allow_pickle, self._cast = verify, allow_pickle, cast
        self._state: State | None = None
        self._values: dict[str, Mapping[str, Any]] = {}

    def read_metadata(self) -> Metadata:
        """Opens the checkpoint. Collective."""
        path, step = self._place()
        if self._id is not None and not is_url(self._id) and _is_checkpoint(Path(self._id)):
            path, step = Path(self._id), self._step
        state = load(self._ranks(), path, step=step, verify=self._verify, patience=self._patience)
        self._state = state
        tree = json.loads(state[TREE].tobytes()) if TREE in state else _list_arrays(state)
        by_path = list(_complete_loaders(list(trees.flatten(tree))))
        self._values = {trees.join_keys(keys): about for keys, about in by_path}
        if len(self._values) != len(by_path):
            raise CheckpointError(f"{state.name}: several values have the same key")
        return Metadata(
            {key: _metadata_of(state, about) for key, about in self._values.items()},
            planner_data={trees.join_keys(keys): keys for keys, _ in by_path},
        )

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Does nothing: :meth:`read_metadata` has opened the checkpoint."""

    @postpone_interrupt()
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the values of the plan. Collective."""
        ranks = self._ranks()
        with tell_errors(ranks):
            self._read_together(ranks, plan, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read_together(self, ranks: Ranks, plan: LoadPlan, planner: LoadPlanner) -> None:
        state = self._require_state()
        wanted = _Wanted(self._values, cast=self._cast)
        names = ranks.together(
            f"dcp.load({state.name})", lambda: wanted.collect(state, plan, planner), unite
        )
        parts = {name: wanted.parts.get(name, []) for name in names}
        arrays = state.read_pieces(parts, wanted.views)
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                about = self._values[item.storage_index.fqn]
                planner.load_bytes(item, self._pickle_again(about, arrays))
        for item, target, name, number in wanted.tensors:
            if name not in wanted.views:
                kind = self._values[item.storage_index.fqn].get("type", "")
                target.copy_(to_tensor(arrays[name][number], kind))
            planner.commit_tensor(item, target)

    def _require_state(self) -> State:
        if self._state is None:
            raise CheckpointError(
                "no checkpoint is opened; expected a call of read_metadata before"
            )
        return self._state

    def _pickle_again(
        self, about: Mapping[str, Any], arrays: Mapping[str, Sequence[Array]]
    ) -> io.BytesIO:
        """A value as PyTorch's planners expect it. They unpickle without restrictions: so only
        pickles made here, and those that have been checked."""
        if "pickle" in about:
            content = arrays[about["pickle"]][0].tobytes()
            if not self._allow_pickle:
                unpickle(content, about["pickle"])
            return io.BytesIO(content)
        value = trees.rebuild(about, lambda leaf: make_leaf(leaf, arrays[array_of_leaf(leaf)][0]))
        made = io.BytesIO()
        torch.save(value, made)
        made.seek(0)
        return made


def _is_checkpoint(path: Path) -> bool:
    """True for a file or directory that is one checkpoint, with any name."""
    return document(path).is_file() or has_marker(path)


@dataclass
class _Wanted:
    """The parts of arrays that this rank reads."""

    values: Mapping[str, Mapping[str, Any]]  # descriptions, by key
    cast: bool
    parts: dict[str, list[Part]] = field(default_factory=dict)  # by name of the array
    #: Arrays in the memory of tensors, for each part of an array; none for accelerators.
    views: dict[str, list[Array]] = field(default_factory=dict)
    #: Items, their tensors, names of arrays and numbers of parts.
    tensors: list[tuple[ReadItem, torch.Tensor, str, int]] = field(default_factory=list)

    def collect(self, state: State, plan: LoadPlan, planner: LoadPlanner) -> list[str]:
        """Collects the parts of a plan. Returns the names of the arrays."""
        for item in plan.items:
            about = self.values[item.storage_index.fqn]
            if item.type == LoadItemType.BYTE_IO:
                for name in _arrays_in(about):
                    shape = state.shape(name)
                    self.parts[name] = [((0,) * len(shape), shape)]
            else:
                self._add_tensor(item, about, planner.resolve_tensor(item).detach())
        for item, target, name, _ in self.tensors:
            kind = self.values[item.storage_index.fqn]["type"]
            if target.device.type != "cpu" or target.dtype != getattr(torch, kind):
                self.views.pop(name, None)
        return list(self.parts)

    def _add_tensor(self, item: ReadItem, about: Mapping[str, Any], target: torch.Tensor) -> None:
        name, key = about["tensor"], item.storage_index.fqn
        if target.dtype != getattr(torch, about["type"]) and not self.cast:
            raise CheckpointError(
                f"{key}: its elements are {about['type']}, those of the tensor to load into"
                f" {str(target.dtype).removeprefix('torch.')}; dcp.Reader(..., cast=True) converts"
                " them"
            )
        parts = self.parts.setdefault(name, [])
        parts.append((tuple(item.storage_offsets), tuple(item.lengths)))
        self.tensors.append((item, target, name, len(parts) - 1))
        if target.device.type == "cpu":
            self.views.setdefault(name, []).append(to_array(target)[0])


def _arrays_in(about: Mapping[str, Any]) -> Iterator[str]:
    """The names of the arrays in a description."""
    found: list[str] = []
    trees.rebuild(about, lambda leaf: found.append(array_of_leaf(leaf)))
    yield from found


def _complete_loaders(by_path: _ByPath) -> Iterator[tuple[trees.Path, Mapping[str, Any]]]:
    """The values of a state. Adds ``skip`` to the states of Loaders: earlier versions left it out
    where it was 0, and ``dcp.load`` refuses states without a key of the present one."""
    paths = {path for path, _ in by_path}
    for path, about in by_path:
        yield path, about
        outer, skip = path[:-1], (*path[:-1], "skip")
        last = path[-1:] == _LOADER[-1:]
        if last and skip not in paths and all((*outer, key) in paths for key in _LOADER):
            yield skip, {"value": 0}


def _list_arrays(state: State) -> dict[str, Any]:
    """The description of a checkpoint that has none: its arrays by name."""
    rows = [
        [name, {"tensor": name, "type": state.dtype(name).name}]
        if state.dtype(name).kind in "biufc"
        else [name, {"array": name}]
        for name in state
    ]
    return {"dict": rows}


def _metadata_of(state: State, about: Mapping[str, Any]) -> Any:
    """The metadata of a value. A tensor is one chunk: any part of it can be read."""
    if "tensor" not in about:
        return BytesStorageMetadata()
    size = torch.Size(state.shape(about["tensor"]))
    chunk = ChunkStorageMetadata(torch.Size([0] * len(size)), size)
    properties = TensorProperties(dtype=getattr(torch, about["type"]))
    return TensorStorageMetadata(properties, size, [chunk])
