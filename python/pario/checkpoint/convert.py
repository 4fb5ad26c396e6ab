"""Converts states between pario's checkpoints, PyTorch's distributed checkpoints (DCP), those of
Orbax and safetensors files. The state is in the memory of one process, but for mapped safetensors
files, and conversions between Orbax and pario, and from pario to pario."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.arrays import Saved, blocks
from pario.checkpoint.container import TREE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import read_identity
from pario.checkpoint.lazy import LazyArray
from pario.checkpoint.marker import METADATA, is_of_dcp
from pario.checkpoint.orbax_form import find_checkpoint, lazy_array, read_orbax, write_orbax
from pario.checkpoint.reader import State, load
from pario.checkpoint.remote import open_store
from pario.checkpoint.safetensors_files import read_safetensors, write_safetensors
from pario.checkpoint.states import array_of_leaf, read_state_dict, save_state_dict
from pario.checkpoint.tensors import is_tensor, to_array, to_tensor
from pario.checkpoint.trees import rebuild
from pario.checkpoint.types import type_of_note
from pario.checkpoint.writer import Writer
from pario.errors import name_errors
from pario.leaves import map_leaves
from pario.paths import is_url, local_path, resolve
from pario.publishing import remove, replacing

#: The file that names the shards of a model, for transformers and vLLM.
_INDEX = "model.safetensors.index.json"
#: Classes and functions in the metadata of DCP, which is a pickle; others are refused.
_ALLOWED = {
    "torch.distributed.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    "torch.serialization": ("_get_layout",),
    "torch": ("Size",),
    "pathlib": ("Path", "PosixPath", "PurePosixPath"),
    "collections": ("OrderedDict",),
}


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    to: str = "",
    *,
    step: int | None = None,
    select: str = "",
    allow_pickle: bool = False,
    shard_bytes: int = 5 * 10**9,
    compress: str | None = None,
) -> tuple[Path, list[str]]:
    """Converts a checkpoint of any of the formats, which is found by itself.

    ``to``: pario, dcp, orbax or safetensors; by default safetensors for a name with this ending,
    else pario. Checkpoints of pario may be at URLs, source and target.
    ``select``: the key of a part of the state, with dots between nested keys. ``step``: that of a
    source in a directory of pario's checkpoints. A checkpoint of pario keeps its step, attributes
    and axes in another one of pario. ``shard_bytes``: most bytes of a safetensors file
    in a directory. ``compress``: as for :class:`Writer`. Returns the new checkpoint, and the keys
    that its format cannot hold. Raises CheckpointError.
    """
    to = to or ("safetensors" if os.fspath(target).endswith(".safetensors") else "pario")
    if compress and to != "pario":
        raise CheckpointError(f"compress='{compress}' to {to}; expected to pario")
    if is_url(target) and to != "pario":
        raise CheckpointError(f"{target}: to {to}; expected to pario, or a local path")
    place = None if is_url(target) else local_path(target, CheckpointError)
    if place and not is_url(source) and resolve(place) == resolve(source):
        raise CheckpointError(f"{place}: is the source; expected another place for the result")
    form, found = _find_format(source, step)
    if form == "pario":
        opened = load(None, found, step=step)
        if to == "pario" and not select:
            return _copy_arrays(opened, place or os.fspath(target), compress), []
        read = _read_lazily(opened) if to == "orbax" else _read_pario(opened)
    else:
        read = _read(form, Path(found), allow_pickle=allow_pickle)
    state = _select(read, select)
    if place is None or to == "pario":
        saved = map_leaves(_to_saved, state)
        return _write_pario(place or os.fspath(target), form, saved, compress), []
    if to == "orbax":
        return write_orbax(place, map_leaves(_to_array, state)), []
    state = map_leaves(lambda one: one.load() if isinstance(one, LazyArray) else one, state)
    if to == "safetensors":
        return _write_safetensors(place, state, shard_bytes)
    return _write_dcp(place, state), []


def _to_saved(value: Any) -> Any:
    return _to_blocks(value) if isinstance(value, LazyArray) else value


def _to_blocks(array: LazyArray, **about: Any) -> Saved:
    """The pieces of an array, to be saved. ``about``: dims and attrs."""
    empty = [(array.load(), (0,) * len(array.shape))] if 0 in array.shape else []  # has the type
    return blocks(empty or array.parts(), array.shape, **about)


def _to_array(value: Any) -> Any:
    """An array of numpy for a tensor; types that numpy does not have by ml_dtypes."""
    if not is_tensor(value):
        return value
    array, kind = to_array(value)
    return array if hasattr(np, kind) else array.view(type_of_note(kind, array.dtype))


def _find_format(source: str | os.PathLike[str], step: int | None) -> tuple[str, Path | str]:
    """The format of a source (pario, dcp, orbax, safetensors, or shards of it), and its path or
    URL. A safetensors file may be a checkpoint of pario, too."""
    if is_url(source):
        return "pario", os.fspath(source)
    path = local_path(source, CheckpointError)
    if is_of_dcp(path):
        return "dcp", path
    if found := find_checkpoint(path, step):
        return "orbax", found
    if (path / _INDEX).is_file():
        return "shards", path
    is_foreign = path.suffix == ".safetensors" and not read_identity(path)
    return "safetensors" if is_foreign else "pario", path


def _copy_arrays(state: State, target: Path | str, compress: str | None) -> Path:
    """Saves a checkpoint of pario anew: step, attributes and arrays with their names and axes."""
    saved = {
        name: _to_blocks(
            lazy_array(state, name), dims=state.dims(name), attrs=state.array_attrs(name)
        )
        for name in state
    }
    with Writer(None, target, compress=compress) as writer:
        return writer.save(state.step, saved, state.attrs)


def _read(form: str, path: Path, *, allow_pickle: bool) -> dict[str, Any]:
    """Reads a state in a format of another library that :func:`_find_format` returns."""
    if form == "dcp":
        return _read_dcp(path, allow_pickle=allow_pickle)
    if form == "orbax":
        return read_orbax(path)
    if form == "shards":
        return _read_shards(path)
    return read_safetensors(path)


def _read_pario(state: State) -> dict[str, Any]:
    return read_state_dict(state) if TREE in state else dict(state)


def _read_shards(path: Path) -> dict[str, Any]:
    """The tensors of the files that the index of a model names."""
    shards = json.loads((path / _INDEX).read_bytes())["weight_map"]
    if any("/" in str(name) for name in shards.values()):
        raise CheckpointError(f"{path / _INDEX}: expected names of files beside it")
    files = {name: read_safetensors(path / name) for name in dict.fromkeys(shards.values())}
    for key, name in shards.items():
        if key not in files[name]:
            raise CheckpointError(f"{path / name} has no tensor '{key}', which {_INDEX} names")
    found = {key: tensor for tensors in files.values() for key, tensor in tensors.items()}
    return found | {key: files[name][key] for key, name in shards.items()}


def _read_lazily(state: State) -> dict[str, Any]:
    """The state of a checkpoint of pario, with a LazyArray for each array and tensor."""
    if TREE not in state:
        return {name: lazy_array(state, name) for name in state}

    def leaf(about: Mapping[str, Any]) -> Any:
        name = array_of_leaf(about)
        if "array" not in about and "tensor" not in about:
            raise CheckpointError(f"{state.name}: '{name}' is bytes, which Orbax cannot hold")
        if about.get("scalar"):
            return state[name][()]
        array = lazy_array(state, name)
        return array if hasattr(np, kind := about.get("type", "int8")) else array.view(kind)

    found: dict[str, Any] = rebuild(json.loads(state[TREE].tobytes()), leaf)
    return found


def _select(state: dict[str, Any], key: str) -> dict[str, Any]:
    found: Any = state
    for part in key.split(".") if key else ():
        if not isinstance(found, Mapping) or part not in found:
            raise CheckpointError(
                f"the state has no part '{key}'; it has {', '.join(map(str, state))}"
            )
        found = found[part]
    if not isinstance(found, dict):
        raise CheckpointError(f"'{key}' is a value; expected a dictionary of them")
    return found


def _write_pario(path: Path | str, form: str, state: dict[str, Any], compress: str | None) -> Path:
    store = open_store(path)
    if form == "dcp":  # its values may need pickles
        from torch.distributed import checkpoint as dcp

        from pario.checkpoint.dcp import Writer as Storage

        storage = Storage(path, no_dist=True, compress=compress)
        with _one_process():
            dcp.save(state, storage_writer=storage, no_dist=True)
        return store.complete()[-1].path
    with Writer(None, path, compress=compress) as writer:
        saved = save_state_dict(writer, store.next_step(), state)
        assert isinstance(saved, Path)
        return saved


def _write_dcp(path: Path, state: dict[str, Any]) -> Path:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.filesystem import FileSystemWriter

    with _one_process(), _naming_failures(path):
        remove(path / METADATA)  # it would describe a mixture of older and new bytes
        dcp.save(map_leaves(_to_tensor, state), storage_writer=FileSystemWriter(path), no_dist=True)
    return path


@contextmanager
def _one_process() -> Iterator[None]:
    """Hides PyTorch's warning that one process saves alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        yield


