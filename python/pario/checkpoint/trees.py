"""Descriptions of nested states in JSON: dictionaries, lists, tuples, named tuples, sizes of
tensors, numbers, text and None. Arrays and tensors are leaves, described by the caller.

PyTorch's distributed checkpoints have flat states, whose keys join the keys of the nested state.
:func:`flatten` and :func:`nest` convert descriptions between the two.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pario.checkpoint.errors import CheckpointError

#: Describes an array or a tensor, of this name, in JSON; None if the value is neither.
Leaf = Callable[[Any, str], dict[str, Any] | None]
_EXPECTED = (
    "expected tensors, arrays, numbers, strings, None, and dictionaries, lists and tuples of them"
)
_ORDERED, _SIZE = "collections:OrderedDict", "torch:Size"
#: The keys of dictionaries and the indices of lists that lead to a value.
Path = tuple[str | int, ...]


def describe(value: Any, name: str, leaf: Leaf) -> dict[str, Any]:
    """Describes a nested state in JSON. Raises CheckpointError that names a refused value.

    Other mappings than dictionaries are described as dictionaries, and other kinds of int, float
    and str as these.
    """
    try:
        return _describe_value(value, name, leaf)
    except RecursionError as error:
        raise CheckpointError(
            f"{name} cannot be saved: it contains itself, or is nested too deeply"
        ) from error


def _describe_value(value: Any, name: str, leaf: Leaf) -> dict[str, Any]:
    if (found := leaf(value, name)) is not None:
        return found
    if isinstance(value, Mapping):
        rows = [
            [key, _describe_value(value[key], f"{name}/{part}", leaf)]
            for key, part in names_of_keys(value).items()
        ]
        return {"dict": rows, **({"class": _ORDERED} if type(value) is OrderedDict else {})}
    if type(value) is list:
        return {
            "list": [
                _describe_value(one, f"{name}/{number}", leaf) for number, one in enumerate(value)
            ]
        }
    if isinstance(value, tuple):
        values = [
            _describe_value(one, f"{name}/{number}", leaf) for number, one in enumerate(value)
        ]
        return {"tuple": values, **_class_of(value, name)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise make_refusal(value, name)


def make_refusal(value: Any, name: str) -> CheckpointError:
    """The error for a value of a type that cannot be saved."""
    return CheckpointError(f"{name}: {type(value).__name__} cannot be saved; {_EXPECTED}")


def _class_of(value: tuple[Any, ...], name: str) -> dict[str, Any]:
    """The class and fields of a tuple, so that it can be rebuilt."""
    kind = type(value)
    if kind is tuple:
        return {}
    full_name = f"{kind.__module__}:{kind.__qualname__}"
    fields = getattr(kind, "_fields", None)
    if full_name == _SIZE:
        return {"class": full_name}
    if not isinstance(fields, tuple) or len(fields) != len(value):
        raise make_refusal(value, name)
    return {"class": full_name, "fields": list(fields)}


def names_of_keys(keys: Mapping[Any, Any] | Sequence[Any]) -> dict[Any, str]:
    """The part of an array name for each key of a dictionary; all parts differ."""
    found: dict[Any, str] = {}
    used = set()
    for key in keys:
        if not isinstance(key, str | int):
            raise CheckpointError(f"key {key!r} cannot be saved; expected a string or a number")
        part = _part(key)
        while part in used:
            part += "~"
        used.add(part)
        found[key] = part
    return found


def _part(key: str | int) -> str:
    """A key as HDF5 allows it in the name of an array."""
    text = (
        str(key).replace("/", "|").replace("\0", "|").encode("utf-8", "backslashreplace").decode()
    )
    return {"": "empty", ".": "dot"}.get(text, text)


def child(tree: Mapping[str, Any], key: Any) -> Mapping[str, Any] | None:
    """The description of an item of a dictionary, list or tuple; None if there is no such item."""
    if "dict" in tree:
        return next((one for name, one in tree["dict"] if name == key), None)
    items = tree.get("list", tree.get("tuple", ()))
    return items[key] if isinstance(key, int) and 0 <= key < len(items) else None


def rebuild(tree: Mapping[str, Any], leaf: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Rebuilds a state from its description. ``leaf`` makes an array or a tensor."""
    tree = tree.get("object", tree)
    if "dict" in tree:
        made = {key: rebuild(one, leaf) for key, one in tree["dict"]}
        return OrderedDict(made) if tree.get("class") == _ORDERED else made
    if "list" in tree:
        return [rebuild(one, leaf) for one in tree["list"]]
    if "tuple" in tree:
        return _tuple(tree, tuple(rebuild(one, leaf) for one in tree["tuple"]))
    return tree["value"] if "value" in tree else leaf(tree)


