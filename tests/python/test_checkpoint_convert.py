"""Conversion of checkpoints between the formats of pario, PyTorch and safetensors."""

from __future__ import annotations

import json
import pickle
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, lazy
from pario.checkpoint import convert as convert_module
from pario.checkpoint.convert import convert
from pario.checkpoint.geometry import Box
from pario.checkpoint.lazy import LazyArray
from pario.checkpoint.tensors import is_tensor, to_array
from pario.cli import main

STATE = {
    "model": {"w": np.arange(12.0).reshape(3, 4), "b": np.arange(3, dtype=np.int8)},
    "epoch": 3,
}


def save(path: Path, state: Any) -> None:
    with checkpoint.Writer(None, path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 7, state)


def test_a_part_of_a_state_becomes_a_safetensors_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "run", STATE)
    target = tmp_path / "model.safetensors"
    command = ["checkpoint", "convert", str(tmp_path / "run"), str(target)]
    assert main([*command, "--select", "model"]) == 0
    assert capsys.readouterr() == (f"{target}\n", "")
    found = checkpoint.read_safetensors(target)
    assert list(found) == ["w", "b"] and (found["w"] == STATE["model"]["w"]).all()
    assert main(command) == 0
    assert capsys.readouterr().err == (
        "pario checkpoint: 1 value without elements left out: epoch\n"
    )
    assert list(checkpoint.read_safetensors(target)) == ["model.w", "model.b"]
    assert main([*command, "--select", "optimizer"]) == 2
    assert "has no part 'optimizer'; it has model, epoch" in capsys.readouterr().err


def test_a_tensor_that_the_index_of_shards_names_is_there_or_an_error(tmp_path: Path) -> None:
    save(tmp_path / "run", {"a": np.ones(10), "b": np.ones(10)})
    convert(tmp_path / "run", tmp_path / "model", "safetensors", shard_bytes=80)
    other = tmp_path / "model" / "model-00002-of-00002.safetensors"
    checkpoint.write_safetensors(other, {"c": np.ones(10)})
    with pytest.raises(CheckpointError, match=r"00002.safetensors has no tensor 'b'"):
        convert(tmp_path / "model", tmp_path / "again")


def test_an_interrupted_conversion_leaves_no_mixture_of_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1.0, 2.0):
        save(tmp_path / f"{number}", {"a": np.full(10, number), "b": np.full(10, number)})
    convert(tmp_path / "1.0", tmp_path / "model", "safetensors", shard_bytes=80)
    write, calls = convert_module.write_safetensors, []

    def end_at_second(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(convert_module, "write_safetensors", end_at_second)
    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "2.0", tmp_path / "model", "safetensors", shard_bytes=80)
    with pytest.raises(CheckpointError, match="no complete checkpoint"):
        convert(tmp_path / "model", tmp_path / "again")


@pytest.mark.system
def test_a_failed_conversion_leaves_no_older_description_of_new_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    save(tmp_path / "old", {"a": np.zeros(1000)})
    save(tmp_path / "new", {"a": np.ones(1000), "b": np.ones(300_000)})
    convert(tmp_path / "old", tmp_path / "model", "dcp")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most))
    try:
        with pytest.raises(CheckpointError, match="model"):
            convert(tmp_path / "new", tmp_path / "model", "dcp")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with pytest.raises(CheckpointError, match="no complete checkpoint"):
        convert(tmp_path / "model", tmp_path / "again")


