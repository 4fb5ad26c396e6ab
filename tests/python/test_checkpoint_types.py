"""Elements of unusual types and arrays of unusual forms: they are loaded as they were saved, or
refused."""

import sys

import h5py
import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, block, per_rank, replicated
from pario.checkpoint.examine import differences
from pario.checkpoint.header import read_header

ARRAYS = {
    "number": np.array(3.5),
    "complex number": np.array(1 + 2j),
    "yes": np.array(True),
    "word": np.array("é"),
    "bytes": np.array(b"ab"),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((4, 0), "c8"),
    "big-endian, every other one backwards": np.arange(20, dtype=">i4").reshape(4, 5)[::2, ::-1],
    "big-endian complex": (np.arange(6) + 1j).astype(">c8"),
    "longer than double": np.arange(5, dtype=np.longdouble),
    "longer than complex": np.arange(3, dtype=np.clongdouble),
    "structures": np.array([(1, 2.5, b"x")], [("a", ">i2"), ("b", "<f8"), ("c", "S3")]),
    "structures within": np.zeros(2, [("p", [("x", "f4"), ("y", ">f4")]), ("v", "f8", (2, 3))]),
    "columns first": np.arange(12.0).reshape(3, 4).T,
    "one row many times": np.broadcast_to(np.arange(4.0), (3, 4)),
    "big-endian times": np.array([1, 2], ">M8[s]"),
    "no time": np.array(["NaT"], "M8[s]"),
    "empty words": np.array(["", "bcd"]),
    "a zero within": np.array([b"a\0b"]),
    "not numbers": np.array([np.nan, np.inf, -0.0]),
    "read only": np.frombuffer(b"12345678", np.uint8),
    "beyond a sign": 2**63,
}
WAYS = {
    "replicated": lambda array: replicated(array),
    "block": lambda array: block(array, np.shape(array), (0,) * np.ndim(array)),
    "per rank": lambda array: per_rank(array),
}


def save_and_load(path, given, *, background=False) -> np.ndarray:
    with Writer(None, path, durable=False) as writer:
        (writer.save_async if background else writer.save)(1, {"x": given})
    return checkpoint.load(None, path)["x"]


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.tobytes() == np.asarray(other).tobytes()
    )


@pytest.mark.system
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("files", [1, "rank"])
@pytest.mark.parametrize("way", WAYS)
def test_arrays_of_unusual_forms_are_restored(tmp_path, way, files, background):
    with Writer(None, tmp_path, durable=False, files=files) as writer:
        save = writer.save_async if background else writer.save
        save(1, {name: WAYS[way](array) for name, array in ARRAYS.items()})
    state = checkpoint.load(None, tmp_path)
    for name, array in ARRAYS.items():
        assert same(
            state[name], np.asarray(array)[None] if way == "per rank" else np.asarray(array)
        ), name


BYTE_ORDERED = [
    np.arange(6, dtype=">f8").reshape(2, 3),
    np.arange(6, dtype="<f8").reshape(2, 3),
    np.arange(70000, dtype=">i4").reshape(350, 200)[:, ::-1],
    np.arange(200_000, dtype=">f8"),
    np.arange(3).astype(">c16"),
    np.array([1, 2], ">M8[s]"),
    np.array(["a", "bcd"], ">U3"),
    np.array([(1, 2.5)], [("a", ">i2"), ("b", "<f8")]),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("files", [1, "rank"])
def test_byte_orders_are_restored(tmp_path, files, way):
    given = {str(number): array for number, array in enumerate(BYTE_ORDERED)}
    with Writer(None, tmp_path, durable=False, files=files) as writer:
        writer.save(1, {name: WAYS[way](array) for name, array in given.items()})
    state = checkpoint.load(None, tmp_path)
    for name, array in given.items():
        expected = array[None] if way == "per rank" else array
        assert state.dtype(name) == array.dtype and same(state[name], expected), array.dtype


def test_elements_of_another_byte_order_are_converted_into_the_target(tmp_path):
    target = np.zeros((2, 3))
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"x": BYTE_ORDERED[0]})
    checkpoint.load(None, tmp_path).read("x", (0, 0), out=target)
    assert (target == BYTE_ORDERED[0]).all()


