"""Nested dictionaries of tensors, and safetensors files."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, block
from pario.checkpoint.geometry import whole
from pario.checkpoint.tensors import copy_to_shards, parts_to_read, shards_of
from tests.python.support.threads import run

STATE = {
    "model": {
        "layers.0.weight": np.arange(12.0).reshape(3, 4),
        "a/b": np.float32(2),
        "empty": np.zeros((0, 3)),
    },
    "optimizer": {
        "groups": [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0, 1]}],
        "state": {0: {"step": 7}, 1: {}},
    },
    "scheduler": None,
    "name": "été",
    "on": True,
}


def equal(one, other) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if hasattr(one, "dtype"):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("background", [False, True])
def test_a_nested_dictionary_is_restored(tmp_path, background):
    with Writer(None, tmp_path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 3, STATE, {"epoch": 2}, background=background)
    assert equal(checkpoint.load_state_dict(None, tmp_path), STATE)
    assert checkpoint.load(None, tmp_path).attrs == {"epoch": 2}


def test_distributed_tensors_are_loaded_whole(tmp_path):
    full = np.arange(35.0).reshape(7, 5)

    def program(ranks):
        box = checkpoint.divide(full.shape, ranks.size, ranks.rank)
        with Writer(ranks, tmp_path, durable=False) as writer:
            checkpoint.save_state_dict(
                writer,
                1,
                {
                    "w": block(full[box.within(whole(full.shape))], full.shape, box.begin),
                    "b": full[0],
                },
            )

    run(3, program)
    assert equal(checkpoint.load_state_dict(None, tmp_path), {"w": full, "b": full[0]})


def test_unsupported_values_are_named(tmp_path):
    with Writer(None, tmp_path) as writer:
        with pytest.raises(CheckpointError, match="state/a/0: set cannot be saved"):
            checkpoint.save_state_dict(writer, 1, {"a": [{1, 2}]})
        with pytest.raises(CheckpointError, match=r"key \(1,\) cannot be saved"):
            checkpoint.save_state_dict(writer, 1, {(1,): 1})
        writer.save(1, {"T": 1})
    with pytest.raises(CheckpointError, match="was not saved by save_state_dict"):
        checkpoint.load_state_dict(None, tmp_path)


class Local:
    """The part of a distributed tensor that this rank holds."""

    def __init__(self, shape) -> None:
        self.held = np.zeros(shape)
        self.shape = shape

    def detach(self):
        return self

    def copy_(self, other) -> None:
        self.held[...] = other


class Divided:
    """A stand-in for PyTorch's ShardedTensor: rows that may lie far apart."""

    def __init__(self, rows, shape) -> None:
        self._shape = shape
        self.shards = [
            SimpleNamespace(
                tensor=Local((1, *shape[1:])),
                metadata=SimpleNamespace(shard_offsets=[row, *(0,) * (len(shape) - 1)]),
            )
            for row in rows
        ]

    def size(self):
        return self._shape

    def local_shards(self):
        return self.shards


@pytest.mark.system
@pytest.mark.parametrize("kind", [1, "rank"])
@pytest.mark.parametrize(
    "rows",
    [[[0, 999], [500]], [[3, 998], []], [[7, 8], [8, 7]]],
    ids=["apart", "one has none", "the same"],
)
def test_distant_parts_are_read_without_the_bytes_between(tmp_path, monkeypatch, rows, kind):
    full = np.arange(5000.0).reshape(1000, 5)
    with Writer(None, tmp_path, durable=False, files=kind) as writer:
        writer.save(1, {"w": full})
    rooms, empty = [], np.empty

    def count_elements(shape, *arguments, **options):
        rooms.append(int(np.prod(shape)))
        return empty(shape, *arguments, **options)

    monkeypatch.setattr(np, "empty", count_elements)

    def program(ranks):
        mine = Divided(rows[ranks.rank], full.shape)
        shards = shards_of(mine)
        copy_to_shards(
            shards,
            checkpoint.load(ranks, tmp_path, verify=False).read_pieces(
                {"w": parts_to_read(shards)}
            )["w"],
        )
        return [shard.tensor.held[0].tolist() for shard in mine.shards]

    assert run(2, program) == [[full[row].tolist() for row in theirs] for theirs in rows]
    assert max(rooms) < 50  # numpy itself makes few such arrays


def test_damage_is_detected_by_pieces_that_together_hold_an_array(tmp_path):
    full = np.arange(5000.0).reshape(1000, 5)
    with Writer(None, tmp_path, durable=False) as writer:
        path = writer.save(1, {"w": full})
    content = path.read_bytes()
    at = content.index(full[700].tobytes())
    path.write_bytes(content[: at + 7] + bytes([content[at + 7] ^ 1]) + content[at + 8 :])

    def program(ranks):
        parts = [((begin, 0), (250, 5)) for begin in ((0, 500) if ranks.rank else (250, 750))]
        return checkpoint.load(ranks, tmp_path).read_pieces({"w": parts})

    for found in run(2, program):
        assert "not what was saved" in str(found) or "is damaged" in str(found)


