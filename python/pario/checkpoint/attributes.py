"""Attributes of HDF5 files that come back as they were given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pario.checkpoint.errors import CheckpointError

#: What HDF5 cannot hold is text in JSON behind this.
_JSON = "json:"
#: Of HDF5's attributes.
_MOST_BYTES = 64_000
#: Of pario, netCDF and HDF5 themselves.
_NOT_THEIRS = frozenset(("step", "pario_type", "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_NCProperties"))


def _held(value: Any) -> Any:
    """As HDF5 holds it."""
    if isinstance(value, str):
        return _JSON + json.dumps(value) if value.startswith(_JSON) or "\0" in value else value
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcS":
        return value
    return _JSON + json.dumps(value)


def _checked(name: str, value: Any) -> Any:
    if name in _NOT_THEIRS:
        raise CheckpointError(f"attribute '{name}': such a name cannot be used: pario, netCDF or HDF5 itself has it")
    try:
        held = _held(value)
    except (TypeError, ValueError) as error:
        raise _cannot(name, value, error) from error
    size = len(held) if isinstance(held, str) else np.asarray(held).nbytes
    if size > _MOST_BYTES:
        raise CheckpointError(f"attribute '{name}' has {size} bytes; at most {_MOST_BYTES}: save it as an array")
    return held


def _cannot(name: str, value: Any, error: Exception) -> CheckpointError:
    return CheckpointError(f"attribute '{name}' of type {type(value).__name__} cannot be saved: {error}")


def check_all(attrs: Mapping[str, Any]) -> None:
    """Raises CheckpointError that names an attribute that cannot be saved."""
    for name, value in attrs.items():
        _checked(name, value)


def put(holder: Any, name: str, value: Any) -> None:
    """Sets an attribute of a file, group or dataset. Raises CheckpointError that names it."""
    held = _checked(name, value)
    try:
        holder.attrs[name] = held
    except (TypeError, ValueError, OverflowError) as error:
        raise _cannot(name, value, error) from error


def put_all(holder: Any, attrs: Mapping[str, Any]) -> None:
    """Sets attributes; those that the holder had and that are not among them go."""
    for name in set(holder.attrs) - set(attrs):
        del holder.attrs[name]
    for name, value in attrs.items():
        put(holder, name, value)


def get_all(holder: Any) -> dict[str, Any]:
    """The attributes that a user gave, or another program."""
    return {name: _given(holder.attrs[name]) for name in holder.attrs if name not in _NOT_THEIRS}


def copy_all(source: Any, target: Any) -> None:
    """The same attributes as HDF5 holds them."""
    for name in set(source.attrs) - _NOT_THEIRS:
        target.attrs.create(name, source.attrs[name], dtype=source.attrs.get_id(name).dtype)


def _given(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return json.loads(value.removeprefix(_JSON)) if value.startswith(_JSON) else value
    return value.item() if isinstance(value, np.generic) else value


def names_of(dataset: Any) -> list[str]:
    """Of the attributes of a dataset as HDF5 itself has it."""
    from h5py import h5a

    names: list[str] = []
    if h5a.get_num_attrs(dataset):
        h5a.iterate(dataset, lambda name, *_: names.append(name.decode()))
    return names


def value_of(dataset: Any, name: str) -> Any:
    """One of them, as h5py gives it."""
    import h5py

    return h5py.Dataset(dataset).attrs[name]


def get_few(dataset: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those with these names that a user gave, or another program."""
    return {name: _given(value_of(dataset, name)) for name in names if name not in _NOT_THEIRS}