def _tuple(tree: Mapping[str, Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple of the described class, if the program has loaded it. Imports nothing, and calls
    nothing but ``torch.Size``."""
    name = tree.get("class")
    if name is None:
        return values
    found, fields = _loaded_class(name), tree.get("fields")
    if isinstance(found, type) and issubclass(found, tuple):
        if name == _SIZE:  # a class of C, which tuple.__new__ refuses
            return found(values)
        if vars(found).get("_fields") == tuple(fields or ()):
            made: tuple[Any, ...] = tuple.__new__(found, values)
            return made
    if not fields:
        return values
    return namedtuple(name.rpartition(".")[2].rpartition(":")[2], fields, rename=True)(*values)


def _loaded_class(name: str) -> Any:
    """The object named ``module:qualified.name``, if its module is loaded."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def keep_whole(tree: dict[str, Any]) -> dict[str, Any]:
    """A description that :func:`flatten` does not divide."""
    return {"object": tree} if _is_divided(tree) else tree


def flatten(tree: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The values of a state by their paths, divided as PyTorch's planners divide states:
    dictionaries, and lists that contain tensors or dictionaries."""
    if not _is_divided(tree):
        yield path, tree.get("object", tree)
    elif "dict" in tree:
        for key, one in tree["dict"]:
            yield from flatten(one, (*path, str(key)))
    else:
        for number, one in enumerate(tree["list"]):
            yield from flatten(one, (*path, number))


def _is_divided(tree: Mapping[str, Any]) -> bool:
    return "dict" in tree or any(
        "tensor" in one or _is_divided(one) for one in tree.get("list", ())
    )


def nest(values: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """The description of a state with values at these paths; the inverse of :func:`flatten`.

    Values of different ranks may exclude each other, such as ``a`` and ``a.b``. Then the later one
    is an item of the whole state, under its joined keys.
    """
    root: dict[str | int, Any] = {}
    for path, tree in values.items():
        holder: Any = root
        for key in path[:-1]:
            holder = holder.setdefault(key, {}) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and path[-1] not in holder:
            holder[path[-1]] = (tree,)
        else:
            root[join_keys(path)] = (tree,)
    return _describe_holder(root)


def join_keys(path: Path) -> str:
    """The key of a value in a flat state of PyTorch."""
    return ".".join(map(str, path))


def array_name(key: str) -> str:
    """The name of the array of a key; different for different keys."""
    escaped = key.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    text = {"": "%", ".": "%2E"}.get(escaped, escaped)
    return f"state/{text.encode('utf-8', 'backslashreplace').decode()}"


def _describe_holder(holder: Mapping[str | int, Any]) -> dict[str, Any]:
    rows = [
        [key, one[0] if isinstance(one, tuple) else _describe_holder(one)]
        for key, one in holder.items()
    ]
    numbers = {key: one for key, one in rows if isinstance(key, int)}
    if rows and sorted(numbers) == list(range(len(rows))):
        return {"list": [numbers[number] for number in range(len(rows))]}
    return {"dict": rows}
