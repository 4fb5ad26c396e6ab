"""Attributes of checkpoints and of their arrays, as HDF5 holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.types import require_unmasked

#: Prefix of attributes that HDF5 cannot hold: JSON follows.
_JSON = "json:"
#: Largest attribute in bytes, a limit of HDF5.
_MOST_ATTR_BYTES = 64_000
#: Attributes of pario, netCDF and HDF5 themselves.
_RESERVED = frozenset(
    (
        "step",
        "pario_type",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "CLASS",
        "NAME",
        "_Netcdf4Dimid",
        "_NCProperties",
    )
)


def check_attrs(attrs: Mapping[str, Any]) -> None:
    """Raises CheckpointError that names the first attribute that cannot be saved."""
    for name, value in attrs.items():
        _encode(name, value)


def _encode(name: str, value: Any) -> Any:
    """An attribute as HDF5 holds it. Raises CheckpointError that names it."""
    if not name:
        raise CheckpointError("attribute '': expected a name")
    if name in _RESERVED:
        raise CheckpointError(
            f"attribute '{name}': such a name cannot be used: pario, netCDF or HDF5 itself has it"
        )
    try:
        encoded = _encode_value(require_unmasked(value))
    except (TypeError, ValueError, CheckpointError) as error:
        raise _refusal(name, value, error) from error
    size = len(encoded) if isinstance(encoded, str) else np.asarray(encoded).nbytes
    if size > _MOST_ATTR_BYTES:
        raise CheckpointError(
            f"attribute '{name}' has {size} bytes; at most {_MOST_ATTR_BYTES}: save it as an array"
        )
    return encoded


def _encode_value(value: Any) -> Any:
    if isinstance(value, str):
        return _JSON + json.dumps(value) if value.startswith(_JSON) or "\0" in value else value
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcS":
        return value
    return _JSON + json.dumps(value)


def _refusal(name: str, value: Any, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"attribute '{name}' of type {type(value).__name__} cannot be saved: {error}"
    )


def put_attr(holder: Any, name: str, value: Any) -> None:
    """Sets an attribute of a file, group or dataset. Raises CheckpointError that names it."""
    encoded = _encode(name, value)
    try:
        holder.attrs[name] = encoded
    except (TypeError, ValueError, OverflowError) as error:
        raise _refusal(name, value, error) from error


def user_attrs(names: Iterable[str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """Decodes the attributes that a user or another program has set."""
    return {name: _decode(value_of(name)) for name in names if name not in _RESERVED}


def _decode(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return json.loads(value.removeprefix(_JSON)) if value.startswith(_JSON) else value
    return value.item() if isinstance(value, np.generic) else value


def copy_attrs(source: Any, target: Any) -> None:
    """Copies the user's attributes as HDF5 holds them."""
    for name in set(source.attrs) - _RESERVED:
        target.attrs.create(name, source.attrs[name], dtype=source.attrs.get_id(name).dtype)