STRIDED = {
    "steps": lambda n: np.arange(3.0 * n)[::3],
    "reversed": lambda n: np.arange(float(n))[::-1],
    "real parts": lambda n: (np.arange(n) + 1j).real,
    "a column": lambda n: np.arange(4.0 * n).reshape(n, 4)[:, 1],
    "repeated": lambda n: np.broadcast_to(1.5, (n,)),
    "a field": lambda n: np.ones(n, [("x", "f8"), ("y", "f4")])["x"],
    "bytes": lambda n: np.arange(16 * n, dtype="u1")[::2],
}


@pytest.mark.parametrize("count", [10, 5000, 200_000])
@pytest.mark.parametrize("make", STRIDED.values(), ids=STRIDED)
def test_arrays_of_any_strides_and_sizes_are_restored(tmp_path, make, count):
    array = make(count)
    for background in (False, True):
        found = save_and_load(tmp_path / str(background), array, background=background)
        assert same(found, array)


REFUSED = [
    ([1.7, np.nan], "i8"),
    ([300], "u1"),
    ([-1], "u8"),
    ([1 + 2j], "f8"),
    ([0.5], "?"),
    (["abc"], "S1"),
]
KEPT = [
    (np.array([300], "i4"), "i8"),
    (np.array([300]), "f4"),
    (np.array([1.5]), "f2"),
    (np.array([1.5]), "c16"),
    (np.array([True]), "u1"),
    (np.array(["abc"]), "U5"),
]


@pytest.mark.parametrize(("values", "kind"), REFUSED)
def test_a_target_that_does_not_hold_the_values_is_refused(tmp_path, values, kind):
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"x": np.array(values)})
        checkpoint.save_state_dict(writer, 2, {"x": np.array(values)})
    target = np.zeros(len(values), kind)
    with pytest.raises(CheckpointError, match=r"array 'x': its elements are .*, those of its targ"):
        checkpoint.load(None, tmp_path, step=1).read("x", out=target)
    with pytest.raises(CheckpointError, match=r"array 'state/x' are .*, those of its target"):
        checkpoint.load_state_dict(None, tmp_path, into={"x": target})
    assert not np.any(target != np.zeros(1, kind))


@pytest.mark.parametrize(("array", "kind"), KEPT)
def test_a_target_of_a_type_that_holds_the_values_receives_them(tmp_path, array, kind):
    assert_same = np.testing.assert_array_equal
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"x": array})
        checkpoint.save_state_dict(writer, 2, {"x": array})
    target, other = np.zeros(1, kind), np.zeros(1, kind)
    assert checkpoint.load(None, tmp_path, step=1).read("x", out=target) is target
    if array.dtype.kind != "U":
        found = checkpoint.load_state_dict(None, tmp_path, into={"x": other})
        assert found["x"] is other
        assert_same(other, array)
    assert_same(target, array)


def test_a_target_that_is_no_array_or_read_only_is_refused(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 1, {"x": np.ones(2)})
    with pytest.raises(CheckpointError, match=r"its target is a list; expected a numpy\.ndarray"):
        checkpoint.load(None, tmp_path).read("state/x", out=[0.0, 0.0])
    target = np.zeros(2)
    target.flags.writeable = False
    with pytest.raises(CheckpointError, match="the target of array 'state/x' is read-only"):
        checkpoint.load_state_dict(None, tmp_path, into={"x": target})


def test_a_shape_without_an_offset_is_a_part_from_the_first_element(tmp_path):
    array = np.arange(12).reshape(3, 4)
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"x": array})
    state = checkpoint.load(None, tmp_path)
    assert (state.read("x", shape=(2, 2)) == array[:2, :2]).all()
    with pytest.raises(CheckpointError, match="expected offset and shape of integers"):
        state.read("x", (1.9, 0), (1, 1))


@pytest.mark.parametrize(
    "array",
    [None, 2**70, np.array([1, "a"], object), np.zeros(2, [("a", object)])],
    ids=["None", "huge", "objects", "within"],
)
def test_arrays_without_a_stored_type_are_refused(tmp_path, array):
    with pytest.raises(CheckpointError, match=r"array 'x': elements of type .* cannot be saved"):
        save_and_load(tmp_path, array)


