"""Orbax's own checkpoints: zarr arrays, in one store (OCDBT) or each in a directory, and JSON that
describes the tree. Read and written by tensorstore, without JAX and Orbax."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint import trees
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box
from pario.checkpoint.lazy import LazyArray
from pario.checkpoint.reader import State, load
from pario.publishing import new_directory

_TREE, _STRINGS, _ABOUT = "_METADATA", "_strings.json", "_CHECKPOINT_METADATA"
#: The only file of an item that is JSON.
_JSON = ("metadata", "metrics")
#: The directory of pario's checkpoints within an item, as pario.checkpoint.orbax writes them.
_PARIO = "pario"
_SEQUENCE, _DICT = 1, 2  # kinds of keys
_EMPTY: dict[str, dict[str, Any]] = {
    "None": {"value": None},
    "Dict": {"dict": []},
    "List": {"list": []},
    "Tuple": {"tuple": []},
}
_ARRAYS = ("jax.Array", "np.ndarray")


def find_checkpoint(path: Path, step: int | None) -> Path | None:
    """A checkpoint of Orbax at a path, or in a directory of its CheckpointManager: of a step, or
    the newest. None if there is none."""
    if (path / _TREE).is_file() or (path / _ABOUT).is_file():
        return path
    if not path.is_dir():
        return None
    steps = {int(one.name): one for one in path.iterdir() if one.name.isdigit()}
    found = steps.get(max(steps, default=-1) if step is None else step)
    return found if found is not None and (found / _ABOUT).is_file() else None


def read_orbax(path: Path) -> dict[str, Any]:
    """The state of a checkpoint, with a LazyArray for each array. Several items are a dictionary.

    Raises CheckpointError that names an item or a value of another form.
    """
    if (path / _TREE).is_file():
        return _read_tree(path)
    names = sorted(one.name for one in path.iterdir() if one.is_dir())
    items = {name: _read_item(path / name) for name in names}
    found: dict[str, Any] = next(iter(items.values())) if names == ["default"] else items
    return found


def _read_item(path: Path) -> Any:
    if (path / _TREE).is_file():
        return _read_tree(path)
    for name in _JSON:
        if (path / name).is_file():
            return _read_json(path / name)
    raise CheckpointError(f"{path}: expected {_TREE} or JSON in an item of a checkpoint of Orbax")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{path}: expected JSON: {error}") from error


def _read_tree(path: Path) -> dict[str, Any]:
    try:
        found = _read_json(path / _TREE)
        rows = [
            (_path_of(row["key_metadata"]), row["value_metadata"]["value_type"])
            for row in found["tree_metadata"].values()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path / _TREE}: expected the tree of a checkpoint") from error
    source = _Source(path, ocdbt=found.get("use_ocdbt", True), zarr3=found.get("use_zarr3", False))
    arrays: dict[str, LazyArray] = {}
    described: dict[trees.Path, dict[str, Any]] = {}
    for keys, kind in rows:
        name = trees.join_keys(keys)
        if kind in _EMPTY:
            described[keys] = _EMPTY[kind]
        elif kind == "string":
            described[keys] = {"value": source.read_string(name)}
        elif kind == "scalar":
            described[keys] = {"value": source.open_array(name).load().item()}
        elif kind in _ARRAYS:
            arrays[name] = source.open_array(name)
            described[keys] = {"array": name}
        else:
            raise CheckpointError(f"{path}: {name} is of type {kind}, which is not converted")
    made: dict[str, Any] = trees.rebuild(trees.nest(described), lambda leaf: arrays[leaf["array"]])
    return made


def _path_of(keys: list[dict[str, Any]]) -> trees.Path:
    path = tuple(
        int(one["key"]) if one["key_type"] == _SEQUENCE else str(one["key"]) for one in keys
    )
    return path or ("",)  # a tree that is one value


class _Source:
    """The arrays and texts of an item."""

    def __init__(self, path: Path, *, ocdbt: bool, zarr3: bool) -> None:
        self._path, self._ocdbt, self._zarr3 = path, ocdbt, zarr3
        self._strings: dict[str, str] | None = None
        #: Checkpoints of pario.
        self._states = [load(None, one) for one in sorted((path / _PARIO).glob("*"))]

    def read_string(self, name: str) -> str:
        """A text by the name of its value."""
        if self._strings is None:
            self._strings = _read_json(self._path / _STRINGS)
        if not isinstance(self._strings.get(name), str):
            raise CheckpointError(f"{self._path / _STRINGS} has no text {name}")
        return self._strings[name]

    def open_array(self, name: str) -> LazyArray:
        """An array by the name of its value."""
        inner = trees.array_name(name)
        for state in self._states:
            if inner in state:
                return lazy_array(state, inner)
        store = _open(self._path, name, ocdbt=self._ocdbt, zarr3=self._zarr3, open=True, read=True)

        def read(box: Box) -> Any:
            with _naming(self._path, name):
                return store[_slices(box)].read().result()

        return LazyArray(
            tuple(store.shape),
            store.dtype.numpy_dtype,
            read,
            tuple(store.chunk_layout.write_chunk.shape or ()),
        )


def lazy_array(state: State, name: str) -> LazyArray:
    """An array of a checkpoint of pario; its bytes are compared with their checksums."""
    shape = state.shape(name)
    return LazyArray(
        shape,
        state.dtype(name),
        lambda box: state.read(name, box.begin, box.shape),
        (1,) * len(shape),
    )


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(begin, begin + n) for begin, n in zip(box.begin, box.shape, strict=True))


def _open(path: Path, name: str, *, ocdbt: bool, zarr3: bool = False, **options: Any) -> Any:
    """Opens or creates an array by tensorstore."""
    try:
        import tensorstore
    except ImportError as error:
        raise CheckpointError(
            "checkpoints of Orbax need tensorstore: pip install tensorstore"
        ) from error
    place = {"driver": "file", "path": f"{path.absolute()}/"}
    store = (
        {"driver": "ocdbt", "base": place, "path": f"{name}/"}
        if ocdbt
        else {**place, "path": f"{path.absolute()}/{name}/"}
    )
    spec = {
        "driver": "zarr3" if zarr3 else "zarr",
        "kvstore": store,
        # Orbax refuses arrays whose chunks of zeros are left out.
        "store_data_equal_to_fill_value": True,
    }
    with _naming(path, name):
        return tensorstore.open(spec, **options).result()


@contextmanager
def _naming(path: Path, name: str) -> Iterator[None]:
    """Errors of tensorstore as CheckpointErrors that name the array."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        raise CheckpointError(f"{path}: array '{name}': {error}") from error


