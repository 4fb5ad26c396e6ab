"""The values in nested dictionaries, lists and tuples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """``value`` with ``change`` applied to all values in it that are no mappings, lists or tuples.

    Mappings become a ``dict`` or ``OrderedDict``; lists, tuples and named tuples keep their types.
    """
    if isinstance(value, Mapping):
        made = {key: map_leaves(change, one) for key, one in value.items()}
        return OrderedDict(made) if type(value) is OrderedDict else made
    if type(value) in (list, tuple):
        return type(value)(map_leaves(change, one) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(change, one) for one in value))
    return change(value)
