"""Nested states, such as those of training programs, as a description in JSON and arrays by name.

Dictionaries, lists, tuples, named tuples, sizes of tensors, numbers, text and None are part of the description. Arrays and
tensors are not: the description has their names.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pario.checkpoint.errors import CheckpointError

#: Describes an array or a tensor, of this name, in JSON; None if the value is neither.
Leaf = Callable[[Any, str], dict[str, Any] | None]
_EXPECTED = "expected tensors, arrays, numbers, strings, None, and dictionaries, lists and tuples of them"
_ORDERED, _SIZE = "collections:OrderedDict", "torch:Size"


def describe(value: Any, name: str, leaf: Leaf) -> dict[str, Any]:
    """The description of a nested state. Raises CheckpointError that names what cannot be saved.

    Other mappings than dictionaries are described as dictionaries, and other kinds of int, float and str as these.
    """
    try:
        return _described(value, name, leaf)
    except RecursionError as error:
        raise CheckpointError(f"{name} cannot be saved: it contains itself, or is nested too deeply") from error


def _described(value: Any, name: str, leaf: Leaf) -> dict[str, Any]:
    if (found := leaf(value, name)) is not None:
        return found
    if isinstance(value, Mapping):
        rows = [[key, _described(value[key], f"{name}/{part}", leaf)] for key, part in names_of_keys(value).items()]
        return {"dict": rows, **({"class": _ORDERED} if type(value) is OrderedDict else {})}
    if type(value) is list:
        return {"list": [_described(one, f"{name}/{number}", leaf) for number, one in enumerate(value)]}
    if isinstance(value, tuple):
        items = [_described(one, f"{name}/{number}", leaf) for number, one in enumerate(value)]
        return {"tuple": items, **_class_of(value, name)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise refused(value, name)


def refused(value: Any, name: str) -> CheckpointError:
    """The error for a value of a type that cannot be saved."""
    return CheckpointError(f"{name}: {type(value).__name__} cannot be saved; {_EXPECTED}")


def _class_of(value: tuple[Any, ...], name: str) -> dict[str, Any]:
    """What is noted of the class of a tuple, so that it can be made again."""
    kind = type(value)
    if kind is tuple:
        return {}
    full_name = f"{kind.__module__}:{kind.__qualname__}"
    fields = getattr(kind, "_fields", None)
    if full_name == _SIZE:
        return {"class": full_name}
    if not isinstance(fields, tuple) or len(fields) != len(value):
        raise refused(value, name)
    return {"class": full_name, "fields": list(fields)}


def names_of_keys(keys: Mapping[Any, Any] | Sequence[Any]) -> dict[Any, str]:
    """For each key of a dictionary a part of the names of its arrays; no two are equal."""
    found: dict[Any, str] = {}
    taken = set()
    for key in keys:
        if not isinstance(key, str | int):
            raise CheckpointError(f"key {key!r} cannot be saved; expected a string or a number")
        part = _part(key)
        while part in taken:
            part += "~"
        taken.add(part)
        found[key] = part
    return found


def _part(key: str | int) -> str:
    """A key as HDF5 can have it in the name of an array."""
    text = str(key).replace("/", "|").replace("\0", "|").encode("utf-8", "backslashreplace").decode()
    return {"": "empty", ".": "dot"}.get(text, text)


def leaves(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The descriptions of all arrays and tensors."""
    children = [one for _, one in tree["dict"]] if "dict" in tree else tree.get("list", tree.get("tuple"))
    if children is None:
        yield tree
        return
    for one in children:
        yield from leaves(one)


def child(tree: Mapping[str, Any], key: Any) -> Mapping[str, Any] | None:
    """The description of an item of a dictionary, list or tuple; None if there is no such item."""
    if "dict" in tree:
        return next((one for name, one in tree["dict"] if name == key), None)
    items = tree.get("list", tree.get("tuple", ()))
    return items[key] if isinstance(key, int) and 0 <= key < len(items) else None


def rebuild(tree: Mapping[str, Any], leaf: Callable[[Mapping[str, Any]], Any]) -> Any:
    """The state of a description. ``leaf`` makes an array or tensor of its description."""
    if "dict" in tree:
        made = {key: rebuild(one, leaf) for key, one in tree["dict"]}
        return OrderedDict(made) if tree.get("class") == _ORDERED else made
    if "list" in tree:
        return [rebuild(one, leaf) for one in tree["list"]]
    if "tuple" in tree:
        return _tuple(tree, tuple(rebuild(one, leaf) for one in tree["tuple"]))
    return tree["value"] if "value" in tree else leaf(tree)


def _tuple(tree: Mapping[str, Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple of the class that was noted, if the program has such a class; nothing is imported for it, or called."""
    name = tree.get("class")
    if name is None:
        return values
    found, fields = _loaded_class(name), tree.get("fields")
    if isinstance(found, type) and issubclass(found, tuple) and (name == _SIZE or vars(found).get("_fields") == tuple(fields or ())):
        made: tuple[Any, ...] = tuple.__new__(found, values)
        return made
    if not fields:
        return values
    return namedtuple(name.rpartition(".")[2].rpartition(":")[2], fields, rename=True)(*values)


def _loaded_class(name: str) -> Any:
    """The object of a name ``module:qualified.name``, if its module is loaded."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found