@pytest.mark.parametrize("compress", [None, "zstd"])
def test_a_checkpoint_of_pario_keeps_all_that_it_has(tmp_path: Path, compress: str | None) -> None:
    values = np.arange(6.0).reshape(2, 3)
    arrays = {
        "T": checkpoint.block(values, (2, 3), (0, 0), dims=("y", "x"), units="K", attrs={"n": [1]}),
        "group/big": np.arange(3, dtype=">i4"),
        "names": np.array(["a", "é"]),
        "none": np.zeros((0, 2)),
        "day": np.array("2026-11-30", "M8[D]"),
    }
    with checkpoint.Writer(None, tmp_path / "run", keep=3) as writer:
        for step in (0, 100, 200):
            writer.save(step, arrays, {"time": 1.5 * step, "name": "x"})
        checkpoint.save_state_dict(writer, 300, {"a": {"b": values}, "l": [1, "x"]}, {"lr": 0.1})
    for step in (100, 200):
        path, lost = convert(tmp_path / "run", tmp_path / "copy", step=step, compress=compress)
        old, new = (checkpoint.load(None, tmp_path / name, step=step) for name in ("run", "copy"))
        assert (path.name, lost) == (f"step-{step:08d}.h5", [])
        assert (new.step, new.attrs, list(new)) == (step, old.attrs, list(old))
        for name in old:
            assert new.dims(name) == old.dims(name)
            assert new.array_attrs(name) == old.array_attrs(name)
            assert new.dtype(name) == old.dtype(name) and (new[name] == old[name]).all()
    assert new.array_attrs("T") == {"units": "K", "n": [1]}
    convert(tmp_path / "run", tmp_path / "copy", compress=compress)
    assert checkpoint.load(None, tmp_path / "copy").attrs == {"lr": 0.1}
    found = checkpoint.load_state_dict(None, tmp_path / "copy", step=300)
    assert (found["a"]["b"] == values).all() and found["l"] == [1, "x"]


