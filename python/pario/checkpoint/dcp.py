"""PyTorch's distributed checkpoints (``torch.distributed.checkpoint``) in the files of pario.

``dcp.save(state, storage_writer=Writer(path))`` saves a checkpoint as ``save_state_dict`` does:
each tensor is an array, and ``state.json`` describes the state. So ``dcp.load`` with
:class:`Reader` loads the checkpoints of ``save_state_dict``, and ``load_state_dict`` those of
``dcp.save``.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from pario.checkpoint import trees, writer
from pario.checkpoint.arrays import Saved, blocks
from pario.checkpoint.container import TREE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape
from pario.checkpoint.reader import Part, State, load
from pario.checkpoint.store import Store, document
from pario.checkpoint.tensors import (
    array_of_leaf,
    attrs_of,
    make_leaf,
    to_array,
    to_tensor,
    unpickle,
)
from pario.checkpoint.torch_ranks import TorchRanks
from pario.ranks import PATIENCE, OneRank, Ranks

#: Names such as step-10, step_10, epoch=1-step=10.ckpt: the checkpoint of a step in the directory.
_STEP = re.compile(r"(?:.*[^a-z])?step[-_=]?(\d+)(?:\.\w+)?")
#: Types of values that JSON describes exactly; others are pickled.
_PLAIN = (dict, OrderedDict, list, tuple, torch.Size, str, int, float, bool, type(None))
_KEYS = (str, int, bool)
_Array = np.ndarray[Any, Any]


def _place_of(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """The directory and the step of a checkpoint by its path; a directory alone has no step."""
    place = Path(path)
    match = _STEP.fullmatch(place.name)
    return (place.parent, int(match[1])) if match else (place, None)


class _Storage:
    """The place of checkpoints, and the ranks that save or load them."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        step: int | None,
        process_group: Any,
        no_dist: bool,
        patience: float,
    ) -> None:
        self._path, self._step, self._id = path, step, path
        self._group, self._no_dist, self._patience = process_group, no_dist, patience

    @property
    def checkpoint_id(self) -> str | os.PathLike[str] | None:
        """The path of the checkpoint, for the log messages of PyTorch."""
        return self._id

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a save or a load; ``checkpoint_id`` replaces the path."""
        self._id = checkpoint_id or self._path
        if self._id is None:
            raise CheckpointError("no path is given; expected a directory of checkpoints")

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """True for local paths."""
        return "://" not in os.fspath(checkpoint_id)

    def _place(self) -> tuple[Path, int | None]:
        directory, step = _place_of(self._id or "")
        return directory, self._step if step is None else step

    def _ranks(self) -> Ranks:
        """The ranks of the process group; this process alone where there is none. Collective."""
        if self._no_dist or not (distributed.is_available() and distributed.is_initialized()):
            return OneRank()
        group = self._group or distributed.group.WORLD
        if distributed.get_world_size(group) == 1:
            return OneRank()
        # dcp.async_save saves in a thread, beside other collective calls of the program
        return TorchRanks(group, self._patience, purpose=f"/{type(self).__name__}")


class Writer(_Storage, StorageWriter):  # type: ignore[misc]
    """Saves PyTorch's distributed checkpoints to a directory of pario's checkpoints.

    For ``storage_writer`` of ``dcp.save`` and ``dcp.async_save``, with any planner. The checkpoint
    is published when all ranks have written. Values that are not tensors are saved as JSON; those
    that JSON cannot hold exactly are saved by ``torch.save``.

    Parameters
    ----------
    path : path_like, optional
        Local directory of the checkpoints; made where it is missing. ``checkpoint_id`` of
        ``dcp.save`` replaces it. If its last part ends with a step, as in ``run/step-10``, it is
        the checkpoint of step 10 in ``run``.
    step : int, optional
        Step of the checkpoint; by default one more than the highest step in the directory.
    process_group : torch.distributed.ProcessGroup, optional
        The ``process_group`` of ``dcp.save``; the default group by default.
    no_dist : bool, optional
        The ``no_dist`` of ``dcp.save``: this process saves alone.
    keep, files, durable, safetensors, stage, stage_bytes, patience
        As for :class:`pario.checkpoint.Writer`. With ``stage``, ``dcp.save`` returns when the
        checkpoint is staged, and the directory stays locked until :meth:`close`.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> import torch.distributed.checkpoint as dcp
    >>> from pario.checkpoint.dcp import Reader, Writer
    >>> state = {"weight": torch.arange(4.0), "epoch": 3}
    >>> with tempfile.TemporaryDirectory() as path:
    ...     saved = dcp.save(state, storage_writer=Writer(path, keep=2), no_dist=True)
    ...     loaded = {"weight": torch.zeros(4), "epoch": 0}
    ...     dcp.load(loaded, storage_reader=Reader(path), no_dist=True)
    >>> loaded
    {'weight': tensor([0., 1., 2., 3.]), 'epoch': 3}
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        step: int | None = None,
        process_group: Any = None,
        no_dist: bool = False,
        files: int | str = 1,
        keep: int | None = None,
        durable: bool = True,
        safetensors: bool = False,
        stage: str | os.PathLike[str] | None = None,
        stage_bytes: int = 1 << 36,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(path, step, process_group, no_dist, patience)
        self._options: dict[str, Any] = {
            "files": files,
            "keep": keep,
            "durable": durable,
            "safetensors": safetensors,
            "stage": stage,
            "stage_bytes": stage_bytes,
            "patience": patience,
        }
        self._stays_open = stage is not None
        self._writer: writer.Writer | None = None
        self._directory = Path()
        self._last = -1

    def __getstate__(self) -> dict[str, Any]:
        # dcp.async_save with AsyncCheckpointerType.PROCESS sends a copy for each checkpoint.
        return {**vars(self), "_writer": None, "_stays_open": False, "_group": None}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for staged checkpoints, and unlocks the directory. Collective.

        Raises
        ------
        CheckpointError
            The first error of a checkpoint that is being drained, on all ranks.
        """
        if self._writer is not None:
            held, self._writer = self._writer, None
            held.close()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Checks the way of saving."""
        if kwargs.get("use_collectives") is False:
            raise CheckpointError("use_collectives=False; the ranks save one checkpoint together")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Returns the plan: the places in the file are planned in :meth:`write_data`."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Returns the plans."""
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes and publishes the checkpoint. Collective; raises CheckpointError on all ranks."""
        ranks = self._ranks()
        directory, step = self._place()
        collected = _Collected()
        made: list[bytes] = []

        def decide(everyones: list[_Facts]) -> tuple[int, dict[str, tuple[Shape, str]]]:
            made.append(json.dumps(_tree_of(everyones)).encode())
            arrays: dict[str, tuple[Shape, str]] = {TREE: ((len(made[0]),), "uint8")}
            for facts in everyones:
                arrays.update(facts.arrays)
            return self._choose_step(directory, step), arrays

        step, known = ranks.together("dcp.save", lambda: collected.collect(plan, planner), decide)
        collected.parts[TREE] = [(np.frombuffer(one, np.uint8), (0,)) for one in made]
        arrays = {
            name: blocks(collected.parts.get(name, []), shape, attrs=attrs_of(kind))
            for name, (shape, kind) in known.items()
        }
        self._save(ranks, directory, step, arrays)
        done: Future[list[WriteResult]] = Future()
        done.set_result(
            [
                WriteResult(item.index, collected.sizes.get(item.index.fqn, 0), None)
                for item in plan.items
            ]
        )
        return done

    def _choose_step(self, directory: Path, step: int | None) -> int:
        """The step of the new checkpoint, on rank 0."""
        if step is None:
            step = max(self._last + 1, Store(directory).next_step())
        self._last = step
        return step

    def _save(self, ranks: Ranks, directory: Path, step: int, arrays: Mapping[str, Saved]) -> None:
        if self._writer is not None and self._directory != directory:
            self.close()
        if self._writer is None:
            self._writer = writer.Writer(ranks, directory, **self._options)
            self._directory = directory
        try:
            self._writer.save(step, arrays)
        except BaseException:
            held, self._writer = self._writer, None
            held.__exit__(CheckpointError, None, None)
            raise
        if not self._stays_open:
            self.close()

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Does nothing: :meth:`write_data` has published the checkpoint, with its metadata."""


