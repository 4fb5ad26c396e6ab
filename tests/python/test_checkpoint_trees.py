"""Nested states: every type that save_state_dict accepts is restored; others are refused on every
rank."""

import collections
import enum
import json
import math
import sys
import time
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, load_state_dict, save_state_dict
from pario.checkpoint.trees import describe, flatten, nest, rebuild
from tests.python.support.threads import run


class Point(NamedTuple):
    x: object
    y: object


class Size(tuple):
    """A stand-in for torch.Size."""


class Color(enum.IntEnum):
    RED = 1


class Tags(list):
    pass


def equal(one, other) -> bool:
    """True for equal types and values; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray | np.generic):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def round_trip(path, state):
    with Writer(None, path, durable=False) as writer:
        save_state_dict(writer, 1, state)
    return load_state_dict(None, path)


EXAMPLES = {
    "a named tuple": {"p": Point(1, np.arange(3))},
    "a named tuple of another name": {"p": collections.namedtuple("Local", "a b")(1, [2])},
    "nested": {"p": Point(Point(1, 2), [Point((), {})])},
    "numpy's scalars": {
        "a": np.float64(0.5),
        "b": np.float32("nan"),
        "c": np.int8(-3),
        "d": np.bool_(True),
        "e": np.str_("é"),
    },
    "an ordered dictionary": {"o": collections.OrderedDict([("b", 1), ("a", np.zeros(2))])},
    "keys of several types": {
        1: np.arange(2),
        "1": np.arange(3),
        "a/b": {"x": np.zeros(1)},
        "a|b": np.ones(1),
    },
    "keys that are no names": {
        "": np.zeros(1),
        "empty": np.ones(1),
        ".": np.full(1, 2.0),
        "dot": np.full(1, 3.0),
        "a\0b": np.full(1, 4.0),
    },
    "keys that are no text": {"\udc80": np.zeros(1), "\\udc80": np.ones(1)},
    "a key with the name of a group": {"1": np.zeros(1), 1: {"x": np.ones(1)}},
}


@pytest.mark.parametrize("state", EXAMPLES.values(), ids=EXAMPLES)
def test_all_types_are_restored(tmp_path, state):
    found = round_trip(tmp_path, state)
    if "another name" in str(state) or "Local" in str(state):
        assert found["p"] == state["p"] and found["p"]._asdict() == state["p"]._asdict()
    else:
        assert equal(found, state)


def test_sizes_of_tensors_are_restored(tmp_path, monkeypatch):
    monkeypatch.setattr(Size, "__module__", "torch")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Size=Size, Tensor=Point))
    state = {"shape": Size((2, 3))}
    assert equal(round_trip(tmp_path / "with PyTorch", state), state)
    monkeypatch.delitem(sys.modules, "torch")
    assert equal(load_state_dict(None, tmp_path / "with PyTorch"), {"shape": (2, 3)})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Color.RED, 1),
    ],
    ids=["defaultdict", "mapping", "enum"],
)
def test_other_mappings_and_numbers_are_restored_as_plain_ones(tmp_path, given, found):
    assert equal(round_trip(tmp_path, {"v": given}), {"v": found})


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        1j,
        Tags([1]),
        time.localtime(0),
        np.ma.array([1, 2], mask=[True, False]),
        np.array([None]),
        object(),
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused_on_every_rank(tmp_path, value):
    def program(ranks):
        with Writer(ranks, tmp_path, durable=False) as writer:
            with pytest.raises(CheckpointError) as refused:
                save_state_dict(writer, 1, {"a": [value if ranks.rank else 0]})
            save_state_dict(writer, 2, {"a": 1})
            return str(refused.value)

    for said in run(2, program):
        assert "state/a/0" in said and "cannot be saved" in said
    assert [found.name for found in tmp_path.iterdir() if "00000001" in found.name] == []


def test_a_state_that_contains_itself_is_refused(tmp_path):
    state: dict = {}
    state["a"] = [state]
    with Writer(None, tmp_path) as writer, pytest.raises(CheckpointError, match="contains itself"):
        save_state_dict(writer, 1, state)


def test_a_class_that_a_file_names_is_neither_imported_nor_called(tmp_path, monkeypatch):
    called = []

    class Trap(tuple):
        _fields = ("x",)

        def __new__(cls, *_):
            called.append(cls)
            return tuple.__new__(cls)

        _make = __new__

    monkeypatch.setattr(sys.modules[__name__], "Trap", Trap, raising=False)
    for name in (f"{__name__}:Trap", "antigravity:x", "os:system", "builtins:print"):
        tree = {"dict": [["p", {"tuple": [{"value": 1}], "class": name, "fields": ["x"]}]]}
        with Writer(None, tmp_path, durable=False) as writer:
            writer.save(1, {"state.json": np.frombuffer(json.dumps(tree).encode(), np.uint8)})
        assert load_state_dict(None, tmp_path)["p"] == (1,)
    assert not called and "antigravity" not in sys.modules


def test_states_in_the_older_format_are_restored(tmp_path):
    """A state in the older format: without classes, and with array names that two keys could
    have."""
    tree = {
        "dict": [
            ["w", {"array": "state/w"}],
            ["t", {"tuple": [{"value": 1}]}],
            ["n", {"value": None}],
        ]
    }
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(
            1,
            {
                "state/w": np.arange(3),
                "state.json": np.frombuffer(json.dumps(tree).encode(), np.uint8),
            },
        )
    assert equal(load_state_dict(None, tmp_path), {"w": np.arange(3), "t": (1,), "n": None})


DTYPES = st.one_of(
    arrays.integer_dtypes(endianness="<"),
    arrays.floating_dtypes(endianness="<", sizes=(16, 32, 64)),
    arrays.complex_number_dtypes(endianness="<", sizes=(64, 128)),
    arrays.boolean_dtypes(),
    st.sampled_from(["<U3", "<M8[s]", "<m8[ns]"]).map(np.dtype),
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: arrays.arrays(
        dtype,
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements=elements(dtype),
    )
)


def elements(dtype):
    """Returns a strategy without texts that end in zeros, which numpy drops."""
    return st.text("aé", max_size=3) if dtype.kind == "U" else None


KEYS = (
    st.text(max_size=4)
    | st.integers(-9, 9)
    | st.sampled_from(["a/b", "a|b", "", "empty", ".", "1", "~", "a~"])
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    ARRAYS,
    ARRAYS.map(lambda array: array.reshape(-1)[0] if array.size else None),
)
STATES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.tuples(inner, inner).map(lambda pair: Point(*pair)),
            st.dictionaries(KEYS, inner, max_size=3),
            st.dictionaries(KEYS, inner, max_size=3).map(collections.OrderedDict),
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    path = tmp_path_factory.mktemp("states")
    with Writer(None, path, durable=False, keep=1) as one:
        one.path = path
        yield one


@pytest.mark.system
@settings(max_examples=100, database=None)
@given(state=STATES)
def test_any_state_is_rebuilt_from_its_description(state):
    held = {}

    def leaf(value, name):
        if not isinstance(value, np.ndarray | np.generic):
            return None
        assert held.setdefault(name, value) is value  # names differ
        return {"array": name}

    tree = json.loads(json.dumps(describe(state, "state", leaf)))
    assert equal(rebuild(tree, lambda about: held[about["array"]]), state)


@pytest.mark.system
@settings(max_examples=10, database=None)
@given(state=STATES)
def test_any_state_is_restored(writer, state):
    check(writer, state)


@pytest.mark.exhaustive
@settings(max_examples=2000, database=None)
@given(state=STATES)
def test_any_of_many_states_is_restored(writer, state):
    check(writer, state)


def check(writer, state):
    save_state_dict(writer, 1, state)
    found = checkpoint.load_state_dict(None, writer.path)
    assert equal(found, state), (found, state)


def test_flat_states_are_nested_again() -> None:
    tensor = {"tensor": "state/x", "type": "float32"}
    tree = describe({"a": {"b": [1, 2]}, "c": [{"d": None}], "e": (1,)}, "state", lambda *_: None)
    tree["dict"].append(["f", {"list": [tensor, {"value": 1}]}])
    flat = dict(flatten(tree))
    assert list(flat) == [("a", "b"), ("c", 0, "d"), ("e",), ("f", 0), ("f", 1)]
    assert nest(flat) == tree


def test_values_that_exclude_each_other_keep_their_flat_keys() -> None:
    """As a list may be empty on one rank, and have items on another."""
    values = {("a",): {"list": []}, ("a", 0, "x"): {"value": 1}, ("b", 1): {"value": 2}}
    flat = dict(flatten(nest(values)))
    assert list(flat) == [("a",), ("a.0.x",), ("b", "1")]