def test_shards_have_the_index_that_transformers_reads(tmp_path: Path) -> None:
    state = {f"w{number}": np.full(10, number, np.float32) for number in range(5)}
    save(tmp_path / "run", state)
    convert(tmp_path / "run", tmp_path / "model", "safetensors", shard_bytes=100)
    index = json.loads((tmp_path / "model" / "model.safetensors.index.json").read_text())
    names = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]
    assert index == {
        "metadata": {"total_size": 200},
        "weight_map": {f"w{number}": names[number // 2] for number in range(5)},
    }
    convert(tmp_path / "model", tmp_path / "again")
    found = checkpoint.load_state_dict(None, tmp_path / "again")
    assert {key: one.tolist() for key, one in found.items()} == {
        key: one.tolist() for key, one in state.items()
    }


def test_keys_that_become_equal_are_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path / "run", {"a": {"b": np.zeros(2)}, "a.b": np.ones(3), 1: np.zeros(1)})
    with pytest.raises(CheckpointError, match=r"a\.b: several values have this key"):
        convert(tmp_path / "run", tmp_path / "model", "safetensors")
    assert not (tmp_path / "model").exists()
    with pytest.raises(CheckpointError, match=r"has no part 'b'; it has a, a\.b, 1"):
        convert(tmp_path / "run", tmp_path / "model", "safetensors", select="b")


def test_a_file_of_both_formats_is_read_as_a_checkpoint(tmp_path: Path) -> None:
    with checkpoint.Writer(None, tmp_path / "run", durable=False, safetensors=True) as writer:
        path = checkpoint.save_state_dict(writer, 7, STATE)
    (tmp_path / "model.safetensors").symlink_to(path)
    convert(tmp_path / "model.safetensors", tmp_path / "plain", "safetensors", select="model")
    [shard] = (tmp_path / "plain").glob("*.safetensors")
    assert list(checkpoint.read_safetensors(shard)) == ["w", "b"]


def catch_orbax(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Conversions to Orbax, which CI lacks, append their state to the result."""
    states: list[dict[str, Any]] = []
    monkeypatch.setattr(
        convert_module, "write_orbax", lambda path, state: (states.append(state), path)[1]
    )
    return states


def test_arrays_for_orbax_are_read_when_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    states, half = catch_orbax(monkeypatch), np.arange(3).astype(ml_dtypes.bfloat16)
    state = {"layers": [STATE["model"]["w"], np.float32(0.5)], "half": half, "epoch": 3}
    save(tmp_path / "run", state)
    assert convert(tmp_path / "run", tmp_path / "o", "orbax") == (tmp_path / "o", [])
    [found] = states
    w = found["layers"][0]
    assert isinstance(w, LazyArray) and np.array_equal(w.load(), state["layers"][0])
    [(piece, begin)] = w.parts()
    assert (piece.ndim, piece.nbytes, begin) == (2, 96, (0, 0))
    assert piece.tobytes() == state["layers"][0].tobytes()
    assert (found["layers"][1], found["epoch"]) == (np.float32(0.5), 3)
    assert found["half"].dtype == half.dtype and found["half"].load().tolist() == half.tolist()


def test_arrays_without_a_state_are_read_when_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = catch_orbax(monkeypatch)
    with checkpoint.Writer(None, tmp_path / "run", durable=False) as writer:
        writer.save(1, {"a/b": np.arange(3)})
    convert(tmp_path / "run", tmp_path / "o", "orbax")
    assert states[0]["a/b"].load().tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [">f4", "?"])
@pytest.mark.parametrize("shape", [(20, 30), (0, 30), ()])
def test_an_array_that_is_read_in_pieces_is_saved_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: str
) -> None:
    """As the arrays of a checkpoint of Orbax."""
    whole = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
    monkeypatch.setattr(lazy, "_PIECE", 200 * whole.itemsize)
    boxes: list[Box] = []

    def read(box: Box) -> np.ndarray[Any, Any]:
        boxes.append(box)
        return whole[tuple(slice(a, a + n) for a, n in zip(box.begin, box.shape, strict=True))]

    array = LazyArray(shape, whole.dtype, read, (1,) * len(shape))
    monkeypatch.setattr(convert_module, "_read", lambda *_, **__: {"a": array})
    monkeypatch.setattr(convert_module, "_find_format", lambda path, _: ("orbax", path))
    convert(tmp_path / "source", tmp_path / "run")
    found = checkpoint.load_state_dict(None, tmp_path / "run")["a"]
    assert (found.dtype, found.shape) == (whole.dtype, shape)
    assert np.array_equal(found, whole) and len(boxes) == {600: 4, 0: 0, 1: 1}[whole.size]
    target = tmp_path / "a.safetensors"
    convert(tmp_path / "source", target)
    assert np.array_equal(checkpoint.read_safetensors(target)["a"], whole)


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("out", {"to": "dcp", "compress": "zstd"}, "compress='zstd' to dcp; expected to pario"),
        ("memory://out", {"to": "dcp"}, "memory://out: to dcp; expected to pario, or a local"),
        ("run", {}, "run: is the source; expected another place for the result"),
        ("out", {"select": "epoch"}, "'epoch' is a value; expected a dictionary of them"),
    ],
)
def test_conversions_that_cannot_be_made_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    options: dict[str, Any],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "run", STATE)
    with pytest.raises(CheckpointError, match=reason):
        convert("run", target, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_index_of_shards_names_files_beside_it_alone(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    index = {"weight_map": {"a": "../secret.safetensors"}}
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"index\.json: expected names of files beside it"):
        convert(tmp_path / "model", tmp_path / "out")


def test_a_checkpoint_of_pytorch_needs_pytorch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / ".metadata").touch()
    for name in ("torch", "torch.distributed", "torch.distributed.checkpoint"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "torch.distributed.checkpoint._traverse", None)
    with pytest.raises(CheckpointError, match="checkpoints of DCP need PyTorch: pip install torch"):
        convert(tmp_path / "model", tmp_path / "out")


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_checkpoints_of_pytorch_are_converted_in_both_directions(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    state = {
        "model": {"w": torch.arange(6.0), "h": torch.arange(3).to(torch.bfloat16)},
        "optimizer": {"groups": [{"lr": 0.1, "betas": (0.9, 0.99)}], "momenta": [torch.ones(2)]},
        "data": b"position",
        "set": {1, 2},
    }
    dcp.save(state, checkpoint_id=tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "back", "dcp")
    for found in (
        checkpoint.load_state_dict(None, tmp_path / "ours"),
        checkpoint.convert._read_dcp(tmp_path / "back", allow_pickle=False),
    ):
        assert list(found) == list(state)
        assert torch.equal(found["model"]["w"], state["model"]["w"])
        assert found["model"]["h"].dtype == torch.bfloat16
        assert found["optimizer"]["groups"] == state["optimizer"]["groups"]
        assert found["optimizer"]["momenta"][0].tolist() == [1, 1]
        assert (found["data"], found["set"]) == (b"position", {1, 2})


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_numbers_and_types_of_numpy_are_tensors_of_pytorch(tmp_path: Path) -> None:
    """Pickles of numpy would be refused when they are loaded."""
    torch = pytest.importorskip("torch")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    state = {
        "scale": np.float32(0.5),
        "pair": (np.arange(2.0), 1),
        "half": np.arange(3).astype(ml_dtypes.bfloat16),
        "name": np.str_("run"),
    }
    save(tmp_path / "ours", state)
    convert(tmp_path / "ours", tmp_path / "theirs", "dcp")
    found = checkpoint.convert._read_dcp(tmp_path / "theirs", allow_pickle=False)
    assert found["scale"].dtype == torch.float32 and found["scale"] == 0.5
    assert found["pair"][0].tolist() == [0, 1] and found["pair"][1] == 1
    assert found["half"].dtype == torch.bfloat16 and found["half"].tolist() == [0, 1, 2]
    assert found["name"] == "run"


class Harmful:
    """A pickle that runs a function when it is loaded."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmful"),)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.system