@dataclass
class _Facts:
    """The facts about a rank's values that rank 0 needs."""

    #: Shapes of arrays and types of their elements, by name.
    arrays: dict[str, tuple[Shape, str]] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # descriptions, by key
    paths: dict[str, trees.Path] = field(default_factory=dict)  # in the nested state, by key


@dataclass
class _Collected:
    """The values that a plan assigns to this rank."""

    facts: _Facts = field(default_factory=_Facts)
    parts: dict[str, list[tuple[_Array, Shape]]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)  # bytes, by key

    def collect(self, plan: SavePlan, planner: SavePlanner) -> _Facts:
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
        name, about = array_name(key), item.tensor_data
        self.facts.arrays[name] = tuple(about.size), kind
        self.facts.values[key] = {"tensor": name, "type": kind}
        self.parts.setdefault(name, []).append((array, tuple(about.chunk.offsets)))
        self.sizes[key] += array.nbytes

    def _add_object(self, key: str, value: Any) -> None:
        arrays: dict[str, _Array] = {}
        try:
            tree = trees.describe(value, key, _Leaves(array_name(key), arrays).describe)
        except CheckpointError:
            arrays.clear()
            value = value if isinstance(value, _Pickled) else _Pickled(value)
            tree = _Leaves(array_name(key), arrays).add("pickle", value.content)
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

    def __init__(self, name: str, arrays: dict[str, _Array]) -> None:
        self._name, self._arrays = name, arrays

    def add(self, kind: str, array: _Array, **more: Any) -> dict[str, Any]:
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
        if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in "biufcSU":
            scalar = {"scalar": True} if isinstance(value, np.generic) else {}
            return self.add("array", np.asarray(value), **scalar)
        is_named = isinstance(value, tuple) and hasattr(value, "_fields")
        keys = value if isinstance(value, Mapping) else ()
        if not (kind in _PLAIN or is_named) or any(type(key) not in _KEYS for key in keys):
            raise trees.make_refusal(value, name)
        return None