def _to_tensor(value: Any) -> Any:
    """A tensor instead of an array, or a number instead of one of numpy, which a load of DCP's own
    would refuse as pickles."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.array(value)
        if array.dtype.isbuiltin == 2:  # of ml_dtypes
            return to_tensor(array.view(f"u{array.itemsize}"), array.dtype.name)
        if array.dtype.kind in "biufc":
            return to_tensor(array, "")
    return value.item() if isinstance(value, np.generic) else value


def _write_safetensors(
    path: Path, state: Mapping[str, Any], shard_bytes: int
) -> tuple[Path, list[str]]:
    tensors: dict[str, Any] = {}
    others = []
    for key, value in _flatten(state):
        if key in tensors:
            raise CheckpointError(f"{key}: several values have this key")
        if is_tensor(value) or isinstance(value, np.ndarray):
            tensors[key] = value
        else:
            others.append(key)
    metadata = {"format": "pt"}
    if path.suffix == ".safetensors":
        write_safetensors(path, tensors, metadata)
        return path, others
    with name_errors(path, CheckpointError):
        path.mkdir(parents=True, exist_ok=True)
        remove(path / _INDEX)  # it would name a mixture of older and new files
    shards = _divide(tensors, shard_bytes)
    names = [
        f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        for number in range(1, len(shards) + 1)
    ]
    for name, shard in zip(names, shards, strict=True):
        write_safetensors(path / name, shard, metadata)
    index = {
        "metadata": {"total_size": sum(map(_size_of, tensors.values()))},
        "weight_map": {
            key: name for name, shard in zip(names, shards, strict=True) for key in shard
        },
    }
    with replacing(path / _INDEX, CheckpointError) as file:
        file.write(json.dumps(index, indent=2).encode())
    return path, others


def _flatten(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        yield ".".join(path), value
    for key, one in items:
        yield from _flatten(one, (*path, str(key)))


def _divide(tensors: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Tensors in order, in shards of at most ``most`` bytes each, or of one tensor."""
    shards: list[dict[str, Any]] = [{}]
    size = 0
    for key, tensor in tensors.items():
        if shards[-1] and size + _size_of(tensor) > most:
            shards.append({})
            size = 0
        shards[-1][key] = tensor
        size += _size_of(tensor)
    return shards