def write_orbax(path: Path, state: Mapping[str, Any]) -> Path:
    """Writes a state as Orbax does: its arrays in OCDBT, piece by piece. The checkpoint gets its
    name when it is complete.

    Raises CheckpointError that names a value that Orbax cannot hold.
    """
    if path.exists():
        raise CheckpointError(f"{path} exists; expected the name of a new checkpoint")
    with new_directory(path) as made:
        _write_tree(made, state)
    return path


def _write_tree(path: Path, state: Mapping[str, Any]) -> None:
    rows: dict[str, Any] = {}
    strings: dict[str, str] = {}
    names: set[str] = set()
    for keys, value in _flatten(state):
        name = ".".join(str(key) for key, _ in keys)
        if name in names:
            raise CheckpointError(f"{name}: several values have this key")
        names.add(name)
        kind = _kind_of(value, name)
        if kind == "string":
            strings[name] = value
        elif kind not in _EMPTY:
            _write_array(path, name, value)
        rows[str(tuple(str(key) for key, _ in keys))] = {
            "key_metadata": [{"key": str(key), "key_type": one} for key, one in keys],
            "value_metadata": {"value_type": kind, "skip_deserialize": kind in _EMPTY},
        }
    found = {
        "tree_metadata": rows,
        "use_ocdbt": True,
        "use_zarr3": False,
        "store_array_data_equal_to_fill_value": True,
        "custom_metadata": None,
    }
    (path / _STRINGS).write_text(json.dumps(strings))
    (path / _TREE).write_text(json.dumps(found))


def _flatten(value: Any, keys: tuple[tuple[Any, int], ...] = ()) -> Iterator[tuple[Any, Any]]:
    """The values of a state, with the keys that lead to them and their kinds."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from _flatten(one, (*keys, (key, _DICT)))
    elif isinstance(value, list | tuple) and value:
        for number, one in enumerate(value):
            yield from _flatten(one, (*keys, (number, _SEQUENCE)))
    else:
        yield keys, value


def _kind_of(value: Any, name: str) -> str:
    """Orbax's name of the type of a value."""
    if isinstance(value, LazyArray | np.ndarray):
        return "np.ndarray"
    for kind, types in (
        ("None", type(None)),
        ("string", str),
        ("scalar", (bool, int, float, np.number, np.bool_)),
        ("Dict", Mapping),
        ("List", list),
        ("Tuple", tuple),
    ):
        if isinstance(value, types):
            return kind
    raise CheckpointError(f"{name}: {type(value).__name__} cannot be in a checkpoint of Orbax")


def _write_array(path: Path, name: str, value: Any) -> None:
    array = value if isinstance(value, LazyArray) else _lazy(np.asarray(value))
    parts = list(array.parts())
    dtype = array.dtype.newbyteorder("=") if array.dtype.isbuiltin != 2 else array.dtype
    chunk = [max(1, length) for length in (parts[0][0].shape if parts else array.shape)]
    with _naming(path, name):
        import tensorstore as ts

        layout = ts.ChunkLayout(write_chunk_shape=chunk)
        store = _open(
            path,
            name,
            ocdbt=True,
            create=True,
            dtype=ts.dtype(dtype),
            shape=array.shape,
            chunk_layout=layout,
        )
        for part, begin in parts:
            elements = part.read().astype(dtype, copy=False)
            store[_slices(Box(begin, part.shape))].write(elements).result()


def _lazy(array: np.ndarray[Any, Any]) -> LazyArray:
    return LazyArray(
        array.shape, array.dtype, lambda box: array[_slices(box)], (1,) * len(array.shape)
    )