def array_name(key: str) -> str:
    """The name of the array of a key; different for different keys."""
    escaped = key.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    text = {"": "%", ".": "%2E"}.get(escaped, escaped)
    return f"state/{text.encode('utf-8', 'backslashreplace').decode()}"


def _tree_of(everyones: Sequence[_Facts]) -> dict[str, Any]:
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


class Reader(_Storage, StorageReader):  # type: ignore[misc]
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
        if self._id is not None and document(Path(self._id)).is_file():
            path, step = Path(self._id), self._step
        state = load(self._ranks(), path, step=step, verify=self._verify, patience=self._patience)
        self._state = state
        tree = json.loads(state[TREE].tobytes()) if TREE in state else _list_arrays(state)
        by_path = list(trees.flatten(tree))
        self._values = {trees.join_keys(keys): about for keys, about in by_path}
        if len(self._values) != len(by_path):
            raise CheckpointError(f"{state.path}: several values have the same key")
        return Metadata(
            {key: _metadata_of(state, about) for key, about in self._values.items()},
            planner_data={trees.join_keys(keys): keys for keys, _ in by_path},
        )

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Does nothing: :meth:`read_metadata` has opened the checkpoint."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Returns the plan."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Returns the plans."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the values of the plan. Collective."""
        ranks, state = self._ranks(), self._require_state()
        wanted = _Wanted(self._values, cast=self._cast)
        names = ranks.together(
            f"dcp.load({state.path})", lambda: wanted.collect(state, plan, planner), _unite
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
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _require_state(self) -> State:
        if self._state is None:
            raise CheckpointError(
                "no checkpoint is opened; expected a call of read_metadata before"
            )
        return self._state

    def _pickle_again(
        self, about: Mapping[str, Any], arrays: Mapping[str, Sequence[_Array]]
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


def _unite(everyones: Sequence[Sequence[str]]) -> list[str]:
    """The names of all ranks, each once, in an order that all ranks use."""
    return list(dict.fromkeys(name for names in everyones for name in names))


@dataclass
class _Wanted:
    """The parts of arrays that this rank reads."""

    values: Mapping[str, Mapping[str, Any]]  # descriptions, by key
    cast: bool
    parts: dict[str, list[Part]] = field(default_factory=dict)  # by name of the array
    #: Arrays in the memory of tensors, for each part of an array; none for accelerators.
    views: dict[str, list[_Array]] = field(default_factory=dict)
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