def test_pickles_of_pytorch_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    monkeypatch.chdir(tmp_path)
    dcp.save({"value": Harmful()}, checkpoint_id="values")
    with pytest.raises(CheckpointError, match="is a pickle, which may run any code"):
        convert("values", "ours")
    Path("metadata").mkdir()
    Path("metadata/.metadata").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(CheckpointError, match=r"metadata: .*it refers to"):
        convert("metadata", "ours", allow_pickle=True)
    assert not Path("harmful").exists()
    convert("values", "ours", allow_pickle=True)
    assert Path("harmful").exists()


#: Types that the three other formats have.
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
FORMATS = ("pario", "dcp", "orbax", "safetensors")


def make_state() -> dict[str, Any]:
    """Tensors and arrays of all types, without elements and axes, and with unusual names."""
    import torch

    kinds = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
    return {
        **{kind: (np.arange(6) % 2).astype(kind).reshape(2, 3) for kind in TYPES.split()},
        **{str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds},
        "big-endian": np.arange(3, dtype=">i4"),
        "empty": np.zeros((0, 3), np.float32),
        "none": np.zeros(0, np.int64),
        "one": np.array(2.5, np.float32),
        "tensor": torch.tensor(7),
        "a/b": np.arange(3.0),
        "a.c": np.arange(4.0),
        "é": {"y/z": {"w": np.arange(5.0)}, "": np.arange(1.0), ".": np.ones(2), "..": np.ones(3)},
    }


def list_values(value: Any, keys: tuple[str, ...] = ()) -> Any:
    """Yields type, shape and bytes of each value by its joined keys."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from list_values(one, (*keys, key))
    elif is_tensor(value):
        array, kind = to_array(value)
        yield ".".join(keys), (kind, array.shape, array.tobytes())
    else:
        array = value.astype(value.dtype.newbyteorder("="))
        yield ".".join(keys), (array.dtype.name, array.shape, array.tobytes())


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("first", FORMATS[1:])
def test_all_types_shapes_and_names_survive_a_way_through_each_format(
    tmp_path: Path, first: str
) -> None:
    for package in ("torch", "tensorstore", "ml_dtypes"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    state = make_state()
    save(tmp_path / "source", state)
    convert(tmp_path / "source", tmp_path / first, first)
    for second in FORMATS:
        if second == first:
            continue
        convert(tmp_path / first, tmp_path / second, second)
        convert(tmp_path / second, tmp_path / f"last-{second}")
        found = checkpoint.load_state_dict(None, tmp_path / f"last-{second}")
        assert dict(list_values(found)) == dict(list_values(state)), second
