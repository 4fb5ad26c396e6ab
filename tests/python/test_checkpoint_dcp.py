"""PyTorch's distributed checkpoint API in the files of pario, by one process."""

from __future__ import annotations

import collections
import enum
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, container
from pario.checkpoint.header import read_header
from pario.cli import main
from pario.records import Loader

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")

from torch.distributed.checkpoint.default_planner import DefaultSavePlanner  # noqa: E402

from pario.checkpoint.dcp import Reader, Writer, replace_file_system_storage  # noqa: E402

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),
]
BASE = torch.arange(24.0).reshape(4, 6)
TENSORS = {
    "contiguous": BASE,
    "transposed": BASE.T,
    "strided": BASE[::2, ::3],
    "shared": BASE[1:3],
    "bfloat16": torch.arange(3).to(torch.bfloat16),
    "float8": torch.ones(3).to(torch.float8_e4m3fn),
    "float16": torch.ones(2, 2, dtype=torch.float16),
    "int8": torch.tensor([-1, 5], dtype=torch.int8),
    "uint16": torch.tensor([1, 65535], dtype=torch.uint16),
    "conjugate": torch.tensor([1 + 2j, 3j]).conj(),
    "bool": torch.tensor([True, False]),
    "scalar": torch.tensor(3.5, dtype=torch.float64),
    "empty": torch.zeros(0, 3),
    "a/b.c": torch.tensor([7]),
    "": torch.tensor([8]),
}
VALUES = {
    "optimizer": {"param_groups": [{"lr": 0.1, "betas": (0.9, 0.99), "params": [0, 1]}]},
    "list of tensors": [torch.ones(2), {"x": torch.zeros(3)}],
    "step": 7,
    "bytes": b"\0abc",
    "nan": math.nan,
    "none": None,
    "flag": True,
    "ordered": collections.OrderedDict(b=1, a=2),
    "nested": [1, [2, (3, "x")]],
    "array": np.arange(6.0).reshape(2, 3),
    "number": np.float32(0.5),
    "tuple": (torch.tensor([1.5]), b"y"),
    "set": {1, 2},
    "dtype": torch.float16,
}


class Color(enum.Enum):
    RED = 1


def save(path: Path, state: dict[str, Any], **options: Any) -> None:
    dcp.save(state, storage_writer=Writer(path, durable=False, **options))


def load(path: Path, state: dict[str, Any], **options: Any) -> dict[str, Any]:
    dcp.load(state, storage_reader=Reader(path, **options))
    return state


def clear_values(value: Any) -> Any:
    """A state of the same form without its values."""
    if isinstance(value, torch.Tensor):
        return torch.zeros(value.shape, dtype=value.dtype)
    if isinstance(value, dict):
        return type(value)((key, clear_values(one)) for key, one in value.items())
    return [clear_values(one) for one in value] if isinstance(value, list) else None


def equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        same = one.dtype == other.dtype and one.shape == other.shape
        return same and bool((one == other).all())
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def test_all_kinds_of_tensors_and_values_are_restored(tmp_path: Path) -> None:
    state = {"tensors": TENSORS, **VALUES}
    save(tmp_path, state)
    assert equal(load(tmp_path, clear_values(state)), state)
    tree = json.loads(checkpoint.load(None, tmp_path)["state.json"].tobytes())
    kinds = {key: next(iter(about)) for key, about in tree["dict"]}
    assert [key for key, kind in kinds.items() if kind == "pickle"] == ["set", "dtype"]