def test_a_structure_of_strings_and_unusable_names_are_refused_by_name(tmp_path):
    with pytest.raises(CheckpointError, match=r"with a field of type <U3, cannot be saved; expec"):
        save_and_load(tmp_path, np.zeros(2, [("n", "i4"), ("s", "U3")]))
    with Writer(None, tmp_path, durable=False) as writer:
        with pytest.raises(CheckpointError, match=r"array '.udc80': expected a name that is UTF-8"):
            writer.save(1, {"\udc80": np.ones(2)})
        with pytest.raises(CheckpointError, match="attribute '': expected a name"):
            writer.save(1, {"x": np.ones(2)}, {"": 1})


@pytest.mark.system
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "int4"])
def test_types_of_ml_dtypes_are_restored(tmp_path, kind, way, background):
    types = pytest.importorskip("ml_dtypes")
    array = np.arange(6).reshape(2, 3).T.astype(getattr(types, kind))
    found = save_and_load(tmp_path, WAYS[way](array), background=background)
    assert (
        found.dtype == array.dtype
        and (found == (array[None] if way == "per rank" else array)).all()
    )
    state = checkpoint.load(None, tmp_path)
    assert state.dtype("x") == array.dtype
    taker = np.zeros(found.shape, array.dtype)
    assert state.read("x", (0,) * found.ndim, out=taker) is taker and (taker == found).all()


def test_without_ml_dtypes_its_types_are_an_error_that_names_it(tmp_path, monkeypatch):
    types = pytest.importorskip("ml_dtypes")
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"x": np.ones(3, types.bfloat16), "y": 1})
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    state = checkpoint.load(None, tmp_path)
    assert state["y"] == 1
    with pytest.raises(
        CheckpointError,
        match="elements of type bfloat16 need a package that knows them: pip install ml_dtypes",
    ):
        state["x"]


@pytest.mark.parametrize(
    "note",
    ["float8_e4m3fn", "finfo", "__name__", "|O", "<f8", "<M8[s]", "<i8,<i8", "<U3", "<nothing", 7],
)
def test_an_impossible_type_in_a_damaged_file_is_an_error(tmp_path, note):
    pytest.importorskip("ml_dtypes")
    with Writer(None, tmp_path, durable=False) as writer:
        path = writer.save(1, {"x": np.arange(8, dtype="u2")})
    with h5py.File(path, "r+") as file:
        file["x"].attrs["pario_type"] = note
    state = checkpoint.load(None, tmp_path, verify=False)
    for what in (lambda: state["x"], lambda: state.dtype("x")):
        with pytest.raises(CheckpointError, match=r"step-00000001\.h5: array 'x': elements of"):
            what()


def test_types_of_ml_dtypes_in_structures_are_refused(tmp_path):
    types = pytest.importorskip("ml_dtypes")
    with pytest.raises(CheckpointError, match="with a field of type bfloat16, cannot be saved"):
        save_and_load(tmp_path, np.zeros(2, [("a", types.bfloat16)]))


def test_masked_elements_are_refused_by_name(tmp_path):
    masked = np.ma.masked_array([1.0, 999.0], [False, True])
    with Writer(None, tmp_path) as writer:
        with pytest.raises(CheckpointError, match="array 'T': masked elements"):
            writer.save(1, {"T": masked})
        with pytest.raises(CheckpointError, match=r"attribute 'levels'.* masked elements"):
            writer.save(1, {"T": 1.0}, {"levels": masked})
        writer.save(1, {"T": masked.filled(0.0), "whole": np.ma.masked_array([1.0, 2.0])})
    with pytest.raises(CheckpointError, match="masked elements"):
        block(masked, (2,), (0,))
    with pytest.raises(CheckpointError, match="tensor 'T': masked elements"):
        checkpoint.write_safetensors(tmp_path / "a.safetensors", {"T": masked})
    assert checkpoint.load(None, tmp_path)["whole"].tolist() == [1.0, 2.0]


def test_equal_bytes_of_other_types_differ(tmp_path):
    headers = []
    for unit in ("s", "D"):
        save_and_load(tmp_path / unit, np.array([1, 2], f"M8[{unit}]"))
        headers.append(read_header(tmp_path / unit / "step-00000001.h5"))
    assert list(differences(*headers, 0.0)) == ["array 'x': type <M8[s], <M8[D]"]