@pytest.mark.system
def test_tensors_of_all_types_are_restored_as_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    kinds = (
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.int64,
        torch.bool,
        torch.uint8,
        torch.float8_e4m3fn,
        torch.complex64,
    )
    state = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds} | {
        "scalar": torch.tensor(2.5)
    }
    state["seen across"] = torch.arange(6.0).reshape(2, 3).t()
    model = torch.nn.Linear(3, 2)
    with Writer(None, tmp_path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 1, {"model": model.state_dict(), "all": state})
    loaded = checkpoint.load_state_dict(None, tmp_path)
    again = torch.nn.Linear(3, 2)
    again.load_state_dict(loaded["model"])
    assert torch.equal(again.weight, model.weight)
    for name, tensor in state.items():
        assert loaded["all"][name].dtype == tensor.dtype
        assert torch.equal(loaded["all"][name].to(torch.complex64), tensor.to(torch.complex64))


@pytest.mark.system
def test_a_tensor_that_is_trained_is_a_block(tmp_path):
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"w": block(weight, (2, 3), (0, 0))})
    assert checkpoint.load(None, tmp_path)["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


class OfCuPy:
    """A stand-in for an array of CuPy."""

    __cuda_array_interface__: dict = {}  # noqa: RUF012

    def get(self):
        return np.arange(3)


class OfNumba:
    """A device array that has an interface but no method to copy it to the host."""

    __cuda_array_interface__: dict = {}  # noqa: RUF012


class Exported:
    """An array on a device that can only be exported with DLPack."""

    def __init__(self, device):
        self._device = device

    def __dlpack__(self, **options):
        return np.arange(3).__dlpack__(**options)

    def __dlpack_device__(self):
        return (self._device, 0)


HOST, CUDA = 1, 2


def save_and_load(path, array):
    """Saves an array and returns its loaded elements."""
    with Writer(None, path, durable=False) as writer:
        writer.save(1, {"w": block(array, (3,), (0,))})
    return checkpoint.load(None, path)["w"].tolist()


@pytest.mark.parametrize(
    "array", [OfCuPy(), Exported(HOST), [0, 1, 2]], ids=["CuPy", "DLPack", "list"]
)
def test_arrays_of_other_libraries_are_saved(tmp_path, array):
    assert save_and_load(tmp_path, array) == [0, 1, 2]


@pytest.mark.parametrize(
    ("array", "module", "take", "fetch"),
    [
        (OfNumba(), "cupy", "asarray", "get"),
        (OfNumba(), "torch", "as_tensor", "cpu"),
        (Exported(CUDA), "cupy", "from_dlpack", "get"),
        (Exported(CUDA), "torch", "from_dlpack", "cpu"),
    ],
)
def test_arrays_of_an_accelerator_are_copied_by_an_installed_library(
    tmp_path, monkeypatch, array, module, take, fetch
):
    for name in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    taken = SimpleNamespace(**{fetch: lambda: np.arange(3)})
    library = SimpleNamespace(
        **{take: lambda given, **options: taken if given is array else None}, Tensor=OfNumba
    )
    monkeypatch.setitem(sys.modules, module, library)
    assert save_and_load(tmp_path, array) == [0, 1, 2]


@pytest.mark.parametrize("array", [OfNumba(), Exported(CUDA)])
def test_arrays_that_cannot_be_copied_name_the_missing_library(monkeypatch, array):
    for name in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        CheckpointError,
        match="in the memory of an accelerator; to copy it, CuPy or PyTorch is needed",
    ):
        block(array, (3,), (0,))


ARRAYS = {
    "w": np.arange(6, dtype="f4").reshape(2, 3),
    "half": np.ones(3, "f2"),
    "big": np.arange(4, dtype=">i8"),
    "on": np.array([True, False]),
    "one": np.float64(3),
    "none": np.zeros((0, 4), "u1"),
}


def test_a_safetensors_file_is_restored(tmp_path):
    checkpoint.write_safetensors(tmp_path / "a.safetensors", ARRAYS, {"format": "pt"})
    found = checkpoint.read_safetensors(tmp_path / "a.safetensors")
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (
            found[name].shape == array.shape
            and (found[name] == array).all()
            and found[name].dtype == array.dtype.newbyteorder("<")
        )
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.system
def test_other_programs_read_and_write_the_same_safetensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    checkpoint.write_safetensors(tmp_path / "ours", ARRAYS)
    assert all(
        (array == ARRAYS[name]).all() for name, array in numpy.load_file(tmp_path / "ours").items()
    )
    numpy.save_file({"w": ARRAYS["w"], "on": ARRAYS["on"]}, tmp_path / "theirs")
    assert all(
        (array == ARRAYS[name]).all()
        for name, array in checkpoint.read_safetensors(tmp_path / "theirs").items()
    )


@pytest.mark.system
def test_bfloat16_in_safetensors(tmp_path):
    torch = pytest.importorskip("torch")
    checkpoint.write_safetensors(
        tmp_path / "a", {"w": torch.arange(6).reshape(2, 3).to(torch.bfloat16)}
    )
    found = checkpoint.read_safetensors(tmp_path / "a")["w"]
    assert found.dtype == torch.bfloat16 and found.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        (1 << 40).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{!",
        *(
            len(text := json.dumps({"w": facts}).encode()).to_bytes(8, "little") + text + bytes(8)
            for facts in (
                {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
                {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
                {"dtype": "F7", "shape": [1], "data_offsets": [0, 8]},
                {"dtype": "F64", "shape": [1]},
                7,
            )
        ),
    ],
)
def test_a_damaged_safetensors_file_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.safetensors is no safetensors file"):
        checkpoint.read_safetensors(tmp_path / "a.safetensors")