def _size_of(tensor: Any) -> int:
    return int(tensor.nbytes)


class _MetadataUnpickler(pickle.Unpickler):
    """Loads the metadata of DCP; refuses everything that it does not need."""

    def find_class(self, module: str, name: str) -> Any:
        import torch

        allowed = name in _ALLOWED.get(module, ())
        if allowed or (module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def _read_dcp(path: Path, *, allow_pickle: bool) -> dict[str, Any]:
    try:
        from torch.distributed.checkpoint._traverse import set_element
        from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
        from torch.distributed.checkpoint.filesystem import FileSystemReader
        from torch.distributed.checkpoint.metadata import StorageMeta
        from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
    except ImportError as error:
        raise CheckpointError("checkpoints of DCP need PyTorch: pip install torch") from error
    from pario.checkpoint.states import unpickle

    class Storage(FileSystemReader):  # type: ignore[misc]
        def read_metadata(self) -> Any:
            with (path / METADATA).open("rb") as file:
                metadata = _MetadataUnpickler(file).load()
            metadata.storage_meta = metadata.storage_meta or StorageMeta()
            return metadata

    class Planner(_EmptyStateDictLoadPlanner):  # type: ignore[misc]
        def load_bytes(self, item: Any, value: Any) -> None:
            key = item.dest_index.fqn
            found = unpickle(value.getvalue(), key, trusted=allow_pickle)
            set_element(self.original_state_dict, self.mappings[key], found)

    state: dict[str, Any] = {}
    with _naming_failures(path):
        _load_state_dict(state, Storage(path), no_dist=True, planner=Planner())
    return state


@contextmanager
def _naming_failures(path: Path) -> Iterator[None]:
    """Converts the exceptions of DCP."""
    try:
        yield
    except BaseException as error:  # CheckpointException is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        raise CheckpointError(f"{path}: {_reason_of(error)}") from error


def _reason_of(error: BaseException) -> str:
    """The reason within an error of DCP, which has those of the ranks."""
    failures = getattr(error, "failures", None)
    return str(next(iter(failures.values()))[0] if failures else error)