@pytest.mark.parametrize(
    "array",
    [
        np.array([(1, 2.0)], dtype=[("a", ">i2"), ("b", "<f8")]),
        np.array([("x", b"y")], dtype=[("text", "S3"), ("raw", "V2")]),
        np.array(["2020-01-01", "NaT"], "M8[s]"),
        np.array([[1, -1]], "m8[ns]"),
        np.array(["", "é"]),
        np.array([b"", b"x"]),
        np.zeros(0, "M8[D]"),
        np.datetime64("2020-01-01T00:00", "m"),
        np.array([(7, 8)], dtype=[("a", "i4"), ("b", "u1")])[0],
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_numpy_are_no_pickles(tmp_path: Path, array: Any) -> None:
    save(tmp_path, {"value": array})
    assert equal(load(tmp_path, {"value": None})["value"], array)
    tree = json.loads(checkpoint.load(None, tmp_path)["state.json"].tobytes())
    assert [next(iter(about)) for _, about in tree["dict"]] == ["array"]


def test_a_buffer_of_bytes_is_restored(tmp_path: Path) -> None:
    save(tmp_path, {"buffer": io.BytesIO(b"content")})
    assert load(tmp_path, {"buffer": None})["buffer"].getvalue() == b"content"


def test_the_two_apis_load_each_others_checkpoints(tmp_path: Path) -> None:
    state = {"model": {"w": BASE, "h": TENSORS["bfloat16"]}, **VALUES}
    save(tmp_path / "dcp", state)
    assert equal(
        checkpoint.load_state_dict(None, tmp_path / "dcp"),
        state
        | {
            "ordered": {"b": 1, "a": 2}  # DCP's flat states have no classes
        },
    )
    plain = {
        key: one for key, one in state.items() if key not in ("bytes", "tuple", "set", "dtype")
    }
    with checkpoint.Writer(None, tmp_path / "own", durable=False) as writer:
        checkpoint.save_state_dict(writer, 3, plain)
    assert equal(load(tmp_path / "own", clear_values(plain)), plain)


def test_arrays_of_other_checkpoints_are_tensors(tmp_path: Path) -> None:
    with checkpoint.Writer(None, tmp_path, durable=False) as writer:
        writer.save(1, {"group/T": np.arange(4, dtype=">f8"), "name": "text"})
    assert load(tmp_path, {"group/T": torch.zeros(4, dtype=torch.float64)})["group/T"].tolist() == [
        0,
        1,
        2,
        3,
    ]


def test_another_type_of_elements_is_refused_unless_asked_for(tmp_path: Path) -> None:
    save(tmp_path, {"w": BASE})
    into = {"w": torch.zeros(4, 6, dtype=torch.bfloat16)}
    with pytest.raises(BaseException, match="w: its elements are float32, those of the tensor"):
        load(tmp_path, into)
    assert not into["w"].any()
    assert torch.equal(load(tmp_path, into, cast=True)["w"], BASE.to(torch.bfloat16))


def test_a_pickle_that_may_run_code_is_refused_unless_asked_for(tmp_path: Path) -> None:
    save(tmp_path, {"color": Color.RED, "w": BASE})
    with pytest.raises(BaseException, match="is a pickle, which may run any code"):
        load(tmp_path, {"color": None})
    with pytest.raises(checkpoint.CheckpointError, match="is a pickle, which may run any code"):
        checkpoint.load_state_dict(None, tmp_path)
    assert torch.equal(load(tmp_path, {"w": torch.zeros(4, 6)})["w"], BASE)
    assert load(tmp_path, {"color": None}, allow_pickle=True)["color"] is Color.RED


def test_a_planner_that_changes_values_decides_their_bytes(tmp_path: Path) -> None:
    class Planner(DefaultSavePlanner):
        def transform_object(self, item: Any, value: Any) -> Any:
            value = value.to(torch.float16) if isinstance(value, torch.Tensor) else value + 1
            return super().transform_object(item, value)

    state = {"w": torch.ones(3), "n": 1}
    dcp.save(state, storage_writer=Writer(tmp_path, durable=False), planner=Planner())
    assert load(tmp_path, {"w": torch.zeros(3), "n": 0}, cast=True) == {
        "w": pytest.approx([1.0] * 3),
        "n": 2,
    }
    assert checkpoint.load(None, tmp_path)["state/w"].dtype == np.float16


@pytest.mark.parametrize("name", ["step-{}", "epoch=0-step={}.ckpt", "step_{}"])
def test_a_step_in_the_name_is_a_step_of_the_directory(tmp_path: Path, name: str) -> None:
    """As torchtitan and Lightning name checkpoints: keep counts those of the directory."""
    writer, reader = Writer(keep=2, durable=False), Reader()
    for step in (10, 20, 30):
        dcp.save({"step": step}, checkpoint_id=tmp_path / name.format(step), storage_writer=writer)
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == [
        "step-00000020.h5",
        "step-00000030.h5",
    ]
    state = {"step": 0}
    dcp.load(state, checkpoint_id=tmp_path / name.format(20), storage_reader=reader)
    assert state == {"step": 20}
    dcp.load(state, checkpoint_id=tmp_path, storage_reader=reader)
    assert state == {"step": 30}


def test_the_state_of_a_loader_is_restored_within_a_document(tmp_path: Path) -> None:
    """dcp.load restores the keys of the state that it is given, that of a new loader."""
    (tmp_path / "a.jsonl").write_text("".join(f'{{"tokens": {[n] * 7}}}\n' for n in range(9)))

    def make_loader() -> Any:
        return Loader(tmp_path / "a.jsonl", 1, decode=True).pack_tokens(5, field="tokens")

    loader, state = make_loader(), make_loader().state_dict()
    batches = [batch["tokens"].tolist() for batch in loader]
    loader = make_loader()
    next(iter(loader))
    dcp.save({"loader": loader.state_dict()}, storage_writer=Writer(tmp_path / "ckpt"))
    dcp.load({"loader": state}, storage_reader=Reader(tmp_path / "ckpt"))
    other = make_loader()
    other.load_state_dict(state)
    assert [batch["tokens"].tolist() for batch in other] == batches[1:]


@pytest.mark.parametrize("names", [("loader",), ("data", "train")])
def test_the_state_of_a_loader_of_an_earlier_version_is_restored(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """It had no `skip` where it was 0."""

    def nest(state: Any) -> Any:
        for name in reversed(names):
            state = {name: state}
        return state

    (tmp_path / "a.txt").write_text("a\nb\nc\n")
    loader = Loader(tmp_path / "a.txt", 2)
    next(iter(loader))
    saved, state = loader.state_dict(), Loader(tmp_path / "a.txt", 2).state_dict()
    old = {key: value for key, value in saved.items() if key != "skip"}
    dcp.save(nest(old), storage_writer=Writer(tmp_path / "ckpt"))
    dcp.load(nest(state), storage_reader=Reader(tmp_path / "ckpt"))
    assert state == saved


def test_saves_without_a_step_get_the_next_one(tmp_path: Path) -> None:
    for number in range(3):
        save(tmp_path, {"n": number}, keep=2)
    assert load(tmp_path, {"n": -1}) == {"n": 2}
    assert checkpoint.load(None, tmp_path).step == 2
    assert load(tmp_path, {"n": -1}, step=1) == {"n": 1}


def test_the_best_checkpoints_stay_by_an_attribute(tmp_path: Path) -> None:
    keep = checkpoint.Keep(best=1, metric="loss")
    for loss in (0.5, 0.1, 0.3, 0.4):
        save(tmp_path, {"w": BASE}, keep=keep, attrs={"loss": loss})
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == [
        "step-00000001.h5",
        "step-00000003.h5",
    ]


def test_damage_is_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path, {"w": BASE, "v": BASE + 1})
    path = tmp_path / "step-00000000.h5"
    content = bytearray(path.read_bytes())
    content[content.index(BASE.numpy().tobytes()) + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(BaseException, match="array 'state/w'"):
        load(tmp_path, {"w": torch.zeros(4, 6)})
    assert torch.equal(load(tmp_path, {"v": torch.zeros(4, 6)})["v"], BASE + 1)


def test_compressed_tensors_are_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "LARGE", 0)
    save(tmp_path, TENSORS | VALUES, compress="zstd")
    assert equal(load(tmp_path, clear_values(TENSORS | VALUES)), TENSORS | VALUES)
    with replace_file_system_storage(compress="zstd"):
        dcp.save({"w": BASE}, checkpoint_id=tmp_path / "step-10")
    for path, name in ((tmp_path / "step-00000000.h5", "contiguous"), (tmp_path / "step-10", "w")):
        entries = read_header(checkpoint.load(None, path).path).entries
        assert entries[f"state/{name}"].frames is not None


def test_a_staged_checkpoint_is_published_when_it_is_drained(tmp_path: Path) -> None:
    with Writer(tmp_path / "run", stage=tmp_path / "stage", durable=False) as writer:
        dcp.save({"w": BASE}, storage_writer=writer)
        dcp.save({"w": BASE + 1}, storage_writer=writer)
    assert checkpoint.load(None, tmp_path / "run").step == 1
    assert torch.equal(load(tmp_path / "run", {"w": torch.zeros(4, 6)})["w"], BASE + 1)


def test_saving_without_collective_calls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaseException, match="the ranks save one checkpoint together"):
        dcp.save({"n": 1}, storage_writer=Writer(tmp_path), use_collectives=False)


def test_files_of_dcp_hide_damage_and_other_types(tmp_path: Path) -> None:
    """The cells of DCP in the table of docs/checkpoint.md."""
    dcp.save({"w": BASE}, checkpoint_id=tmp_path)
    [path] = tmp_path.glob("*.distcp")
    content = bytearray(path.read_bytes())
    content[content.index(BASE.numpy().tobytes()) + 6] ^= 1
    path.write_bytes(content)
    into = {"w": torch.zeros(4, 6, dtype=torch.float64)}
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["w"].dtype == torch.float64 and not torch.equal(into["w"].float(), BASE)
    assert b"torch.distributed.checkpoint.metadata" in (tmp_path / ".metadata").read_bytes()


def test_libraries_that_choose_the_storage_save_in_files_of_pario(tmp_path: Path) -> None:
    """torchtitan and Lightning give DCP a path only, Accelerate its own classes."""
    own = dcp.FileSystemWriter
    with replace_file_system_storage(durable=False):
        dcp.save({"w": BASE}, checkpoint_id=tmp_path / "step-10")
        dcp.save({"w": BASE + 1}, checkpoint_id=tmp_path / "step-10")
        dcp.save({"w": BASE}, storage_writer=dcp.FileSystemWriter(tmp_path / "model", 4))
        for name, expected in (("step-10", BASE + 1), ("model", BASE)):
            into = {"w": torch.zeros(4, 6)}
            dcp.load(into, storage_reader=dcp.FileSystemReader(tmp_path / name))
            assert torch.equal(into["w"], expected)
    assert dcp.FileSystemWriter is own
    names = sorted(path.name for path in (tmp_path / "step-10").iterdir())
    assert names == [".metadata", "MANIFEST", "latest", "step-00000010.h5"]


def test_a_directory_of_one_checkpoint_is_a_checkpoint_for_everything_else(tmp_path: Path) -> None:
    place = tmp_path / "step-10"
    with replace_file_system_storage(durable=False):
        dcp.save({"w": BASE}, checkpoint_id=place)
    assert torch.equal(load(place, {"w": torch.zeros(4, 6)})["w"], BASE)
    assert checkpoint.load(None, place).step == 10
    assert main(["checkpoint", "convert", str(place), str(tmp_path / "w.safetensors")]) == 0
    assert checkpoint.read_safetensors(tmp_path / "w.safetensors")["w"].tolist() == BASE.tolist()


def test_directories_of_dcp_are_loaded_as_before(tmp_path: Path) -> None:
    dcp.save({"w": BASE}, checkpoint_id=tmp_path / "step-1")
    into = {"w": torch.zeros(4, 6)}
    with replace_file_system_storage(durable=False):
        dcp.load(into, checkpoint_id=tmp_path / "step-1")
        dcp.save(into, checkpoint_id=tmp_path / "step-2")
    assert torch.equal(into["w"], BASE)
    assert checkpoint.load(None, tmp_path / "step-2").step == 2


def test_a_failed_save_leaves_no_complete_checkpoint(tmp_path: Path) -> None:
    class Planner(DefaultSavePlanner):
        def resolve_data(self, item: Any) -> Any:
            raise OSError("no data")

    with replace_file_system_storage(durable=False):
        with pytest.raises(BaseException, match="no data"):
            dcp.save({"w": BASE}, checkpoint_id=tmp_path / "step-1", planner=Planner())
        with pytest.raises(BaseException, match="step-1: no such file"):
            dcp.load({"w": BASE}, checkpoint_id=tmp_path / "step-1")
    assert not (tmp_path / "step-1" / ".metadata").exists()


def test_sizes_are_restored(tmp_path):
    """The class of PyTorch itself refuses ``tuple.__new__``."""
    state = {"x": torch.ones(2), "shape": torch.Size([3, 4])}
    with checkpoint.Writer(None, tmp_path / "own", durable=False) as writer:
        checkpoint.save_state_dict(writer, 0, state)
    found = checkpoint.load_state_dict(None, tmp_path / "own")
    assert type(found["shape"]) is torch.Size and found["shape"] == (3, 4)


def test_a_tensor_that_does_not_hold_the_values_is_refused(tmp_path):
    state = {"x": torch.tensor([1.7, 300.9])}
    with checkpoint.Writer(None, tmp_path, durable=False) as writer:
        checkpoint.save_state_dict(writer, 0, state)
    for kind in (torch.uint8, torch.int64, torch.bool):
        target = torch.zeros(2, dtype=kind)
        with pytest.raises(CheckpointError, match="which does not hold their values"):
            checkpoint.load_state_dict(None, tmp_path, into={"x": target})
        assert not target.any()
    for kind in (torch.bfloat16, torch.float64, torch.complex64):
        target = torch.zeros(2, dtype=kind)
        checkpoint.load_state_dict(None, tmp_path, into={"x": target})
        assert (target == state["x"].to(kind)).all()
    half = {"x": torch.tensor([1.5, 2.0], dtype=torch.bfloat16)}
    with checkpoint.Writer(None, tmp_path / "half", durable=False) as writer:
        checkpoint.save_state_dict(writer, 0, half)
    array = np.zeros(2, "f4")
    assert checkpoint.load_state_dict(None, tmp_path / "half", into={"x": array})["x"] is array
    assert array.tolist() == [1.5, 2.0]
